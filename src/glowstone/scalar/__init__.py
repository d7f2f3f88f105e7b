"""Typed scalar expressions: build, print (`str`), parse, evaluate in NumPy."""

from glowstone.scalar.evaluate import convert, evaluate
from glowstone.scalar.expression import (
    CONVERSIONS,
    FUNCTIONS,
    Apply,
    Expression,
    Input,
    Literal,
    apply,
    cast,
    inputs_of,
    reinterpret,
    substitute,
    walk,
)
from glowstone.scalar.parser import parse_expression

__all__ = [
    "CONVERSIONS",
    "FUNCTIONS",
    "Apply",
    "Expression",
    "Input",
    "Literal",
    "apply",
    "cast",
    "convert",
    "evaluate",
    "inputs_of",
    "parse_expression",
    "reinterpret",
    "substitute",
    "walk",
]
