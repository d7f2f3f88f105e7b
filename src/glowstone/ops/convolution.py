"""Convolution and batch normalization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample, sum_bound
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import FLOATS, HALVES
from glowstone.ops.elementwise import Add, Div, Mul, Sqrt, Sub
from glowstone.ops.operand_checks import require_one_element
from glowstone.ops.shape import Squeeze, unsqueeze
from glowstone.ops.widening import computed_element, converted, in_float32
from glowstone.ops.window import Window
from glowstone.types import ElementType, TensorType, is_float_dtype

Array = np.ndarray[Any, np.dtype[Any]]

SUMMED = FLOATS | {ElementType.I32}
LINE_RANK = 3
"""Rank of what has one spatial axis."""


@operator
class Conv(Operator):
    """Convolution (cross-correlation) with groups, strides, dilations and padding. ONNX Conv-11.

    x [N, C, spatial], w [O, C / groups, kernel], bias [O]. int32 too: the sums of quantized convolutions.
    """

    onnx = "Conv-11"
    operands = (Operand("x", SUMMED), Operand("w", SUMMED), Operand("bias", SUMMED, optional=True))
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    groups: int = 1
    padding: str = "explicit"

    def window(self, kernel: tuple[int, ...]) -> Window:
        return Window(kernel, self.strides, self.dilations, self.pads, self.padding)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        require_one_element(*operands)
        return (self.result_of(*operands),)

    def result_of(self, x: Value, w: Value, bias: Value | None = None) -> TensorType:
        """The type of the result, x's element type kept, whatever those of the others are."""
        if x.rank < 3 or w.rank != x.rank:
            raise ShapeError(
                "ranks do not fit a convolution", expected="x and w of one rank, 3 or more", found=f"{x.type}, {w.type}"
            )
        if self.groups < 1 or w.shape[0] % self.groups or x.shape[1] != w.shape[1] * self.groups:
            raise ShapeError(
                "channels do not fit the weights",
                expected=f"{w.shape[1]} input channels in each of {self.groups} groups",
                found=f"{x.type}, {w.type}",
            )
        if bias is not None and bias.shape != w.shape[:1]:
            raise ShapeError(
                "bias is one number per output channel", expected=list(w.shape[:1]), found=list(bias.shape)
            )
        window = self.window(w.shape[2:])
        window.check(x.rank - 2)
        return x.type.with_shape((x.shape[0], w.shape[0], *window.output_extents(x.shape[2:])))

    def known(self, *operands: Value | None) -> None:
        """No shape hangs on window arithmetic over data."""

    def reference(self, x: Array, w: Array, bias: Array | None = None) -> Array:
        window = self.window(w.shape[2:])
        pads = window.resolved_pads(x.shape[2:])
        count = x.ndim - 2
        margins = list(zip(pads[:count], pads[count:], strict=True))
        wide: Any = np.float64 if is_float_dtype(x.dtype) else x.dtype  # integers wrap
        padded = np.pad(x.astype(wide), [(0, 0), (0, 0), *margins])
        inside = np.pad(np.ones(x.shape[2:], np.bool_), margins)
        spatial = window.output_extents(x.shape[2:])
        outputs = w.shape[0] // self.groups
        result = np.zeros((x.shape[0], w.shape[0], *spatial), wide)
        for group in range(self.groups):
            ins = slice(group * w.shape[1], (group + 1) * w.shape[1])
            outs = slice(group * outputs, (group + 1) * outputs)
            for position in np.ndindex(*w.shape[2:]):
                window_slices = tuple(
                    slice(k * dilation, k * dilation + (extent - 1) * stride + 1, stride) if extent else slice(0, 0)
                    for k, dilation, extent, stride in zip(position, self.dilations, spatial, self.strides, strict=True)
                )
                part = padded[(slice(None), ins, *window_slices)]
                taps = w[(outs, slice(None), *position)].astype(wide)
                product = np.einsum("oi,ni...->no...", taps, part)
                result[:, outs] += np.where(inside[window_slices], product, 0)  # padding adds nothing, even to infinity
        if bias is not None:
            result += bias.reshape(-1, *[1] * count)
        return result.astype(x.dtype)

    def ulp_bound(self, *operands: Value | None) -> float:
        """Sums over the channels of a group and the window."""
        w = operands[1]
        return sum_bound(math.prod(w.shape[1:]) if w is not None else 1)

    def decompose(self, builder: Builder, x: Value, w: Value, bias: Value | None = None) -> Value | None:
        if x.element in HALVES:
            return in_float32(builder, self, x, w, bias)[0]
        if x.rank == LINE_RANK:
            return self._as_plane(builder, x, w, bias)
        if bias is None:
            return None
        product = builder.emit(self, x, w)
        axes = (0, *range(2, x.rank))
        return builder.emit(Add(), product, unsqueeze(builder, bias, axes))

    def _as_plane(self, builder: Builder, x: Value, w: Value, bias: Value | None) -> Value:
        """One spatial axis as the rows of a plane of height 1, for which there are fast kernels."""
        before, after = self.pads
        conv = Conv((1, *self.strides), (1, *self.dilations), (0, before, 0, after), self.groups, self.padding)
        height = (LINE_RANK - 1,)
        result = builder.emit(conv, unsqueeze(builder, x, height), unsqueeze(builder, w, height), bias)
        return builder.emit(Squeeze(height), result)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(4)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls(), (normal(1, 3, 5, 6), normal(4, 3, 1, 1))),
            Sample(cls(pads=(1, 1, 1, 1)), (normal(2, 17, 7, 7), normal(9, 17, 3, 3), normal(9))),
            Sample(cls((2, 2), pads=(3, 3, 3, 3)), (normal(1, 3, 20, 18), normal(16, 3, 7, 7), normal(16))),
            Sample(cls((2, 1), pads=(2, 2, 2, 2), groups=24), (normal(1, 24, 9, 8), normal(24, 1, 5, 5))),
            Sample(cls(groups=2, dilations=(2, 1)), (normal(1, 16, 9, 8), normal(32, 8, 3, 2), normal(32))),
            Sample(cls(groups=3), (normal(1, 6, 4, 4), normal(9, 2, 2, 2))),
            Sample(cls(padding="same_upper", strides=(2, 2)), (normal(1, 8, 7, 6), normal(8, 8, 3, 3))),
            Sample(cls((1,), (2,), (1, 0)), (normal(2, 5, 11), normal(3, 5, 3), normal(3))),
            Sample(cls((1, 2, 1), (1, 1, 1), (1, 0, 0, 1, 1, 0)), (normal(1, 2, 4, 5, 3), normal(3, 2, 2, 2, 2))),
            Sample(cls(), (normal(0, 8, 4, 4), normal(8, 8, 1, 1))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, w = np.ones((1, 3, 4, 4), np.float32), np.ones((2, 3, 3, 3), np.float32)
        return [
            ErrorSample(cls(), (x, w[:, :2]), "channels do not fit"),
            ErrorSample(cls(), (x, w[..., 0]), "ranks do not fit"),
            ErrorSample(cls(), (x, w, np.ones(3, np.float32)), "bias is one number"),
            ErrorSample(cls(), (x[..., :2], w), "larger than the padded input"),
        ]


@operator
class BatchNormalization(Operator):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias per channel, axis 1. ONNX BatchNormalization-15."""

    onnx = "BatchNormalization-15"
    operands = tuple(Operand(name, FLOATS) for name in ("x", "scale", "bias", "mean", "variance"))
    epsilon: float = 1e-5

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, *parameters = operands
        if x.rank < 1:
            raise ShapeError("x has no channels", expected="rank 1 or more", found=str(x.type))
        channels = x.shape[1] if x.rank > 1 else 1
        for parameter in parameters:
            if parameter.shape != (channels,):
                raise ShapeError(
                    "parameters are one number per channel", expected=[channels], found=list(parameter.shape)
                )
        return (x.type,)

    def reference(self, x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> Array:
        shape = (-1, *[1] * max(x.ndim - 2, 0))
        wide = [parameter.astype(np.float64).reshape(shape) for parameter in (scale, bias, mean, variance)]
        scale, bias, mean, variance = wide
        return np.asarray((x - mean) / np.sqrt(variance + self.epsilon) * scale + bias).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value, scale: Value, bias: Value, mean: Value, variance: Value) -> Value:
        """Parameters may have other element types than x; those of 16 bits are combined in float32."""
        element = computed_element(x.element)
        wide = (converted(builder, parameter, element) for parameter in (scale, bias, mean, variance))
        scale, bias, mean, variance = wide
        deviation = builder.emit(Sqrt(), builder.emit(Add(), variance, scalar(builder, self.epsilon, element)))
        factor = builder.emit(Div(), scale, deviation)
        offset = builder.emit(Sub(), bias, builder.emit(Mul(), mean, factor))
        factor, offset = converted(builder, factor, x.element), converted(builder, offset, x.element)
        axes = tuple(range(1, x.rank - 1))
        if axes:
            factor, offset = unsqueeze(builder, factor, axes), unsqueeze(builder, offset, axes)
        return builder.emit(Add(), builder.emit(Mul(), x, factor), offset)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(5)
        parameters = [random.standard_normal(6).astype(np.float32) for _ in range(3)]
        variance = random.uniform(0.5, 2, 6).astype(np.float32)
        return [
            Sample(cls(epsilon), (random.standard_normal(shape).astype(np.float32), *parameters, variance))
            for epsilon, shape in ((1e-5, (2, 6, 3, 4)), (1e-2, (3, 6)), (1e-3, (1, 6, 5)))
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, p = np.ones((1, 3, 2), np.float32), np.ones(2, np.float32)
        return [ErrorSample(cls(), (x, p, p, p, p), "one number per channel")]
