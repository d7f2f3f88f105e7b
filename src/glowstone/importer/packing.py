"""Tensors of elements of fewer than 8 bits as ONNX stores them: a stream of bits, lowest first, in whole bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]

BYTE = 8
"""Bits of a byte."""


def packed_size(element: ElementType, count: int) -> int:
    """Bytes of `count` elements."""
    return -(-element.bits * count // BYTE)


def packed(array: Array, element: ElementType) -> Array:
    """The bytes of an array of one element per byte; bits behind the last element are zero."""
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    bits = np.unpackbits(codes.reshape(-1, 1), axis=1, count=element.bits, bitorder="little")
    return np.packbits(bits.reshape(-1), bitorder="little")


def unpacked(data: Array, element: ElementType, count: int) -> Array:
    """`count` elements from their bytes, one per byte."""
    bits = np.unpackbits(data, count=count * element.bits, bitorder="little").reshape(count, element.bits)
    return np.packbits(bits, axis=1, bitorder="little").reshape(count).view(element.dtype)
