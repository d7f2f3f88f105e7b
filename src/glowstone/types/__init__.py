"""Element types, tensor types and the shape rules shared by all operators."""

from glowstone.types.broadcasting import broadcast_shapes, normalize_axes, normalize_axis, row_major_strides
from glowstone.types.element_type import ElementType, is_float_dtype
from glowstone.types.given_shapes import GivenShapes, ResolvedShapes, fits, resolve_shapes
from glowstone.types.narrow_float import NARROW_FLOATS, NarrowFloat
from glowstone.types.tensor_type import (
    CHANNEL_AXIS,
    LARGEST_EXTENT,
    Dimension,
    Shape,
    TensorType,
    check_size,
    parse_type,
)

__all__ = [
    "CHANNEL_AXIS",
    "LARGEST_EXTENT",
    "NARROW_FLOATS",
    "Dimension",
    "ElementType",
    "GivenShapes",
    "NarrowFloat",
    "ResolvedShapes",
    "Shape",
    "TensorType",
    "broadcast_shapes",
    "check_size",
    "fits",
    "is_float_dtype",
    "normalize_axes",
    "normalize_axis",
    "parse_type",
    "resolve_shapes",
    "row_major_strides",
]
