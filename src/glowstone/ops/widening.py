"""Floats of 16 bits computed as float32."""

from __future__ import annotations

from glowstone.graph import Builder, Operator, Value
from glowstone.ops.element_sets import HALVES
from glowstone.ops.elementwise import Cast
from glowstone.types import ElementType


def in_float32(builder: Builder, operator: Operator, *operands: Value | None) -> tuple[Value, ...]:
    """The operator's results on operands widened to float32; those that come out as float32 are rounded once."""
    widened = [_widened(builder, operand) for operand in operands]
    results = builder.emit_node(operator, *widened).results
    first = next(operand for operand in operands if operand is not None)
    narrow = Cast(first.element)
    return tuple(builder.emit(narrow, value) if value.element is ElementType.F32 else value for value in results)


def _widened(builder: Builder, operand: Value | None) -> Value | None:
    if operand is None or operand.element not in HALVES:
        return operand
    return builder.emit(Cast(ElementType.F32), operand)


def computed_element(element: ElementType) -> ElementType:
    """What is computed in where 16 bits are too few: float32 for 16-bit floats, else the type itself."""
    return ElementType.F32 if element in HALVES else element


def converted(builder: Builder, x: Value, element: ElementType) -> Value:
    """x in another element type; x itself where it has that type."""
    return x if x.element is element else builder.emit(Cast(element), x)
