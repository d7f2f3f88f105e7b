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
    F8E4M3FN = "f8e4m3fn"
    F8E4M3FNUZ = "f8e4m3fnuz"
    F8E5M2 = "f8e5m2"
    F8E5M2FNUZ = "f8e5m2fnuz"
    F8E8M0 = "f8e8m0"
    F6E2M3 = "f6e2m3"
    F6E3M2 = "f6e3m2"
    F4E2M1 = "f4e2m1"
    I4 = "i4"
    U4 = "u4"
    I2 = "i2"
    U2 = "u2"

    @property
    def is_float(self) -> bool:
        """Whether it has the arithmetic of floats. Narrow floats have none."""
        return self in _FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether it has the arithmetic of integers. Narrow integers have none."""
        return not (self.is_float or self.is_narrow or self is ElementType.BOOL)

    @property
    def is_signed(self) -> bool:
        """True for floats and signed integers."""
        return self.is_float or self.value[0] == "i"

    @property
    def is_narrow(self) -> bool:
        """Whether its elements are only moved and converted: floats of at most 8 bits, integers of fewer than 8."""
        return self in _NARROW

    @property
    def wide(self) -> ElementType:
        """The type in which its numbers are computed with: of a narrow type f32, i8 or u8, else itself."""
        return _NARROW[self][1] if self in _NARROW else self

    @property
    def bits(self) -> int:
        """Bits that say what an element is. An array holds each element in the low bits of `size` bytes."""
        return _NARROW[self][0] if self in _NARROW else 8 * self.size

    @property
    def limits(self) -> tuple[int, int]:
        """The lowest and the highest number of a type of integers."""
        half = 1 << (self.bits - 1)
        return (-half, half - 1) if self.is_signed else (0, 2 * half - 1)

    @property
    def size(self) -> int:
        """Bytes of one element in an array."""
        return _SIZES[self]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The NumPy type that holds it; that of bf16 and of the narrow types is one of `ml_dtypes`."""
        return _added_dtype(_ADDED_NAMES[self]) if self in _ADDED_NAMES else _DTYPES[self]

    @staticmethod
    def from_dtype(dtype: np.dtype[np.generic] | type) -> ElementType:
        """The element type of a NumPy dtype.

        Raises:
            KeyError: NumPy type without a tensor element type (object, complex, datetime).
        """
        native = np.dtype(dtype).newbyteorder("=")
        return _FROM_ADDED_NAME.get(native.name) or _FROM_DTYPE[native]

    def __str__(self) -> str:
        return self.value


@functools.cache
def _added_dtype(name: str) -> np.dtype[np.generic]:
    """A type that ml_dtypes adds to NumPy. It is loaded only for models that have such tensors: it takes a while."""
    import ml_dtypes

    made: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, name))
    return made


def is_float_dtype(dtype: np.dtype[np.generic]) -> bool:
    """Whether a NumPy type has the arithmetic of floats; bf16 does, which NumPy does not count as one."""
    return bool(np.issubdtype(dtype, np.floating)) or dtype.name == _ADDED_NAMES[ElementType.BF16]


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
_NARROW: dict[ElementType, tuple[int, ElementType]] = {
    ElementType.F8E4M3FN: (8, ElementType.F32),
    ElementType.F8E4M3FNUZ: (8, ElementType.F32),
    ElementType.F8E5M2: (8, ElementType.F32),
    ElementType.F8E5M2FNUZ: (8, ElementType.F32),
    ElementType.F8E8M0: (8, ElementType.F32),
    ElementType.F6E2M3: (6, ElementType.F32),
    ElementType.F6E3M2: (6, ElementType.F32),
    ElementType.F4E2M1: (4, ElementType.F32),
    ElementType.I4: (4, ElementType.I8),
    ElementType.U4: (4, ElementType.U8),
    ElementType.I2: (2, ElementType.I8),
    ElementType.U2: (2, ElementType.U8),
}
"""Bits, and the type to compute in."""
_ADDED_NAMES = {
    ElementType.BF16: "bfloat16",
    ElementType.F8E4M3FN: "float8_e4m3fn",
    ElementType.F8E4M3FNUZ: "float8_e4m3fnuz",
    ElementType.F8E5M2: "float8_e5m2",
    ElementType.F8E5M2FNUZ: "float8_e5m2fnuz",
    ElementType.F8E8M0: "float8_e8m0fnu",
    ElementType.F6E2M3: "float6_e2m3fn",
    ElementType.F6E3M2: "float6_e3m2fn",
    ElementType.F4E2M1: "float4_e2m1fn",
    ElementType.I4: "int4",
    ElementType.U4: "uint4",
    ElementType.I2: "int2",
    ElementType.U2: "uint2",
}
"""Types that ml_dtypes adds to NumPy, by their names there."""
_SIZES = (
    {element: dtype.itemsize for element, dtype in _DTYPES.items()} | {ElementType.BF16: 2} | dict.fromkeys(_NARROW, 1)
)
_FROM_DTYPE = {dtype: element for element, dtype in _DTYPES.items()}
_FROM_ADDED_NAME = {name: element for element, name in _ADDED_NAMES.items()}
