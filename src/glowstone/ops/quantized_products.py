"""Products of quantized numbers: exact sums in int32, then one rounding to the result's scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import constant_array
from glowstone.ops.convolution import Conv
from glowstone.ops.element_sets import FLOATS_OF_8_BITS
from glowstone.ops.elementwise import Cast, Div, Mul, Sub
from glowstone.ops.linear import MatMul
from glowstone.ops.quantization import (
    BYTES,
    F32,
    I32,
    SCALES,
    difference_element,
    per_index,
    quantized,
    quantized_array,
)
from glowstone.ops.shape import unsqueeze
from glowstone.types import ElementType, Shape, TensorType, broadcast_shapes

Array = np.ndarray[Any, np.dtype[Any]]

EXACT_IN_F32 = 2**24
"""Whole numbers up to this are exact in float32."""
LARGEST_DIFFERENCE = 255
"""Of two bytes."""
FACTORS = BYTES | FLOATS_OF_8_BITS
INTEGER_PRODUCT = (
    Operand("a", BYTES),
    Operand("b", BYTES),
    Operand("a_zero_point", BYTES, optional=True),
    Operand("b_zero_point", BYTES, optional=True),
)


def centred(builder: Builder, x: Value, zero_point: Value | None) -> Value:
    """x - zero_point in int32, floats in float32; the zero point broadcasts."""
    exact = Cast(difference_element(x.element))
    wide = builder.emit(exact, x)
    return wide if zero_point is None else builder.emit(Sub(), wide, builder.emit(exact, zero_point))


def integer_product(builder: Builder, left: Value, right: Value, b: Value, b_zero: Value | None) -> Value:
    """The product of centred matrices, in int32; right is b less its zero point. With floats it is in float32.

    Where no sum can leave the whole numbers that float32 holds, it is computed in float32, for which there are fast
    kernels: every sum of such products is exact there, in any order.
    """
    wide = Cast(F32)
    has_floats = F32 in (left.element, right.element)
    if not has_floats and _largest_sum(b, b_zero) >= EXACT_IN_F32:
        return builder.emit(MatMul(), left, right)
    product = builder.emit(MatMul(), builder.emit(wide, left), builder.emit(wide, right))
    return product if has_floats else builder.emit(Cast(I32), product)


def _largest_sum(b: Value, b_zero: Value | None) -> float:
    """No sum of products of the centred left matrix and b is larger."""
    weights, zero = constant_array(b), constant_array(b_zero)
    if weights is not None and (b_zero is None or zero is not None):
        sums = np.abs(weights.astype(np.int64) - (0 if zero is None else zero.astype(np.int64)))
        return LARGEST_DIFFERENCE * float(sums.sum(axis=0 if sums.ndim == 1 else -2).max(initial=0))
    if b.dynamic:
        return math.inf
    return LARGEST_DIFFERENCE**2 * (b.shape[0] if b.rank == 1 else b.shape[-2])


def per_row(builder: Builder, parameter: Value | None) -> Value | None:
    """A vector with one number for each row of a matrix, as a column."""
    if parameter is None or parameter.rank != 1:
        return parameter
    if parameter.type.size > 1 or parameter.dynamic:
        return unsqueeze(builder, parameter, (1,))
    return per_index(builder, parameter, 1, 0)


def per_channel(builder: Builder, parameter: Value | None, rank: int, axis: int) -> Value | None:
    """A number, or a vector along a channel axis, so that it broadcasts."""
    return None if parameter is None else per_index(builder, parameter, rank, axis)


def requantized(builder: Builder, sums: Value, scales: Sequence[Value], zero_point: Value) -> Value:
    """int32 sums in units of the first two scales, to integers in units of the third."""
    first, second, third = (builder.emit(Cast(F32), scale) for scale in scales)
    factor = builder.emit(Div(), builder.emit(Mul(), first, second), third)
    number = builder.emit(Mul(), builder.emit(Cast(F32), sums), factor)
    return quantized(builder, number, zero_point, zero_point.element)


def _requantized_array(sums: Array, scales: Sequence[Array], zero_point: Array) -> Array:
    first, second, third = (scale.astype(np.float32) for scale in scales)
    number = sums.astype(np.float32) * (first * second / third)
    return quantized_array(number, zero_point.astype(np.float32), ElementType.from_dtype(zero_point.dtype))


def _centred_array(x: Array, zero_point: Array) -> Array:
    """`centred` in NumPy, in float64, which holds all sums of bytes exactly."""
    return np.asarray(x.astype(np.float64) - zero_point.astype(np.float64))


def _column(parameter: Array | None) -> Array:
    """`per_row` in NumPy; 0 for a zero point left out."""
    if parameter is None:
        return np.zeros((), np.int64)
    return parameter[:, None] if parameter.ndim == 1 and parameter.size > 1 else parameter


def _along(parameter: Array | None, rank: int, axis: int) -> Array:
    """`per_channel` in NumPy; 0 for a zero point left out."""
    if parameter is None or parameter.size == 1:
        return np.zeros((), np.int64) if parameter is None else parameter.reshape(())
    return parameter.reshape((-1, *[1] * (rank - axis - 1)))


def _convolve(conv: Conv, x: Array, w: Array, bias: Array | None) -> Array:
    """int32 sums; float64 holds them exactly."""
    sums = conv.reference(x.astype(np.float64), w.astype(np.float64), None)
    if bias is not None:
        sums = sums + bias.reshape((-1, *[1] * (x.ndim - 2)))
    return sums.astype(np.int64).astype(np.int32)


def _check_rows(name: str, parameter: Value | None, a: Value) -> None:
    """Raise ShapeError unless a number for all, or one per row, fits the left matrix."""
    if parameter is not None and parameter.rank == 1 and parameter.type.size != 1:
        _check_broadcast(name, (*parameter.shape, 1), a)
    elif parameter is not None:
        _check_broadcast(name, parameter.shape, a)


def _check_broadcast(name: str, shape: Shape, matrix: Value) -> None:
    if broadcast_shapes(matrix.shape, shape) != matrix.shape:
        raise ShapeError(f"{name} does not broadcast to its matrix", expected=list(matrix.shape), found=list(shape))


def _check_channels(name: str, parameter: Value | None, channels: int) -> None:
    if parameter is not None and parameter.type.size != 1 and parameter.shape != (channels,):
        raise ShapeError(f"{name} does not fit the output channels", expected=[channels], found=list(parameter.shape))


@operator
class MatMulInteger(Operator):
    """(a - a_zero_point) (b - b_zero_point) in int32; zero points for all, per row of a, per column of b.

    ONNX MatMulInteger-10.
    """

    onnx = "MatMulInteger-10"
    operands = INTEGER_PRODUCT

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        a, b, a_zero, b_zero = (*operands, None, None)[:4]
        assert a is not None
        assert b is not None
        _check_rows("the zero point of a", a_zero, a)
        if b_zero is not None:
            _check_broadcast("the zero point of b", b_zero.shape, b)
        return (_product_type(a, b, I32),)

    def reference(self, a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
        left = a.astype(np.int32) - _column(a_zero).astype(np.int32)
        right = b.astype(np.int32) - (0 if b_zero is None else b_zero.astype(np.int32))
        return np.asarray(np.matmul(left, right))

    def decompose(
        self, builder: Builder, a: Value, b: Value, a_zero: Value | None = None, b_zero: Value | None = None
    ) -> Value:
        left = centred(builder, a, per_row(builder, a_zero))
        return integer_product(builder, left, centred(builder, b, b_zero), b, b_zero)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(31)
        a, b = random.integers(0, 256, (4, 3), np.uint8), random.integers(-128, 128, (3, 5), np.int8)
        return [
            Sample(cls(), (a, b.view(np.uint8), np.array(12, np.uint8), np.array(200, np.uint8))),
            Sample(cls(), (a, b)),
            Sample(cls(), (a[None], b, np.array(12, np.uint8), None)),
            Sample(cls(), (np.full((1, 300), 255, np.uint8), np.full((300, 2), 255, np.uint8))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        one = np.ones((2, 3), np.uint8)
        three = np.ones(3, np.uint8)
        return [
            ErrorSample(cls(), (one, one), "inner extents differ"),
            ErrorSample(cls(), (one, one.T, three), "broadcast"),
            ErrorSample(cls(), (one, one.T, None, three), "broadcast"),
        ]


def _product_type(a: Value, b: Value, element: ElementType) -> TensorType:
    """The type of the matrix product, whatever the elements of the factors."""
    (product,) = MatMul().infer(_retyped(a), _retyped(b))
    return product.with_element(element)


def _retyped(value: Value) -> Value:
    return Value(value.type.with_element(I32))


@operator
class QLinearMatMul(Operator):
    """The matrix product of quantized matrices, quantized to the scale and zero point of y. ONNX QLinearMatMul-21.

    Scales and zero points of a are for all or per row, those of b for all or per column.
    """

    onnx = "QLinearMatMul-21"
    operands = (
        Operand("a", FACTORS),
        Operand("a_scale", SCALES),
        Operand("a_zero_point", FACTORS),
        Operand("b", FACTORS),
        Operand("b_scale", SCALES),
        Operand("b_zero_point", FACTORS),
        Operand("y_scale", SCALES),
        Operand("y_zero_point", FACTORS),
    )

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        a, a_scale, a_zero, b, b_scale, b_zero, _, y_zero = operands
        for name, parameter in (("the scale of a", a_scale), ("the zero point of a", a_zero)):
            _check_rows(name, parameter, a)
        for name, parameter in (("the scale of b", b_scale), ("the zero point of b", b_zero)):
            _check_broadcast(name, parameter.shape, b)
        return (_product_type(a, b, y_zero.element),)

    def reference(self, *operands: Array) -> Array:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = operands
        left = _centred_array(a, _column(a_zero))
        sums = np.matmul(left, _centred_array(b, b_zero))
        return _requantized_array(sums, (_column(a_scale), b_scale, y_scale), y_zero)

    def decompose(self, builder: Builder, *operands: Value) -> Value:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = operands
        left = centred(builder, a, per_row(builder, a_zero))
        sums = integer_product(builder, left, centred(builder, b, b_zero), b, b_zero)
        row_scale = per_row(builder, a_scale)
        assert row_scale is not None
        return requantized(builder, sums, (row_scale, b_scale, y_scale), y_zero)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(32)
        a, b = random.integers(0, 256, (2, 4, 3), np.uint8), random.integers(0, 256, (3, 5), np.uint8)
        scales = [np.array(number, np.float32) for number in (0.0066, 0.00705, 0.0107)]
        zeros = [np.array(number, np.uint8) for number in (113, 114, 118)]
        parameters = [(scales[index], zeros[index]) for index in range(3)]
        return [
            Sample(cls(), (a, *parameters[0], b, *parameters[1], *parameters[2])),
            Sample(cls(), (a[0], *parameters[0], b, *parameters[1], *parameters[2])),
            *(cls._float_sample(element) for element in sorted(FLOATS_OF_8_BITS, key=str)),
        ]

    @classmethod
    def _float_sample(cls, element: ElementType) -> Sample:
        random = np.random.default_rng(33)
        a, b = (random.standard_normal(shape).astype(element.dtype) for shape in ((4, 3), (3, 5)))
        scale, zero = np.array(0.5, np.float32), np.zeros((), element.dtype)
        return Sample(cls(), (a, scale, zero, b, scale, zero, scale, zero))

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        one, scale, zero = np.ones((2, 3), np.uint8), np.array(1, np.float32), np.array(0, np.uint8)
        return [ErrorSample(cls(), (one, scale, zero, one, scale, zero, scale, zero), "inner extents differ")]


class IntegerConvolution(Operator):
    """Base: the attributes of a convolution."""

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    groups: int
    padding: str

    @property
    def conv(self) -> Conv:
        """The convolution of the centred numbers."""
        return Conv(self.strides, self.dilations, self.pads, self.groups, self.padding)


@operator
class ConvInteger(IntegerConvolution):
    """Convolution of x - x_zero_point by w - w_zero_point in int32; padding counts as the zero point.

    The zero point of w is for all or per output channel. ONNX ConvInteger-10.
    """

    onnx = "ConvInteger-10"
    operands = (
        Operand("x", BYTES),
        Operand("w", BYTES),
        Operand("x_zero_point", BYTES, optional=True),
        Operand("w_zero_point", BYTES, optional=True),
    )
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    groups: int = 1
    padding: str = "explicit"

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, w = operands[:2]
        result = self.conv.result_of(x, w)
        _check_channels("the zero point of w", operands[3] if len(operands) > 3 else None, w.shape[0])
        return (result.with_element(I32),)

    def reference(self, x: Array, w: Array, x_zero: Array | None = None, w_zero: Array | None = None) -> Array:
        left = x.astype(np.int32) - _along(x_zero, x.ndim, 1)
        return _convolve(self.conv, left, w.astype(np.int32) - _along(w_zero, w.ndim, 0), None)

    def decompose(
        self, builder: Builder, x: Value, w: Value, x_zero: Value | None = None, w_zero: Value | None = None
    ) -> Value:
        left = centred(builder, x, per_channel(builder, x_zero, x.rank, 1))
        return builder.emit(self.conv, left, centred(builder, w, per_channel(builder, w_zero, w.rank, 0)))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(33)
        x, w = random.integers(0, 256, (1, 4, 6, 5), np.uint8), random.integers(0, 256, (6, 2, 3, 3), np.uint8)
        zero = np.array(131, np.uint8)
        return [
            Sample(cls(pads=(1, 1, 1, 1), groups=2), (x, w, zero)),
            Sample(cls((2, 1)), (x[:, :2], w, zero, np.array(7, np.uint8))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, w = np.ones((1, 3, 4, 4), np.uint8), np.ones((2, 3, 3, 3), np.uint8)
        zero = np.array(1, np.uint8)
        return [
            ErrorSample(cls(), (x, w[:, :2]), "channels do not fit"),
            ErrorSample(cls(), (x, w, zero, np.ones(3, np.uint8)), "does not fit the output channels"),
        ]


@operator
class QLinearConv(IntegerConvolution):
    """The convolution of quantized numbers, quantized to the scale and zero point of y. ONNX QLinearConv-10.

    Scale and zero point of w are for all or per output channel; the bias, int32, is in units of x_scale * w_scale.
    """

    onnx = "QLinearConv-10"
    operands = (
        Operand("x", BYTES),
        Operand("x_scale", frozenset({F32})),
        Operand("x_zero_point", BYTES),
        Operand("w", BYTES),
        Operand("w_scale", frozenset({F32})),
        Operand("w_zero_point", BYTES),
        Operand("y_scale", frozenset({F32})),
        Operand("y_zero_point", BYTES),
        Operand("bias", frozenset({I32}), optional=True),
    )
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    groups: int = 1
    padding: str = "explicit"

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, w = operands[0], operands[3]
        result = self.conv.result_of(x, w, *operands[8:])
        _check_channels("the scale of w", operands[4], w.shape[0])
        _check_channels("the zero point of w", operands[5], w.shape[0])
        return (result.with_element(operands[7].element),)

    def reference(self, *operands: Array) -> Array:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = operands[:8]
        left = x.astype(np.int32) - _along(x_zero, x.ndim, 1)
        right = w.astype(np.int32) - _along(w_zero, w.ndim, 0)
        sums = _convolve(self.conv, left, right, operands[8] if len(operands) > 8 else None)
        scales = (x_scale.reshape(()), _along(w_scale, x.ndim, 1), y_scale.reshape(()))
        return _requantized_array(sums, scales, y_zero.reshape(()))

    def decompose(self, builder: Builder, *operands: Value) -> Value:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, *bias = operands
        rank = x.rank
        left = centred(builder, x, per_index(builder, x_zero, rank, 1))
        sums = builder.emit(self.conv, left, centred(builder, w, per_index(builder, w_zero, rank, 0)), *bias)
        scales = [per_index(builder, scale, rank, 1) for scale in (x_scale, w_scale, y_scale)]
        return requantized(builder, sums, scales, per_index(builder, y_zero, rank, 1))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(34)
        x, w = random.integers(0, 256, (1, 3, 7, 7), np.uint8), random.integers(0, 256, (4, 3, 3, 3), np.uint8)
        scales = [np.array(number, np.float32) for number in (0.00369, 0.00172, 0.162)]
        zeros = [np.array(number, np.uint8) for number in (132, 255, 123)]
        per_output = np.array([0.0017, 0.002, 0.0005, 0.003], np.float32)
        small = random.integers(-32, 32, w.shape, np.int8)  # ONNX Runtime's sums of pairs saturate for large ones
        bias = np.array([100, -20, 3, 2000], np.int32)
        return [
            Sample(cls(), (x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zeros[2])),
            Sample(
                cls((2, 2), pads=(1, 1, 1, 1)),
                (x, scales[0], zeros[0], small, per_output, np.zeros(4, np.int8), scales[2], zeros[2], bias),
            ),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, w = np.ones((1, 3, 4, 4), np.uint8), np.ones((2, 3, 3, 3), np.uint8)
        scale, zero = np.array(1, np.float32), np.array(1, np.uint8)
        three = np.ones(3, np.float32)
        return [ErrorSample(cls(), (x, scale, zero, w, three, zero, scale, zero), "does not fit the output channels")]
