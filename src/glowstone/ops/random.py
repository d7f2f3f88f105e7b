"""Random numbers that a seed decides: those that NumPy's RandomState draws, as onnx's reference evaluator does.

The same seed gives the same numbers in every run, for any number of threads. Numbers are data of the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_shape
from glowstone.ops.element_sets import FLOATS, SHAPES
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

SEEDS = 1 << 32
"""Seeds are 0 to before this."""


@dataclass(frozen=True, eq=False)
class Drawn(Operator):
    """Base: numbers of the given shape, in the order of its elements. Drawn in float64."""

    operands = (Operand("shape", SHAPES, host=True),)
    seed: int = 0
    element: ElementType = ElementType.F32

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        if not 0 <= self.seed < SEEDS:
            raise ModelError("the seed is out of range", expected=f"0 to {SEEDS - 1}", found=self.seed)
        return (TensorType(self.element, known_shape(operands[0], "shape")),)

    def reference(self, shape: Array) -> Array:
        state = np.random.RandomState(self.seed)
        return np.asarray(self.numbers(state, tuple(int(extent) for extent in shape))).astype(self.element.dtype)

    def numbers(self, state: np.random.RandomState, shape: tuple[int, ...]) -> Any:
        """The numbers in float64."""
        raise NotImplementedError

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [
            ErrorSample(cls(seed=-1), (np.array([2]),), "seed is out of range"),
            ErrorSample(cls(), (np.array([2, -1]),), "negative extent"),
        ]


@operator
class UniformNumbers(Drawn):
    """Numbers that are equally likely between `low` and `high`. ONNX RandomUniform-22 and RandomUniformLike-22."""

    low: float = 0.0
    high: float = 1.0

    def numbers(self, state: np.random.RandomState, shape: tuple[int, ...]) -> Any:
        return state.random_sample(shape) * (self.high - self.low) + self.low

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        typed = [Sample(cls(3, element), (np.array([3, 4]),)) for element in sorted(FLOATS, key=str)]
        return [*typed, Sample(cls(7, ElementType.F32, -2.0, 5.0), (np.array([50, 40]),))]


@operator
class NormalNumbers(Drawn):
    """Normally distributed numbers. ONNX RandomNormal-22 and RandomNormalLike-22."""

    mean: float = 0.0
    deviation: float = 1.0

    def numbers(self, state: np.random.RandomState, shape: tuple[int, ...]) -> Any:
        return state.standard_normal(shape) * self.deviation + self.mean

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        typed = [Sample(cls(3, element), (np.array([3, 4]),)) for element in sorted(FLOATS, key=str)]
        return [*typed, Sample(cls(7, ElementType.F32, 1.0, 0.25), (np.array([50, 40]),))]
