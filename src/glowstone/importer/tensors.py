"""Decodes TensorProto messages into arrays, believing nothing: extents, lengths and external files are checked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from glowstone.errors import LimitError, ModelError, UnsupportedError
from glowstone.graph import Tensor
from glowstone.importer.packing import BYTE, packed_size, unpacked
from glowstone.support.budget import budget
from glowstone.support.external_data import ExternalData
from glowstone.types import ElementType, TensorType, check_size

Array = np.ndarray[Any, np.dtype[Any]]

# onnx.TensorProto.DataType numbers; the field of typed (not raw) data follows from the type
ELEMENT_TYPES: dict[int, ElementType] = {
    1: ElementType.F32,
    2: ElementType.U8,
    3: ElementType.I8,
    4: ElementType.U16,
    5: ElementType.I16,
    6: ElementType.I32,
    7: ElementType.I64,
    9: ElementType.BOOL,
    10: ElementType.F16,
    11: ElementType.F64,
    12: ElementType.U32,
    13: ElementType.U64,
    16: ElementType.BF16,
    17: ElementType.F8E4M3FN,
    18: ElementType.F8E4M3FNUZ,
    19: ElementType.F8E5M2,
    20: ElementType.F8E5M2FNUZ,
    21: ElementType.U4,
    22: ElementType.I4,
    23: ElementType.F4E2M1,
    24: ElementType.F8E8M0,
    25: ElementType.U2,
    26: ElementType.I2,
    27: ElementType.F6E2M3,
    28: ElementType.F6E3M2,
}
_TYPED_FIELD: dict[ElementType, tuple[str, type]] = {
    ElementType.F32: ("float_data", np.float32),
    ElementType.F64: ("double_data", np.float64),
    ElementType.I64: ("int64_data", np.int64),
    ElementType.U64: ("uint64_data", np.uint64),
    ElementType.U32: ("uint64_data", np.uint64),
}
_SMALL_FIELD = ("int32_data", np.int32)
_INTEGER_FIELDS: tuple[tuple[str, type], ...] = (
    ("int32_data", np.int32),
    ("int64_data", np.int64),
    ("uint64_data", np.uint64),
)
_FLOAT_FIELDS: tuple[tuple[str, type], ...] = (("float_data", np.float32), ("double_data", np.float64))
_FIELDS_OF_KIND = {"i": _INTEGER_FIELDS, "u": _INTEGER_FIELDS, "f": _FLOAT_FIELDS}
"""By the kind of a NumPy type."""
PACKED_IN_NUMBERS = (2, 4)
"""Bits of the elements of which a number of `int32_data` holds a whole byte."""
_EXTERNAL = 1
MOST_SHOWN = 200
"""Characters of what a file says, in a message."""


def element_type(number: int, what: str) -> ElementType:
    """The element type of an ONNX type number.

    Raises:
        UnsupportedError: a type that Glowstone does not have, such as string.
    """
    if number not in ELEMENT_TYPES:
        import onnx

        names = {value: name for name, value in onnx.TensorProto.DataType.items()}
        raise UnsupportedError(
            f"{what} has an element type that is not supported",
            expected=", ".join(map(str, ELEMENT_TYPES.values())),
            found=names.get(number, number).__str__().lower(),
        )
    return ELEMENT_TYPES[number]


def decode_tensor(proto: Any, external: ExternalData | None) -> Tensor:
    """The tensor of a TensorProto; raw data are not copied.

    Raises:
        ModelError: extents and data do not fit, or external data that may not be read.
        LimitError: an extent that no tensor can have.
        UnsupportedError: an element type that Glowstone does not have.
    """
    name = f"tensor {proto.name!r}"
    element = element_type(proto.data_type, name)
    shape = _checked_shape(proto, element)
    count = math.prod(shape)
    size = packed_size(element, count)
    if proto.data_location == _EXTERNAL:
        array = _external(proto, external, size, name)
    elif proto.raw_data or not _has_numbers(proto):
        array = np.frombuffer(proto.raw_data, np.uint8)
    else:
        return Tensor(_typed(proto, element, count, name).reshape(shape), element)
    if array.size != size:
        raise ModelError(
            f"{name} has the wrong amount of data", expected=f"{size} bytes for {shape}", found=f"{array.size} bytes"
        )
    if element.bits < BYTE:
        return Tensor(unpacked(array, element, count).reshape(shape), element)
    return Tensor(array.view(element.dtype.newbyteorder("<")).reshape(shape), element)


def decode_texts(proto: Any) -> Array:
    """The texts of a TensorProto of strings, as an array of objects.

    Raises:
        ModelError: there are more or fewer than its extents say.
        LimitError: an extent that no tensor can have.
    """
    shape = _checked_shape(proto, ElementType.U8)  # a text has a byte or more
    if len(proto.string_data) != math.prod(shape):
        raise ModelError(
            f"tensor {proto.name!r} has the wrong amount of data",
            expected=f"{math.prod(shape)} texts",
            found=f"{len(proto.string_data)} texts",
        )
    result = np.empty(shape, object)
    result.reshape(-1)[:] = [text.decode("utf-8", "replace") for text in proto.string_data]
    return result


def _checked_shape(proto: Any, element: ElementType) -> tuple[int, ...]:
    shape = tuple(int(extent) for extent in proto.dims)
    if min(shape, default=0) < 0:
        raise ModelError(f"tensor {proto.name!r} has a negative extent", expected="0 or more", found=list(shape))
    try:
        check_size(TensorType(element, shape))
    except LimitError as error:
        raise LimitError(
            f"tensor {proto.name!r}: {error.message}", expected=error.expected, found=error.found
        ) from None
    return shape


def _typed(proto: Any, element: ElementType, count: int, name: str) -> Array:
    is_packed = element.bits in PACKED_IN_NUMBERS
    expected = packed_size(element, count) if is_packed else count
    values = _numbers(proto, element, expected)
    if len(values) != expected:
        unit = "bytes" if is_packed else "elements"
        raise ModelError(
            f"{name} has the wrong amount of data", expected=f"{expected} {unit}", found=f"{len(values)} {unit}"
        )
    if is_packed:
        return unpacked(values.astype(np.uint8), element, count)
    if element in (ElementType.F16, ElementType.BF16) or element.is_narrow:  # given as their bits
        return values.astype(f"u{element.size}").view(element.dtype)
    return values.astype(element.dtype)


def _has_numbers(proto: Any) -> bool:
    return any(len(getattr(proto, field)) for field, _ in (*_INTEGER_FIELDS, *_FLOAT_FIELDS))


def _numbers(proto: Any, element: ElementType, count: int) -> Array:
    """The numbers of the element type's own field; or, where that is empty, of the one other field that has as many of
    the same kind, all of them in range: some writers take the field of another width.
    """
    field, held = _TYPED_FIELD.get(element, _SMALL_FIELD)
    values: Array = np.array(getattr(proto, field), held)
    is_given_as_bits = element.bits < BYTE or element is ElementType.F16
    fields = () if is_given_as_bits else _FIELDS_OF_KIND.get(element.dtype.kind, ())
    if len(values):
        return values
    others = [(name, type) for name, type in fields if len(getattr(proto, name))]
    if len(others) != 1 or len(getattr(proto, others[0][0])) != count:
        return values
    found: Array = np.array(getattr(proto, others[0][0]), others[0][1])
    with np.errstate(over="ignore"):
        fits = element.dtype.kind == "f" or np.array_equal(found.astype(element.dtype), found)
    return found if fits else values


def _external(proto: Any, external: ExternalData | None, size: int, name: str) -> Array:
    """Bytes of a tensor kept in another file, mapped. See `ExternalData.read`."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    if not all(isinstance(text, str) for text in (*entries, *entries.values())):
        raise ModelError(f"{name} names its external file by no text", expected="UTF-8", found=repr(entries))
    try:
        offset = int(entries.get("offset", 0))
        length = int(entries["length"]) if "length" in entries else None
    except ValueError as error:
        raise ModelError(f"{name} has a bad external offset or length", found=str(entries)[:MOST_SHOWN]) from error
    array = (external or ExternalData(None)).read(entries.get("location", ""), offset, length, size, name)
    budget().hold(size)
    return array
