"""Operators of floats applied to other numbers: through a float type that holds them."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode
from glowstone.ops import Cast
from glowstone.types import ElementType

EXACT_IN_F32_BYTES = 2
"""Integers of this size or less are exact as float32."""


def through_floats(node: OnnxNode, x: Value, compute: Callable[[Value], Value]) -> Value:
    """`compute(x)` where x is of floats; integers and booleans go through floats and are truncated at the end.

    Integers of more than 53 bits are rounded.
    """
    if x.element.is_float:
        return compute(x)
    wide = ElementType.F32 if x.element.size <= EXACT_IN_F32_BYTES else ElementType.F64
    return node.emit(Cast(x.element), compute(node.emit(Cast(wide), x)))


def at_least_f32(node: OnnxNode, x: Value) -> Value:
    """x, a 16-bit float as float32."""
    is_half = x.element in (ElementType.F16, ElementType.BF16)
    return node.emit(Cast(ElementType.F32), x) if is_half else x
