"""Causal convolution with the state of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import scalar
from glowstone.ops.convolution import Conv
from glowstone.ops.element_sets import FLOATS
from glowstone.ops.elementwise import Mul, Sigmoid
from glowstone.ops.operand_checks import require_one_element
from glowstone.ops.shape import Concat
from glowstone.ops.shape_arithmetic import extents, sliced, stretched
from glowstone.types import LARGEST_EXTENT, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

ACTIVATIONS = ("none", "silu", "swish")
RANK = 3


@operator
class CausalConvWithState(Operator):
    """Depthwise convolution of x behind its past, and the last positions of both. ONNX CausalConvWithState-27.

    x [N, C, L], w [C, 1, K], bias [C], past [N, C, K - 1], zeros where left out. The activation is none, or x times its
    sigmoid under either of its names.
    """

    onnx = "CausalConvWithState-27"
    operands = (
        Operand("x", FLOATS),
        Operand("w", FLOATS),
        Operand("bias", FLOATS, optional=True),
        Operand("past", FLOATS, optional=True),
    )
    result_names = ("y", "present")
    activation: str = "none"

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        x, w, bias, past = (*operands, None, None)[:4]
        assert x is not None
        assert w is not None
        require_one_element(x, w, bias, past)
        if self.activation not in ACTIVATIONS:
            raise ModelError("the activation is unknown", expected=", ".join(ACTIVATIONS), found=self.activation)
        if x.rank != RANK or w.rank != RANK or w.shape[:2] != (x.shape[1], 1) or w.shape[2] < 1:
            raise ShapeError(
                "weights are one filter per channel", expected="[C, 1, K] for [N, C, L]", found=f"{w.type}, {x.type}"
            )
        if bias is not None and bias.shape != x.shape[1:2]:
            raise ShapeError("bias is one number per channel", expected=[x.shape[1]], found=list(bias.shape))
        state = (*x.shape[:2], w.shape[2] - 1)
        if past is not None and past.shape != state:
            raise ShapeError("the past has another shape", expected=list(state), found=list(past.shape))
        return x.type, x.type.with_shape(state)

    def reference(self, x: Array, w: Array, bias: Array | None = None, past: Array | None = None) -> tuple[Array, ...]:
        taps = w.shape[2]
        before = np.zeros((*x.shape[:2], taps - 1), x.dtype) if past is None else past
        whole = np.concatenate([before, x], axis=2)
        parts = [whole[:, :, tap : tap + x.shape[2]].astype(np.float64) * w[:, :, tap] for tap in range(taps)]
        y = sum(parts, start=np.zeros(x.shape)) + (0 if bias is None else bias[:, None].astype(np.float64))
        if self.activation != "none":
            y = y / (1 + np.exp(-y))
        return np.asarray(y).astype(x.dtype), whole[:, :, whole.shape[2] - (taps - 1) :]

    def decompose(
        self, builder: Builder, x: Value, w: Value, bias: Value | None = None, past: Value | None = None
    ) -> tuple[Value, ...]:
        state = w.shape[2] - 1
        if past is None:
            shape = (extents(builder, x, 0, RANK - 1), state)
            past = stretched(builder, scalar(builder, 0.0, x.element), *shape)
        whole = builder.emit(Concat(RANK - 1), past, x)
        y = builder.emit(Conv((1,), (1,), (0, 0), w.shape[0]), whole, w, bias)
        if self.activation != "none":
            y = builder.emit(Mul(), y, builder.emit(Sigmoid(), y))
        start = -state if state else LARGEST_EXTENT
        return y, sliced(builder, whole, RANK - 1, start, LARGEST_EXTENT)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(81)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls(), (normal(2, 4, 7), normal(4, 1, 3))),
            Sample(cls("silu"), (normal(2, 4, 1), normal(4, 1, 4), normal(4), normal(2, 4, 3))),
            Sample(cls("swish"), (normal(1, 3, 2), normal(3, 1, 4), normal(3))),
            Sample(cls(), (normal(1, 3, 5), normal(3, 1, 1))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, w = np.ones((1, 3, 5), np.float32), np.ones((3, 1, 2), np.float32)
        return [
            ErrorSample(cls(), (x, w[:2]), "one filter per channel"),
            ErrorSample(cls(), (x, w, x[0, 0]), "one number per channel"),
            ErrorSample(cls(), (x, w, None, x), "the past has another shape"),
            ErrorSample(cls("relu"), (x, w), "the activation is unknown"),
        ]
