"""Element types of tensors, with their names in IR text, ONNX Runtime and NumPy."""

from __future__ import annotations

import enum
import functools

import numpy as np


class ElementType(enum.Enum):
    """The type of one element. The value is its name in IR text."""

    F64 = "f64"
    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    I64 = "i64"
    I32 = "i32"
    I16 = "i16"
    I8 = "i8"
    U64 = "u64"
    U32 = "u32"
    U16 = "u16"
    U8 = "u8"
    BOOL = "bool"

    @property
    def is_float(self) -> bool:
        return self in _FLOATS

    @property
    def is_integer(self) -> bool:
        return not self.is_float and self is not ElementType.BOOL

    @property
    def is_signed(self) -> bool:
        """True for floats and signed integers."""
        return self.is_float or self.value[0] == "i"

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return _SIZES[self]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy type that holds it; that of bf16 is `ml_dtypes.bfloat16`."""
        return bfloat16() if self is ElementType.BF16 else _DTYPES[self]

    @staticmethod
    def from_dtype(dtype: np.dtype[np.generic] | type) -> ElementType:
        """The element type of a NumPy dtype.

        Raises:
            KeyError: NumPy type without a tensor element type (object, complex, datetime).
        """
        native = np.dtype(dtype).newbyteorder("=")
        return ElementType.BF16 if native.name == _BFLOAT16 else _FROM_DTYPE[native]

    def __str__(self) -> str:
        return self.value


_BFLOAT16 = "bfloat16"


@functools.cache
def bfloat16() -> np.dtype[np.generic]:
    """The NumPy type of bf16. Its package is loaded only for models that have such tensors: it takes a while."""
    import ml_dtypes

    made: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
    return made


def is_float_dtype(dtype: np.dtype[np.generic]) -> bool:
    """Whether a NumPy type holds floats, bf16 among them, which NumPy does not count as one."""
    return bool(np.issubdtype(dtype, np.floating)) or dtype.name == _BFLOAT16


_FLOATS = frozenset({ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16})
_DTYPES: dict[ElementType, np.dtype[np.generic]] = {
    ElementType.F64: np.dtype(np.float64),
    ElementType.F32: np.dtype(np.float32),
    ElementType.F16: np.dtype(np.float16),
    ElementType.I64: np.dtype(np.int64),
    ElementType.I32: np.dtype(np.int32),
    ElementType.I16: np.dtype(np.int16),
    ElementType.I8: np.dtype(np.int8),
    ElementType.U64: np.dtype(np.uint64),
    ElementType.U32: np.dtype(np.uint32),
    ElementType.U16: np.dtype(np.uint16),
    ElementType.U8: np.dtype(np.uint8),
    ElementType.BOOL: np.dtype(np.bool_),
}
_SIZES = {element: dtype.itemsize for element, dtype in _DTYPES.items()} | {ElementType.BF16: 2}
_FROM_DTYPE = {dtype: element for element, dtype in _DTYPES.items()}
