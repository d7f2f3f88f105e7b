"""Softmax and normalizations over the last axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import FLOATS
from glowstone.types import TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class Softmax(Operator):
    """exp(x - max) / sum of that, along one axis. ONNX Softmax-13."""

    onnx = "Softmax-13"
    operands = (Operand("x", FLOATS),)
    axis: int = -1

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        normalize_axis(self.axis, operands[0].rank)
        return (operands[0].type,)

    def reference(self, x: Array) -> Array:
        if x.size == 0:
            return x
        with np.errstate(all="ignore"):
            powers = np.exp(x.astype(np.float64) - x.max(axis=self.axis, keepdims=True))
            return np.asarray(powers / powers.sum(axis=self.axis, keepdims=True)).astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(10)
        x = random.uniform(-5, 5, (2, 3, 17)).astype(np.float32)
        return [Sample(cls(axis), (x,)) for axis in (-1, 0, 1)] + [Sample(cls(), (x * 40,)), Sample(cls(), (x[:0],))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(2), (np.ones((2, 3), np.float32),), "axis out of range")]


@operator
class LayerNormalization(Operator):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the axes from `axis` on. ONNX LayerNormalization-17.

    scale and bias have x's shape from `axis` on.
    """

    onnx = "LayerNormalization-17"
    operands = (Operand("x", FLOATS), Operand("scale", FLOATS), Operand("bias", FLOATS, optional=True))
    axis: int = -1
    epsilon: float = 1e-5

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x = operands[0]
        tail = x.shape[normalize_axis(self.axis, x.rank) :]
        for parameter in operands[1:]:
            if parameter.shape != tail:
                raise ShapeError(
                    "scale and bias have the normalized axes", expected=list(tail), found=list(parameter.shape)
                )
        return (x.type,)

    def reference(self, x: Array, scale: Array, bias: Array | None = None) -> Array:
        axes = tuple(range(normalize_axis(self.axis, x.ndim), x.ndim))
        if x.size == 0:
            return x
        with np.errstate(all="ignore"):
            centred = x.astype(np.float64)
            centred = centred - centred.mean(axis=axes, keepdims=True)
            variance = (centred * centred).mean(axis=axes, keepdims=True)
            result = centred / np.sqrt(variance + self.epsilon) * scale
        return np.asarray(result if bias is None else result + bias).astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(11)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls(), (normal(2, 5, 33), normal(33), normal(33))),
            Sample(cls(epsilon=1e-12), (normal(3, 64), normal(64))),
            Sample(cls(1), (normal(2, 3, 7), normal(3, 7), normal(3, 7))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [ErrorSample(cls(), (x, np.ones(2, np.float32)), "scale and bias")]
