"""The domain of classical machine learning, and what its rules share."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.importer.text_labels import ML_DOMAIN
from glowstone.ops import Cast, Unsqueeze
from glowstone.types import ElementType

Array = np.ndarray[Any, np.dtype[Any]]

ml = functools.partial(imports, domain=ML_DOMAIN)
"""Registers a rule for an operator of the domain."""


def rows_of(node: OnnxNode) -> Value:
    """Operand 0 as [rows, features]; a vector is one row.

    Raises:
        ShapeError: it is neither.
    """
    x = node.operand(0)
    if x.rank == 1:
        return node.emit(Unsqueeze((0,)), x)
    if x.rank != 2:
        raise ShapeError("operand X is no matrix", expected="[rows, features]", found=str(x.type))
    return x


def as_float(node: OnnxNode, x: Value, element: ElementType = ElementType.F32) -> Value:
    """x as float32, or as float64 where it is that or `element` is; integers are rounded."""
    wanted = ElementType.F64 if ElementType.F64 in (x.element, element) else ElementType.F32
    return cast_to(node, x, wanted)


def cast_to(node: OnnxNode, x: Value, element: ElementType) -> Value:
    return x if x.element is element else node.emit(Cast(element), x)


def numbers(node: OnnxNode, name: str) -> Array:
    """An attribute of kind FLOATS as an array of float32; empty where it is left out."""
    return np.array(node.number_list(name) or (), np.float32)


def required_numbers(node: OnnxNode, name: str) -> Array:
    """`numbers` of an attribute that must have some.

    Raises:
        ModelError: it is missing or empty.
    """
    array = numbers(node, name)
    if array.size == 0:
        raise ModelError(f"attribute {name} is missing", expected="numbers")
    return array


def shaped(name: str, array: Array, *shape: int) -> Array:
    """The numbers of an attribute under a shape; one extent may be -1.

    Raises:
        ModelError: their count does not fit.
    """
    try:
        return array.reshape(shape)
    except ValueError:
        wanted = " x ".join("any" if extent < 0 else str(extent) for extent in shape)
        raise ModelError(f"attribute {name} has another length", expected=wanted, found=array.size) from None
