"""Normalizations made of reductions and elementwise operators. 16-bit floats are computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.composed_reduction import ReduceL1, ReduceL2
from glowstone.ops.constant import constant, scalar
from glowstone.ops.element_samples import element_samples
from glowstone.ops.element_sets import FLOATS
from glowstone.ops.elementwise import Add, Div, Equal, Mul, Pow, Reciprocal, Sqrt, Sub, Where
from glowstone.ops.pooling import AveragePool
from glowstone.ops.reduction import ReduceMean
from glowstone.ops.shape import Reshape, Shape, Unsqueeze, unsqueeze
from glowstone.ops.widening import computed_element, converted
from glowstone.types import ElementType, TensorType, broadcast_shapes, normalize_axes, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]
FLOAT = (Operand("x", FLOATS),)
OTHER_FLOATS = FLOATS - {ElementType.F32}
SCALE_AND_BIAS = (Operand("scale", FLOATS), Operand("bias", FLOATS))


def moments(builder: Builder, x: Value, axes: tuple[int, ...]) -> tuple[Value, Value, Value]:
    """(mean, x - mean, variance) over axes, which stay with extent 1."""
    mean = builder.emit(ReduceMean(axes), x)
    centred = builder.emit(Sub(), x, mean)
    return mean, centred, builder.emit(ReduceMean(axes), builder.emit(Mul(), centred, centred))


def inverse_root(builder: Builder, x: Value, epsilon: float) -> Value:
    """1 / sqrt(x + epsilon)."""
    shifted = builder.emit(Add(), x, scalar(builder, epsilon, x.element))
    return builder.emit(Reciprocal(), builder.emit(Sqrt(), shifted))


def normalized(builder: Builder, x: Value, axes: tuple[int, ...], epsilon: float) -> Value:
    """(x - mean) / sqrt(variance + epsilon) over axes."""
    _, centred, variance = moments(builder, x, axes)
    return builder.emit(Mul(), centred, inverse_root(builder, variance, epsilon))


def per_channel(builder: Builder, parameter: Value, rank: int, element: ElementType) -> Value:
    """One number per channel, as an operand that broadcasts to [N, C, spatial...]."""
    wide = converted(builder, parameter, element)
    axes = tuple(range(1, rank - 1))
    return unsqueeze(builder, wide, axes) if axes else wide


def _numpy_normalized(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=axes, keepdims=True)
    return np.asarray(centred / np.sqrt(np.square(centred).mean(axis=axes, keepdims=True) + epsilon))


def _numpy_channels(parameter: Array, rank: int) -> Array:
    return parameter.astype(np.float64).reshape(-1, *[1] * (rank - 2))


def _normal(seed: int, *shapes: tuple[int, ...]) -> list[Array]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


def _check_channels(x: Value, count: int, *parameters: Value) -> None:
    for parameter in parameters:
        if parameter.shape != (count,):
            raise ShapeError(
                "scale and bias have another number of channels", expected=[count], found=list(parameter.shape)
            )


def _check_images(x: Value) -> None:
    if x.rank < 3:
        raise ShapeError("x is no batch of images", expected="rank 3 or more", found=str(x.type))


@operator
class InstanceNormalization(Operator):
    """Every image and channel normalized by itself, then scale and bias per channel. ONNX InstanceNormalization-6."""

    onnx = "InstanceNormalization-6"
    operands = FLOAT + SCALE_AND_BIAS
    epsilon: float = 1e-5

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, *parameters = operands
        _check_images(x)
        _check_channels(x, x.shape[1], *parameters)
        return (x.type,)

    def reference(self, x: Array, scale: Array, bias: Array) -> Array:
        normal = _numpy_normalized(x, tuple(range(2, x.ndim)), self.epsilon)
        return np.asarray(normal * _numpy_channels(scale, x.ndim) + _numpy_channels(bias, x.ndim)).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value, scale: Value, bias: Value) -> Value:
        element = computed_element(x.element)
        _, centred, variance = moments(builder, converted(builder, x, element), tuple(range(2, x.rank)))
        factor = builder.emit(
            Mul(), inverse_root(builder, variance, self.epsilon), per_channel(builder, scale, x.rank, element)
        )
        product = builder.emit(Mul(), centred, factor)
        result = builder.emit(Add(), product, per_channel(builder, bias, x.rank, element))
        return converted(builder, result, x.element)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        parameters = _normal(15, (3,), (3,))
        return [
            Sample(cls(epsilon), (*_normal(16, shape), *parameters))
            for epsilon, shape in ((1e-5, (2, 3, 4, 5)), (1e-2, (1, 3, 7)))
        ] + element_samples(cls(), OTHER_FLOATS, *_normal(16, (2, 3, 4)), *parameters)

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, two = _normal(17, (1, 3, 4), (2,))
        return [
            ErrorSample(cls(), (x, two, two), "another number of channels"),
            ErrorSample(cls(), (x[0], two, two), "no batch of images"),
        ]


@operator
class GroupNormalization(Operator):
    """Channels in groups, each image's group normalized by itself; scale and bias per channel.

    ONNX GroupNormalization-21. With `per_group`, scale and bias are per group, as in version 18.
    """

    onnx = "GroupNormalization-21"
    operands = FLOAT + SCALE_AND_BIAS
    groups: int = 1
    epsilon: float = 1e-5
    per_group: bool = False

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, *parameters = operands
        _check_images(x)
        if self.groups < 1 or x.shape[1] % self.groups:
            raise ShapeError("channels do not divide into groups", expected=f"{self.groups} groups", found=str(x.type))
        _check_channels(x, self.groups if self.per_group else x.shape[1], *parameters)
        return (x.type,)

    def reference(self, x: Array, scale: Array, bias: Array) -> Array:
        normal = _numpy_normalized(x.reshape(x.shape[0], self.groups, -1), (2,), self.epsilon).reshape(x.shape)
        repeats = x.shape[1] // self.groups if self.per_group else 1
        factor, offset = (_numpy_channels(np.repeat(parameter, repeats), x.ndim) for parameter in (scale, bias))
        return np.asarray(normal * factor + offset).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value, scale: Value, bias: Value) -> Value:
        element = computed_element(x.element)
        wide = converted(builder, x, element)
        grouped = builder.emit(Reshape(), wide, constant(builder, np.array([0, self.groups, -1], np.int64)))
        normal = normalized(builder, grouped, (2,), self.epsilon)
        if self.per_group:
            normal = _scaled(builder, normal, scale, bias)
        result = builder.emit(Reshape(True), normal, builder.emit(Shape(), x))
        if not self.per_group:
            result = _scaled(builder, result, scale, bias)
        return converted(builder, result, x.element)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x, six, other, flat = _normal(18, (2, 6, 4, 5), (6,), (6,), (3, 6, 7))
        return [
            Sample(cls(3), (x, six, other)),
            Sample(cls(2, 1e-2), (flat, six, other)),
            *element_samples(cls(2), OTHER_FLOATS, flat, six, other),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, six, two = _normal(17, (1, 6, 4), (6,), (2,))
        return [
            ErrorSample(cls(4), (x, six, six), "do not divide into groups"),
            ErrorSample(cls(2), (x, two, two), "another number of channels"),
            ErrorSample(cls(2, per_group=True), (x, six, six), "another number of channels"),
        ]


def _scaled(builder: Builder, x: Value, scale: Value, bias: Value) -> Value:
    """x times scale plus bias, per channel."""
    factor, offset = (per_channel(builder, parameter, x.rank, x.element) for parameter in (scale, bias))
    return builder.emit(Add(), builder.emit(Mul(), x, factor), offset)


@operator
class RMSNormalization(Operator):
    """x / sqrt(mean of squares + epsilon) * scale over the axes from `axis` on. ONNX RMSNormalization-23.

    The result has scale's element type.
    """

    onnx = "RMSNormalization-23"
    operands = (*FLOAT, Operand("scale", FLOATS))
    axis: int = -1
    epsilon: float = 1e-5

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, scale = operands
        normalize_axis(self.axis, x.rank)
        if broadcast_shapes(x.shape, scale.shape) != x.shape:
            raise ShapeError("scale does not broadcast to x", expected=list(x.shape), found=list(scale.shape))
        return (TensorType(scale.element, x.shape),)

    def reference(self, x: Array, scale: Array) -> Array:
        wide = x.astype(np.float64)
        axes = tuple(range(normalize_axis(self.axis, x.ndim), x.ndim))
        root = np.sqrt(np.square(wide).mean(axis=axes, keepdims=True) + self.epsilon)
        return np.asarray(wide / root * scale.astype(np.float64)).astype(scale.dtype)

    def decompose(self, builder: Builder, x: Value, scale: Value) -> Value:
        element = computed_element(x.element)
        wide = converted(builder, x, element)
        axes = tuple(range(normalize_axis(self.axis, x.rank), x.rank))
        mean = builder.emit(ReduceMean(axes), builder.emit(Mul(), wide, wide))
        normal = builder.emit(Mul(), wide, inverse_root(builder, mean, self.epsilon))
        return converted(builder, builder.emit(Mul(), normal, converted(builder, scale, element)), scale.element)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x, five, tail = _normal(19, (2, 3, 5), (5,), (3, 5))
        return [
            Sample(cls(), (x, five)),
            Sample(cls(1, 1e-2), (x, tail)),
            Sample(cls(-2), (x, tail)),
            *element_samples(cls(), OTHER_FLOATS, x, five),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, four = _normal(17, (2, 5), (5, 2, 5))
        return [
            ErrorSample(cls(), (x, four), "does not broadcast to x"),
            ErrorSample(cls(2), (x, x), "axis out of range"),
        ]


@operator
class LpNormalization(Operator):
    """x divided by its p-norm along an axis, p 1 or 2; 0 where the norm is. ONNX LpNormalization-1."""

    onnx = "LpNormalization-1"
    operands = FLOAT
    axis: int = -1
    p: int = 2

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        normalize_axis(self.axis, operands[0].rank)
        if self.p not in (1, 2):
            raise ShapeError("no such norm", expected="p of 1 or 2", found=self.p)
        return (operands[0].type,)

    def reference(self, x: Array) -> Array:
        wide = x.astype(np.float64)
        norm = np.linalg.norm(wide, ord=self.p, axis=self.axis, keepdims=True)
        return np.asarray(np.divide(wide, norm, out=np.zeros_like(wide), where=norm != 0)).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value) -> Value:
        element = computed_element(x.element)
        wide = converted(builder, x, element)
        norm = builder.emit((ReduceL1 if self.p == 1 else ReduceL2)((self.axis,)), wide)
        zero = scalar(builder, 0, element)
        quotient = builder.emit(Div(), wide, norm)
        result = builder.emit(Where(), builder.emit(Equal(), norm, zero), zero, quotient)
        return converted(builder, result, x.element)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        (x,) = _normal(20, (2, 3, 5))
        x[0, 1] = 0
        cases = [Sample(cls(axis, p), (x,)) for axis, p in ((-1, 2), (0, 1), (1, 2), (2, 1))]
        return cases + element_samples(cls(1), OTHER_FLOATS, x)

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [ErrorSample(cls(2), (x,), "axis out of range"), ErrorSample(cls(0, 3), (x,), "no such norm")]


@operator
class MeanVarianceNormalization(Operator):
    """(x - mean) / (sqrt(variance) + 1e-9) over axes. ONNX MeanVarianceNormalization-13."""

    onnx = "MeanVarianceNormalization-13"
    operands = FLOAT
    axes: tuple[int, ...] = (0, 2, 3)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        normalize_axes(self.axes, operands[0].rank)
        return (operands[0].type,)

    def reference(self, x: Array) -> Array:
        wide = x.astype(np.float64)
        deviation = wide.std(axis=self.axes, keepdims=True)
        return np.asarray((wide - wide.mean(axis=self.axes, keepdims=True)) / (deviation + 1e-9)).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value) -> Value:
        wide = converted(builder, x, computed_element(x.element))
        _, centred, variance = moments(builder, wide, self.axes)
        deviation = builder.emit(Sqrt(), variance)
        divisor = builder.emit(Add(), deviation, scalar(builder, 1e-9, wide.element))
        return converted(builder, builder.emit(Div(), centred, divisor), x.element)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        (x,) = _normal(21, (2, 3, 4, 5))
        return [
            *(Sample(cls(axes), (x,)) for axes in ((0, 2, 3), (2, 3), (0, -1))),
            *element_samples(cls((1, 2)), OTHER_FLOATS, x),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.ones((2, 3, 4), np.float32),), "axis out of range")]


@operator
class LRN(Operator):
    """x / (bias + alpha / size * sum of squares over `size` neighbouring channels) to the power beta. ONNX LRN-13."""

    onnx = "LRN-13"
    operands = FLOAT
    size: int = 1
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x = operands[0]
        if x.rank < 2 or self.size < 1:
            raise ShapeError("no channels to sum over", expected="rank 2 or more and size 1 or more", found=str(x.type))
        return (x.type,)

    def reference(self, x: Array) -> Array:
        wide = x.astype(np.float64)
        before, after = self._pads()
        padded = np.pad(np.square(wide), [(0, 0), (before, after), *[(0, 0)] * (x.ndim - 2)])
        total = sum(padded[:, first : first + x.shape[1]] for first in range(self.size))
        return np.asarray(wide / (self.bias + self.alpha / self.size * total) ** self.beta).astype(x.dtype)

    def _pads(self) -> tuple[int, int]:
        """Channels before and after."""
        return (self.size - 1) // 2, self.size // 2

    def decompose(self, builder: Builder, x: Value) -> Value:
        """The mean of squares is an average pool over the channels, taken as an axis of an image."""
        wide = converted(builder, x, computed_element(x.element))
        squares = builder.emit(Unsqueeze((1,)), builder.emit(Mul(), wide, wide))
        image = builder.emit(Reshape(), squares, constant(builder, np.array([0, 0, 0, -1], np.int64)))
        before, after = self._pads()
        pool = AveragePool((self.size, 1), (1, 1), (1, 1), (before, 0, after, 0), count_include_pad=True)
        mean = builder.emit(Reshape(True), builder.emit(pool, image), builder.emit(Shape(), x))
        alpha, beta, bias = (scalar(builder, number, wide.element) for number in (self.alpha, self.beta, self.bias))
        base = builder.emit(Add(), bias, builder.emit(Mul(), alpha, mean))
        return converted(builder, builder.emit(Div(), wide, builder.emit(Pow(), base, beta)), x.element)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        images, other = _normal(22, (2, 7, 3, 4), (1, 6, 5, 2))
        return [
            Sample(cls(3), (images * 30,)),
            Sample(cls(5, 0.5, 0.3, 2.0), (images,)),
            Sample(cls(1), (other,)),
            *element_samples(cls(3), OTHER_FLOATS, other * 20),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(3), (np.ones(3, np.float32),), "no channels to sum over")]
