"""Convolution whose taps stand where data says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import constant, scalar
from glowstone.ops.element_sets import FLOATS, HALVES
from glowstone.ops.elementwise import Add, Cast, Div, Mul, Sub
from glowstone.ops.iota import Iota
from glowstone.ops.linear import MatMul
from glowstone.ops.operand_checks import require_one_element
from glowstone.ops.sampling import GridSample
from glowstone.ops.shape import Concat, unsqueeze
from glowstone.ops.shape_arithmetic import extents, reshaped, sliced
from glowstone.ops.widening import in_float32
from glowstone.ops.window import Window
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

PLACES = ElementType.F64
"""Places are scaled to the grid's range and back: float32 would not give whole places back exactly."""
RANK = 4
ROW_AXIS, COLUMN_AXIS = 2, 3


@operator
class DeformConv(Operator):
    """Convolution of planes with every tap moved by an offset of its own, and weighted by a mask. ONNX DeformConv-19.

    x [N, C, H, W], w [O, C / groups, KH, KW], offsets [N, P * KH * KW * 2, OH, OW] as pairs (down, right) for each of P
    runs of channels, bias [O], mask [N, P * KH * KW, OH, OW]. Between elements x is interpolated; outside it is zero.
    """

    onnx = "DeformConv-19"
    operands = (
        Operand("x", FLOATS),
        Operand("w", FLOATS),
        Operand("offsets", FLOATS),
        Operand("bias", FLOATS, optional=True),
        Operand("mask", FLOATS, optional=True),
    )
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    groups: int = 1
    parts: int = 1

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        x, w, offsets, bias, mask = (*operands, None, None)[:5]
        assert x is not None
        assert w is not None
        assert offsets is not None
        require_one_element(x, w, offsets, bias, mask)
        if not x.rank == w.rank == offsets.rank == RANK:
            raise ShapeError("ranks do not fit a convolution of planes", expected="rank 4", found=f"{x.type}, {w.type}")
        batch, channels = x.shape[:2]
        splits = self.groups >= 1 and self.parts >= 1 and w.shape[0] % self.groups == channels % self.parts == 0
        if not splits or channels != w.shape[1] * self.groups:
            raise ShapeError("channels do not fit the weights", expected=self.groups, found=f"{x.type}, {w.type}")
        if bias is not None and bias.shape != w.shape[:1]:
            raise ShapeError(
                "bias is one number per output channel", expected=list(w.shape[:1]), found=list(bias.shape)
            )
        window = Window(w.shape[2:], self.strides, self.dilations, self.pads)
        window.check(2)
        spatial = window.output_extents(x.shape[2:])
        taps = self.parts * math.prod(w.shape[2:])
        for value, numbers in ((offsets, 2 * taps), (mask, taps)):
            if value is not None and value.shape != (batch, numbers, *spatial):
                raise ShapeError(
                    "offsets or mask do not fit", expected=[batch, numbers, *spatial], found=list(value.shape)
                )
        return (x.type.with_shape((batch, w.shape[0], *spatial)),)

    def reference(
        self, x: Array, w: Array, offsets: Array, bias: Array | None = None, mask: Array | None = None
    ) -> Array:
        batch, channels, height, width = x.shape
        outputs, inputs, *kernel = w.shape
        spatial = offsets.shape[2:]
        moved = offsets.astype(np.float64).reshape(batch, self.parts, *kernel, 2, *spatial)
        weights = np.ones((batch, self.parts, *kernel, *spatial)) if mask is None else mask.astype(np.float64)
        weights = weights.reshape(batch, self.parts, *kernel, *spatial)
        starts = [np.arange(n) * s - p for n, s, p in zip(spatial, self.strides, self.pads, strict=False)]
        result = np.zeros((batch, outputs, *spatial))
        for n, channel, row, column in np.ndindex(batch, channels, *kernel):
            part = channel * self.parts // channels
            down = starts[0][:, None] + row * self.dilations[0] + moved[n, part, row, column, 0]
            right = starts[1] + column * self.dilations[1] + moved[n, part, row, column, 1]
            sampled = np.zeros(spatial)
            for corner_down in (np.floor(down), np.floor(down) + 1):
                for corner_right in (np.floor(right), np.floor(right) + 1):
                    share = (1 - abs(down - corner_down)) * (1 - abs(right - corner_right))
                    inside = (corner_down >= 0) & (corner_down < height)
                    inside &= (corner_right >= 0) & (corner_right < width)
                    rows = np.where(inside, corner_down, 0).astype(int)
                    columns = np.where(inside, corner_right, 0).astype(int)
                    sampled += np.where(inside, share * x[n, channel, rows, columns], 0)
            group = channel // inputs
            first, last = (outputs // self.groups * number for number in (group, group + 1))
            taps = w[first:last, channel % inputs, row, column].astype(np.float64)
            result[n, first:last] += taps[:, None, None] * sampled * weights[n, part, row, column]
        if bias is not None:
            result += bias[:, None, None]
        return result.astype(x.dtype)

    def decompose(
        self,
        builder: Builder,
        x: Value,
        w: Value,
        offsets: Value,
        bias: Value | None = None,
        mask: Value | None = None,
    ) -> Value:
        if x.element in HALVES:
            return in_float32(builder, self, x, w, offsets, bias, mask)[0]
        taps = math.prod(w.shape[2:])
        channels, rows, columns = x.shape[1], extents(builder, offsets, 2, 3), extents(builder, offsets, 3)
        planes = reshaped(builder, x, -1, channels // self.parts, extents(builder, x, 2))
        grid = self._grid(builder, x, w, offsets)
        sampled = builder.emit(GridSample(), planes, grid)
        sampled = reshaped(builder, sampled, -1, (channels // self.parts, taps), rows, columns)
        if mask is not None:
            weights = reshaped(builder, mask, -1, (1, taps), rows, columns)
            sampled = builder.emit(Mul(), sampled, weights)
        inputs, outputs = w.shape[1], w.shape[0] // self.groups
        batch, area = extents(builder, x, 0, 1), builder.emit(Mul(), rows, columns)
        right = reshaped(builder, sampled, batch, (self.groups, inputs * taps), area)
        left = reshaped(builder, w, (self.groups, outputs, inputs * taps))
        product = reshaped(builder, builder.emit(MatMul(), left, right), batch, w.shape[0], rows, columns)
        return product if bias is None else builder.emit(Add(), product, unsqueeze(builder, bias, (1, 2)))

    def _grid(self, builder: Builder, x: Value, w: Value, offsets: Value) -> Value:
        """Where to sample, [N * P, taps * OH, OW, (right, down)], from -1 to 1 between the borders of x."""
        kernel = w.shape[2:]
        rows, columns = extents(builder, offsets, 2, 3), extents(builder, offsets, 3)
        pairs = reshaped(builder, offsets, -1, (math.prod(kernel), 2), rows, columns)
        places = []
        for number, axis in ((1, COLUMN_AXIS), (0, ROW_AXIS)):
            offset = builder.emit(Cast(PLACES), sliced(builder, pairs, 2, number, number + 1))
            moved = reshaped(builder, offset, -1, math.prod(kernel), rows, columns)
            place = builder.emit(Add(), moved, self._starts(builder, offsets, axis))
            place = builder.emit(Add(), place, self._tap_places(builder, w, number))
            size = builder.emit(Cast(PLACES), extents(builder, x, axis, axis + 1))
            two, one = (scalar(builder, value, PLACES) for value in (2.0, 1.0))
            doubled = builder.emit(Add(), builder.emit(Mul(), place, two), one)
            scaled = builder.emit(Sub(), builder.emit(Div(), doubled, size), one)
            places.append(unsqueeze(builder, scaled, (RANK,)))
        return reshaped(
            builder,
            builder.emit(Concat(RANK), *places),
            -1,
            builder.emit(Mul(), rows, constant(builder, np.array([math.prod(kernel)]))),
            columns,
            2,
        )

    def _starts(self, builder: Builder, offsets: Value, axis: int) -> Value:
        """Where the window of each result starts along an axis, so that it broadcasts over [taps, OH, OW]."""
        number = axis - ROW_AXIS
        count = builder.emit(Cast(PLACES), builder.emit(Iota(), extents(builder, offsets, axis, axis + 1)))
        numbers = (float(self.strides[number]), float(self.pads[number]))
        stride, pad = (scalar(builder, value, PLACES) for value in numbers)
        starts = builder.emit(Sub(), builder.emit(Mul(), count, stride), pad)
        return unsqueeze(builder, starts, (1,)) if axis == ROW_AXIS else starts

    def _tap_places(self, builder: Builder, w: Value, number: int) -> Value:
        """Where each tap stands in the window along an axis, as [taps, 1, 1]."""
        places = np.indices(w.shape[2:])[number] * self.dilations[number]
        return constant(builder, places.reshape(-1, 1, 1).astype(PLACES.dtype), PLACES)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(91)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls(), (normal(1, 1, 4, 5), normal(1, 1, 2, 2), normal(1, 8, 3, 4))),
            Sample(
                cls((2, 1), (1, 2), (1, 0, 1, 1), 2, 2),
                (normal(2, 4, 5, 6), normal(6, 2, 3, 2), normal(2, 24, 3, 5), normal(6), normal(2, 12, 3, 5)),
            ),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, w, offsets = (np.ones(shape, np.float32) for shape in ((1, 2, 3, 3), (2, 2, 2, 2), (1, 8, 2, 2)))
        return [
            ErrorSample(cls(), (x, w[..., 0], offsets), "ranks do not fit"),
            ErrorSample(cls(), (x, w[:, :1], offsets), "channels do not fit"),
            ErrorSample(cls(), (x, w, offsets[:, :4]), "offsets or mask do not fit"),
            ErrorSample(cls(), (x, w, offsets, x[0, 0, 0]), "bias is one number"),
        ]
