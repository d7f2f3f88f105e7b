"""Typed scalar expressions: build, print (`str`), parse, evaluate in NumPy."""

from glowstone.scalar.evaluate import convert, evaluate, literal_array
from glowstone.scalar.expression import (
    CASTS,
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
    tree_size,
    walk,
)
from glowstone.scalar.parser import parse_expression

__all__ = [
    "CASTS",
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
    "literal_array",
    "parse_expression",
    "reinterpret",
    "substitute",
    "tree_size",
    "walk",
]
