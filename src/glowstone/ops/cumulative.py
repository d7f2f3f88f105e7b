"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_samples import element_samples
from glowstone.ops.element_sets import NUMBERS
from glowstone.types import ElementType, TensorType, is_float_dtype, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Cumulative(Operator):
    """Base: every element joined with those before it; without itself where `exclusive`, from the end if `reverse`.

    `mode` names the low-level operation's.
    """

    operands = (Operand("x", NUMBERS),)
    mode: ClassVar[str] = ""
    axis: int = 0
    exclusive: bool = False
    reverse: bool = False

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        normalize_axis(self.axis, operands[0].rank)
        return (operands[0].type,)

    def reference(self, x: Array) -> Array:
        wide = x.astype(np.float64) if is_float_dtype(x.dtype) else x
        terms = np.moveaxis(wide, self.axis, 0)
        terms = terms[::-1] if self.reverse else terms
        is_sum = self.mode == "sum"
        running = np.asarray((np.cumsum if is_sum else np.cumprod)(terms, axis=0, dtype=terms.dtype))
        if self.exclusive and len(running):
            running = np.concatenate([np.full_like(running[:1], 0 if is_sum else 1), running[:-1]])
        return np.moveaxis(running[::-1] if self.reverse else running, 0, self.axis).astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.random.default_rng(14).uniform(-2, 2, (3, 4, 5)).astype(np.float32)
        cases = [(0, False, False), (1, True, False), (-1, False, True), (2, True, True)]
        return [Sample(cls(*case), (x,)) for case in cases] + [
            Sample(cls(), (np.arange(1, 6),)),
            Sample(cls(1, True), (x[:, :0],)),
            *element_samples(cls(1), NUMBERS - {ElementType.F32}, np.array([[1, 2, 3, 1], [2, 2, 1, 3]])),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(2), (np.ones((2, 3), np.float32),), "axis out of range")]


@operator
class CumSum(Cumulative):
    """Running sum along an axis. ONNX CumSum-14."""

    onnx = "CumSum-14"
    mode = "sum"


@operator
class CumProd(Cumulative):
    """Running product along an axis. ONNX CumProd-26."""

    onnx = "CumProd-26"
    mode = "prod"
