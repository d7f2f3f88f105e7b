"""The type of a tensor: element type, concrete shape, layout."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace

from glowstone.errors import LimitError
from glowstone.types.element_type import ElementType

Shape = tuple[int, ...]
Dimension = int | str
"""A number, or the name of a symbolic extent."""
CHANNEL_AXIS = 1
LARGEST_EXTENT = 2**40
"""No dimension of a real tensor is larger; guards every product of extents against overflow."""
LARGEST_RANK = 32
LARGEST_TENSOR_BYTES = 2**47
"""More than any address space holds."""


@dataclass(frozen=True)
class TensorType:
    """Element type, shape (always concrete, logical order) and layout.

    `channel_block` is None for the plain row-major layout; a number b means that axis 1 is split in blocks of b:
    physical shape [N, ceil(C/b), spatial..., b], unused lanes of the last block zero.
    """

    element: ElementType
    shape: Shape
    channel_block: int | None = None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of logical elements."""
        return math.prod(self.shape)

    @property
    def physical_shape(self) -> Shape:
        """Shape of the buffer that holds it."""
        if self.channel_block is None:
            return self.shape
        batch, channels, *spatial = self.shape
        return (batch, -(-channels // self.channel_block), *spatial, self.channel_block)

    @property
    def bytes(self) -> int:
        """Bytes of the buffer that holds it, padding lanes included."""
        return math.prod(self.physical_shape) * self.element.size

    def with_shape(self, shape: Shape) -> TensorType:
        return replace(self, shape=tuple(shape))

    def with_element(self, element: ElementType) -> TensorType:
        return replace(self, element=element)

    def with_channel_block(self, channel_block: int | None) -> TensorType:
        return replace(self, channel_block=channel_block)

    def __str__(self) -> str:
        suffix = f"{{c{self.channel_block}}}" if self.channel_block is not None else ""
        return f"{self.element}[{','.join(map(str, self.shape))}]{suffix}"


def check_size(type: TensorType) -> None:
    """Refuse what no machine can hold.

    Raises:
        LimitError: rank, an extent or the number of bytes is beyond reason.
    """
    found = f"{type.element}{list(type.shape)}"
    if type.rank > LARGEST_RANK:
        raise LimitError("a tensor has too many axes", expected=f"at most {LARGEST_RANK}", found=type.rank)
    if max(type.shape, default=0) > LARGEST_EXTENT:
        raise LimitError("an extent is too large", expected=f"at most {LARGEST_EXTENT}", found=found)
    if type.size * type.element.size > LARGEST_TENSOR_BYTES:
        raise LimitError("a tensor is too large", expected=f"at most {LARGEST_TENSOR_BYTES} bytes", found=found)


_TYPE = re.compile(r"^(\w+)\[([\d,]*)\](?:\{c(\d+)\})?$")


def parse_type(text: str) -> TensorType:
    """The inverse of `str(type)`: "f32[1,64,56,56]{c8}".

    Raises:
        ValueError: the text is not a type.
    """
    match = _TYPE.match(text)
    if match is None:
        raise ValueError(f"not a tensor type: {text!r}")
    element, dims, block = match.groups()
    shape = tuple(int(dim) for dim in dims.split(",")) if dims else ()
    return TensorType(ElementType(element), shape, int(block) if block else None)
