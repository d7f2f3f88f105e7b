"""Linear quantization: numbers as integers with a scale and a zero point, per tensor, per axis or per block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import scalar
from glowstone.ops.element_sets import FLOATS, FLOATS_OF_8_BITS, NARROW
from glowstone.ops.elementwise import Add, Cast, Clip, Div, Equal, Maximum, Minimum, Mul, Round, Sub, Where
from glowstone.ops.reduction import ReduceMax, ReduceMin
from glowstone.ops.shape import unsqueeze
from glowstone.ops.shape_arithmetic import extents, reshaped, sliced, stretched
from glowstone.scalar import convert
from glowstone.types import ElementType, TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]

BYTES = frozenset({ElementType.I8, ElementType.U8})
QUANTIZED = BYTES | {ElementType.I16, ElementType.U16} | (NARROW - {ElementType.F8E8M0})
SCALES = (FLOATS - {ElementType.F64}) | {ElementType.F8E8M0}
DEQUANTIZED = FLOATS
SHIFTED = NARROW & QUANTIZED - FLOATS_OF_8_BITS
"""Narrow types with which zero points other than 0 make sense."""
F32, I32, U8 = ElementType.F32, ElementType.I32, ElementType.U8


class LinearQuantization(Operator):
    """Base of both directions: x, a scale, and a zero point of the scale's shape.

    Scale and zero point are one number, one per index of `axis`, or, where `block` is not 0, one per run of so many
    neighbours along the axis and position on the other axes.
    """

    axis: int
    block: int

    def check_parameters(self, x: Value, scale: Value, zero_point: Value | None) -> None:
        """Raise ShapeError unless scale and zero point fit x."""
        sizes = {parameter.type.size for parameter in (scale, zero_point) if parameter is not None}
        if sizes == {1} and not self.block:
            return  # one number for all, whatever its rank: quantizers write scale [1] beside zero point []
        if zero_point is not None and zero_point.shape != scale.shape:
            raise ShapeError(
                "the zero point has another shape than the scale",
                expected=list(scale.shape),
                found=list(zero_point.shape),
            )
        expected = self._expected_shape(x.shape, scale.rank)
        if scale.shape != expected:
            raise ShapeError("the scale does not fit x", expected=list(expected), found=list(scale.shape))

    def _expected_shape(self, shape: tuple[int, ...], scale_rank: int) -> tuple[int, ...]:
        if scale_rank == 0:
            return ()
        axis = normalize_axis(self.axis, len(shape))
        if not self.block:
            return (shape[axis],)
        return (*shape[:axis], -(-shape[axis] // self.block), *shape[axis + 1 :])

    def aligned(self, builder: Builder, parameter: Value, x: Value) -> Value:
        """A scale or zero point so that it broadcasts to x."""
        if not self.block and parameter.type.size == 1:
            return reshaped(builder, parameter, ())
        if not self.block:
            return per_index(builder, parameter, x.rank, normalize_axis(self.axis, x.rank))
        axis = normalize_axis(self.axis, x.rank)
        repeats = (1,) * (axis + 1) + (self.block,) + (1,) * (x.rank - axis - 1)
        repeated = stretched(builder, unsqueeze(builder, parameter, (axis + 1,)), repeats)
        before, after = extents(builder, x, 0, axis), extents(builder, x, axis + 1)
        return sliced(
            builder, reshaped(builder, repeated, before, -1, after), axis, 0, extents(builder, x, axis, axis + 1)
        )

    def aligned_array(self, parameter: Array, x: Array) -> Array:
        """`aligned` in NumPy."""
        if parameter.size == 1:
            return parameter.reshape(())
        axis = normalize_axis(self.axis, x.ndim)
        if self.block:
            kept = (slice(None),) * axis + (slice(0, x.shape[axis]),)
            return np.asarray(np.repeat(parameter, self.block, axis)[kept])
        return parameter.reshape((-1, *[1] * (x.ndim - axis - 1)))


def per_index(builder: Builder, parameter: Value, rank: int, axis: int) -> Value:
    """A vector along `axis` of a tensor of this rank, so that it broadcasts; one number for all as a scalar."""
    if parameter.rank == 0:
        return parameter
    if parameter.type.size == 1 and not parameter.dynamic:
        return reshaped(builder, parameter, ())
    after = tuple(range(1, rank - axis))
    return unsqueeze(builder, parameter, after) if after else parameter


def quantized(
    builder: Builder, number: Value, zero_point: Value | None, to: ElementType, saturates: bool = True
) -> Value:
    """A number in units of the scale, to a quantized type.

    To an integer: rounded, halves to even, the zero point added, saturated. To a narrow float: the zero point added,
    rounded.
    """
    is_float = to.wide.is_float
    whole = builder.emit(Cast(F32), number if is_float else builder.emit(Round(), number))
    if zero_point is not None:
        whole = builder.emit(Add(), whole, builder.emit(Cast(F32), zero_point))
    if to.is_narrow and not is_float:  # which do not saturate on their own
        low, high = (scalar(builder, limit, F32) for limit in to.limits)
        whole = builder.emit(Minimum(), builder.emit(Maximum(), whole, low), high)
    return builder.emit(Cast(to, saturates), whole)


def quantized_array(number: Array, zero_point: Array | float, to: ElementType, saturates: bool = True) -> Array:
    """`quantized` in NumPy."""
    if to.wide.is_float:
        shifted: Any = np.asarray(number, np.float32) + np.float32(zero_point)
        return convert(shifted, to, saturates)
    whole = np.nan_to_num(np.rint(np.asarray(number, np.float64)) + zero_point, nan=0.0)
    return convert(np.clip(whole, *to.limits), to)


@operator
class QuantizeLinear(LinearQuantization):
    """saturate(round(x / scale) + zero_point), halves to even, divided in `precision` or the scale's type.

    To a narrow float only the sum is rounded; `saturates` is as for `Cast`. ONNX QuantizeLinear-25.
    """

    onnx = "QuantizeLinear-25"
    operands = (
        Operand("x", SCALES | {I32}),
        Operand("scale", SCALES | {I32}),
        Operand("zero_point", QUANTIZED, optional=True),
    )
    axis: int = 1
    block: int = 0
    to: ElementType = ElementType.U8
    precision: ElementType | None = None
    saturates: bool = True

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, scale, zero_point = (*operands, None)[:3]
        assert x is not None
        assert scale is not None
        if self.to not in QUANTIZED:
            raise ModelError(
                "not a type to quantize to", expected=", ".join(sorted(map(str, QUANTIZED))), found=self.to
            )
        if zero_point is not None and zero_point.element is not self.to:
            raise ModelError("the zero point is of another type", expected=self.to, found=zero_point.element)
        self.check_parameters(x, scale, zero_point)
        return (TensorType(self.to, x.shape),)

    def division_element(self, scale: ElementType) -> ElementType:
        """The type to divide in."""
        chosen = self.precision or scale
        return chosen if chosen.is_float else F32

    def reference(self, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
        precision: Any = self.division_element(ElementType.from_dtype(scale.dtype)).dtype
        with np.errstate(all="ignore"):
            number = x.astype(precision) / self.aligned_array(scale, x).astype(precision)
        offset = 0 if zero_point is None else self.aligned_array(zero_point, x).astype(np.float32)
        return quantized_array(number, offset, self.to, self.saturates)

    def decompose(self, builder: Builder, x: Value, scale: Value, zero_point: Value | None = None) -> Value:
        precision = Cast(self.division_element(scale.element))
        divisor = builder.emit(precision, self.aligned(builder, scale, x))
        number = builder.emit(Div(), builder.emit(precision, x), divisor)
        offset = None if zero_point is None else self.aligned(builder, zero_point, x)
        return quantized(builder, number, offset, self.to, self.saturates)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.linspace(-400, 400, 24, dtype=np.float32).reshape(2, 3, 4)
        ties = np.array([0.5, 1.5, -0.5, 2.5, 300, -300], np.float32)
        one, two = np.array(2, np.float32), np.array([2, 4, 0.5], np.float32)
        blocks = np.array([[[2.0, 3.0]] * 3, [[1.0, 0.5]] * 3], np.float32)
        return [
            Sample(cls(), (x, one, np.array(128, np.uint8))),
            Sample(cls(1, to=ElementType.I8), (x, two, np.array([0, -7, 3], np.int8))),
            Sample(cls(-2), (x, two)),
            Sample(cls(to=ElementType.I8), (ties, np.array(1, np.float32), np.array(1, np.int8))),
            Sample(cls(-1, 2, ElementType.I16), (x, blocks, np.zeros((2, 3, 2), np.int16))),
            Sample(cls(), (ties, np.array([0.5], np.float32), np.array([3], np.uint8))),
            Sample(cls(to=ElementType.U16), (x, np.array(0.01, np.float32), np.array(30000, np.uint16))),
            *cls._narrow_samples(),
        ]

    @classmethod
    def _narrow_samples(cls) -> Sequence[Sample]:
        x = np.linspace(-40, 40, 24, dtype=np.float32).reshape(2, 3, 4)
        one, blocks = np.array(2, np.float32), np.array([[[2.0, 3.0]] * 3, [[1.0, 0.5]] * 3], np.float32)
        wide = np.array([1e6, -1e6, 480, 0.001], np.float32)
        shifted, floats = sorted(SHIFTED, key=str), sorted(FLOATS_OF_8_BITS, key=str)
        return [
            *(Sample(cls(to=to), (x, one, np.array([1]).astype(to.dtype))) for to in shifted),
            *(Sample(cls(-1, 2, to), (x, blocks, np.zeros(blocks.shape, to.dtype))) for to in shifted),
            *(Sample(cls(to=to), (wide, one, np.array(0).astype(to.dtype))) for to in floats),
            Sample(cls(to=ElementType.F8E5M2, saturates=False), (wide, one)),
            Sample(cls(to=ElementType.I4), (x, np.array(4).astype(ElementType.F8E8M0.dtype))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, two = np.ones((2, 3), np.float32), np.ones(2, np.float32)
        return [
            ErrorSample(cls(), (x, two), "the scale does not fit x"),
            ErrorSample(cls(0), (x, two, np.zeros(3, np.uint8)), "another shape than the scale"),
            ErrorSample(cls(0), (x, two, np.zeros(2, np.int8)), "the zero point is of another type"),
            ErrorSample(cls(0, to=F32), (x, two), "not a type to quantize to"),
        ]


def difference_element(x: ElementType) -> ElementType:
    """The type in which a zero point is taken off: differences of integers do not wrap."""
    if x.wide.is_float:
        return F32
    return ElementType.I64 if x is I32 else I32


@operator
class DequantizeLinear(LinearQuantization):
    """(x - zero_point) * scale, as elements of type `to`. ONNX DequantizeLinear-25."""

    onnx = "DequantizeLinear-25"
    operands = (
        Operand("x", QUANTIZED | {I32}),
        Operand("scale", SCALES),
        Operand("zero_point", QUANTIZED | {I32}, optional=True),
    )
    axis: int = 1
    block: int = 0
    to: ElementType = ElementType.F32

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, scale, zero_point = (*operands, None)[:3]
        assert x is not None
        assert scale is not None
        if zero_point is not None and zero_point.element is not x.element:
            raise ModelError("the zero point is of another type", expected=x.element, found=zero_point.element)
        if self.to not in DEQUANTIZED:
            raise ModelError(
                "not a type to dequantize to", expected=", ".join(sorted(map(str, DEQUANTIZED))), found=self.to
            )
        self.check_parameters(x, scale, zero_point)
        return (TensorType(self.to, x.shape),)

    def reference(self, x: Array, scale: Array, zero_point: Array | None = None) -> Array:
        exact = difference_element(ElementType.from_dtype(x.dtype)).dtype
        offset: Any = 0 if zero_point is None else self.aligned_array(zero_point, x).astype(exact)
        with np.errstate(all="ignore"):
            number = (x.astype(exact) - offset).astype(np.float32)
            product: Any = number * self.aligned_array(scale, x).astype(np.float32)
            return np.asarray(product).astype(self.to.dtype)

    def decompose(self, builder: Builder, x: Value, scale: Value, zero_point: Value | None = None) -> Value:
        exact = Cast(difference_element(x.element))
        number = builder.emit(exact, x)
        if zero_point is not None:
            number = builder.emit(Sub(), number, builder.emit(exact, self.aligned(builder, zero_point, x)))
        factor = builder.emit(Cast(F32), self.aligned(builder, scale, x))
        return builder.emit(Cast(self.to), builder.emit(Mul(), builder.emit(Cast(F32), number), factor))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = (np.arange(24) * 11).astype(np.uint8).reshape(2, 3, 4)
        scales = np.array([2, 4, 0.5], np.float32)
        blocks = np.array([[[2.0, 3.0]] * 3, [[1.0, 0.5]] * 3], np.float32)
        return [
            Sample(cls(), (x, np.array(0.25, np.float32), np.array(128, np.uint8))),
            Sample(cls(-2), (x, scales, np.array([0, 7, 200], np.uint8))),
            Sample(cls(), (x.view(np.int8), scales)),
            Sample(cls(2, 3), (x.astype(np.int16), blocks, np.full(blocks.shape, -5, np.int16))),
            Sample(cls(), (np.array([-(2**30), 5], np.int32), np.array(0.5, np.float32))),
            *cls._narrow_samples(),
        ]

    @classmethod
    def _narrow_samples(cls) -> Sequence[Sample]:
        x = np.arange(-12, 12).reshape(2, 3, 4)
        half, scales = np.array(0.5, np.float32), np.array([2, 4, 0.5], np.float32)
        blocks = np.array([[[2.0, 3.0]] * 3, [[1.0, 0.5]] * 3], np.float32)
        elements = sorted(NARROW & QUANTIZED, key=str)
        power = np.array(0.25).astype(ElementType.F8E8M0.dtype)
        return [
            *(Sample(cls(), (x.astype(element.dtype), half)) for element in elements),
            *(Sample(cls(), (x.astype(element.dtype), scales, np.zeros(3, element.dtype))) for element in elements),
            Sample(cls(-1, 2), (x.astype(ElementType.I4.dtype), blocks, np.ones(blocks.shape, ElementType.I4.dtype))),
            Sample(cls(to=ElementType.BF16), (x.astype(ElementType.F4E2M1.dtype), power)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, two = np.ones((2, 3), np.uint8), np.ones(2, np.float32)
        return [
            ErrorSample(cls(), (x, two), "the scale does not fit x"),
            ErrorSample(cls(0), (x, two, np.zeros(2, np.int8)), "the zero point is of another type"),
            ErrorSample(cls(0, to=I32), (x, two), "not a type to dequantize to"),
        ]


LEVELS = 255
"""Steps between the lowest and the highest uint8."""


@operator
class DynamicQuantizeLinear(Operator):
    """x as uint8 over the range of its own values and 0, with that scale and zero point. ONNX DynamicQuantizeLinear-11.

    Where all of x is 0, the scale is that of a range of 1.
    """

    onnx = "DynamicQuantizeLinear-11"
    operands = (Operand("x", frozenset({F32})),)
    result_names = ("y", "scale", "zero_point")

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        return TensorType(U8, operands[0].shape), TensorType(F32, ()), TensorType(U8, ())

    def reference(self, x: Array) -> tuple[Array, ...]:
        low, high = (np.float32(limit) for limit in (x.min(initial=0), x.max(initial=0)))
        spread = high - low if high != low else np.float32(1)
        scale = np.asarray(spread / np.float32(LEVELS))
        zero_point = np.asarray(np.rint(np.clip(-low / scale, 0, LEVELS)))
        return quantized_array(x / scale, zero_point, U8), scale, zero_point.astype(np.uint8)

    def decompose(self, builder: Builder, x: Value) -> tuple[Value, ...]:
        zero, one, levels = (scalar(builder, number, F32) for number in (0.0, 1.0, LEVELS))
        low = builder.emit(Minimum(), builder.emit(ReduceMin(None, False), x), zero)
        high = builder.emit(Maximum(), builder.emit(ReduceMax(None, False), x), zero)
        spread = builder.emit(Where(), builder.emit(Equal(), low, high), one, builder.emit(Sub(), high, low))
        scale = builder.emit(Div(), spread, levels)
        offset = builder.emit(Clip(), builder.emit(Div(), builder.emit(Sub(), zero, low), scale), zero, levels)
        zero_point = builder.emit(Cast(U8), builder.emit(Round(), offset))
        return quantized(builder, builder.emit(Div(), x, scale), zero_point, U8), scale, zero_point

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        cases = ([0, 2, -3, -2.5, 1.34, 0.5], [-1, -2.1, -1.3, -2.5, -3.34, -4], [1, 2.1, 1.3, 2.5, 3.34, 4])
        return [Sample(cls(), (np.array(numbers, np.float32),)) for numbers in cases]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (np.ones(3),), "does not take this element type")]
