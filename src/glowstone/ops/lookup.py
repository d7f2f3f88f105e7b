"""Values found by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError, UnsupportedError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import constant_array
from glowstone.ops.element_samples import element_samples
from glowstone.ops.element_sets import ALL
from glowstone.scalar.search import found_keys
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

KEYS = frozenset({ElementType.F64, ElementType.F32, ElementType.I64, ElementType.I32, ElementType.I16})


@operator
class Lookup(Operator):
    """`values[i]` where x equals `keys[i]`, and the last of the values where it equals none.

    Keys are constant, of x's type, and rise; NaN comes last and equals NaN. There is one value more than keys.
    """

    operands = (Operand("x", KEYS), Operand("keys", KEYS, host=True), Operand("values", ALL, host=True))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, keys, values = operands
        array = constant_array(keys)
        if array is None or array.ndim != 1 or keys.element is not x.element:
            raise UnsupportedError("keys are no constants", expected=f"constants of {x.element}", found=str(keys.type))
        if array.size == 0 or not (array[:-1] < array[1:])[: _numbers(array) - 1].all():
            raise ModelError("keys do not rise", expected="distinct sorted numbers", found=array.tolist()[:4])
        if values.shape != (array.size + 1,):
            raise ShapeError("not one value a key, and one more", expected=[array.size + 1], found=list(values.shape))
        return (TensorType(values.element, x.shape),)

    def reference(self, x: Array, keys: Array, values: Array) -> Array:
        return np.asarray(values[found_keys(x, keys)])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        keys = np.array([-2, 0.5, 1, 4, np.nan], np.float32)
        values = np.array([10, 20, 30, 40, 50, -1])
        x = np.array([[-2, 0.5, 0.75], [np.nan, 9, -0.0], [1, 4, -np.inf]], np.float32)
        whole = np.array([[3, 7, -1], [7, 8, 9]])
        return [
            Sample(cls(), (x, keys, values)),
            Sample(cls(), (x, keys[:1], values[:2].astype(np.float32))),
            Sample(cls(), (x[0, 0], keys[:4], values[:5].astype(np.int16))),
            Sample(cls(), (whole, np.array([-1, 3, 7]), np.array([True, False, True, False]))),
            Sample(cls(), (whole[:0], np.array([-1, 3, 7]), values[:4])),
            *element_samples(cls(), KEYS - {ElementType.F32}, whole, whole[1], fixed=(np.arange(4.0),)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.zeros(2, np.float32)
        return [
            ErrorSample(cls(), (x, x, np.zeros(3)), "keys do not rise"),
            ErrorSample(cls(), (x, np.array([0]), np.zeros(2)), "keys are no constants"),
            ErrorSample(cls(), (x, x[:1], np.zeros(1)), "not one value a key"),
        ]


def _numbers(keys: Array) -> int:
    """How many keys are not the NaN that may come last."""
    return keys.size - int(bool(np.isnan(keys[-1])) if keys.dtype.kind == "f" else 0)
