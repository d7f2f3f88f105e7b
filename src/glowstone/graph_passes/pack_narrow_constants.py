"""Packs constants of 2 and 4 bits several to a byte; the elements are taken apart where they are used.

Byte j holds element j in its lowest bits, then elements j + n, j + 2 n ..., n the number of bytes: so neighbours are
taken from neighbouring bytes, all by the same shift.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.graph import Builder, Graph, Tensor, Value
from glowstone.ops import BitCast, BitShift, Cast, Constant
from glowstone.ops.constant import constant
from glowstone.ops.shape_arithmetic import reshaped, sliced
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]

BYTE = 8
PACKED_BITS = (2, 4)
"""Sizes of elements of which several fill a byte."""
SMALLEST = 256
"""Elements below which packing is not worth an instruction."""
INTEGER_OF_BITS = {2: ElementType.U2, 4: ElementType.U4}


def pack_narrow_constants(graph: Graph) -> bool:
    """Replace large constants; returns whether there were any."""
    changed = False
    for node in graph.nodes:
        if isinstance(node.operator, Constant) and node.operator.channel_block is None:
            tensor = node.operator.tensor
            if tensor.element.bits in PACKED_BITS and tensor.array.size >= SMALLEST and not tensor.is_splat:
                graph.replace(node.result, _taken_apart(Builder(graph, node.names), tensor))
                changed = True
    return changed


def packed_bytes(codes: Array, bits: int) -> Array:
    """A vector of codes, one per byte, in the order that the head of this file gives."""
    parts = BYTE // bits
    count = -(-codes.size // parts)
    planes = np.zeros((parts, count), np.uint8)
    planes.reshape(-1)[: codes.size] = codes & ((1 << bits) - 1)
    shifts = np.arange(0, BYTE, bits, dtype=np.uint8)[:, None]
    return np.asarray(np.bitwise_or.reduce(planes << shifts, axis=0))


def _taken_apart(builder: Builder, tensor: Tensor) -> Value:
    """The constant, computed from packed bytes."""
    element, array = tensor.element, tensor.array
    packed = constant(builder, packed_bytes(np.ascontiguousarray(array).reshape(-1).view(np.uint8), element.bits))
    shifts = constant(builder, np.arange(0, BYTE, element.bits, dtype=np.uint8)[:, None])
    integer = INTEGER_OF_BITS[element.bits]
    codes = builder.emit(Cast(integer), builder.emit(BitShift(), packed, shifts))  # which keeps the lower bits
    numbers = codes if element is integer else builder.emit(BitCast(element), codes)
    flat = reshaped(builder, numbers, -1)
    if flat.type.size > array.size:
        flat = sliced(builder, flat, 0, 0, array.size)
    return reshaped(builder, flat, array.shape)
