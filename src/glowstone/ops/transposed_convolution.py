"""Transposed convolution, by a plain one that computes every phase of the result at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import scalar
from glowstone.ops.convolution import Conv
from glowstone.ops.element_sets import FLOATS
from glowstone.ops.elementwise import Mul
from glowstone.ops.operand_checks import require_one_element
from glowstone.ops.rearrangement import DepthToSpace
from glowstone.ops.shape import Concat, Slice, Transpose, unsqueeze
from glowstone.ops.shape_arithmetic import extents, reshaped, sliced, stretched, vector
from glowstone.ops.window import PADDINGS
from glowstone.types import LARGEST_EXTENT, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

FIRST_SPATIAL = 2
IMAGE_AXES = 2


@operator
class ConvTranspose(Operator):
    """The transposition of a convolution: every element of x adds a multiple of the kernel to y. ONNX ConvTranspose-11.

    x [N, C, spatial], w [C, O / groups, kernel], bias [O]. `output_shape` gives the spatial extents of y where it is
    not empty; padding then follows from it, as it does for "same_upper" and "same_lower".
    """

    onnx = "ConvTranspose-11"
    operands = (Operand("x", FLOATS), Operand("w", FLOATS), Operand("bias", FLOATS, optional=True))
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[int, ...] = (0, 0, 0, 0)
    groups: int = 1
    padding: str = "explicit"
    output_padding: tuple[int, ...] = (0, 0)
    output_shape: tuple[int, ...] = ()

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, w, *bias = operands
        require_one_element(*operands)
        if x.rank < FIRST_SPATIAL + 1 or w.rank != x.rank:
            raise ShapeError(
                "ranks do not fit a convolution", expected="x and w of one rank, 3 or more", found=f"{x.type}, {w.type}"
            )
        if self.groups < 1 or x.shape[1] != w.shape[0] or w.shape[0] % self.groups:
            raise ShapeError(
                "channels do not fit the weights", expected=f"{w.shape[0]} in {self.groups} groups", found=str(x.type)
            )
        channels = w.shape[1] * self.groups
        if bias and bias[0].shape != (channels,):
            raise ShapeError("bias is one number per output channel", expected=[channels], found=list(bias[0].shape))
        self._check_attributes(x.rank - FIRST_SPATIAL)
        spatial = tuple(line.result for line in self.lines(x.shape, w.shape))
        if min(spatial) < 0:
            raise ShapeError("padding is larger than the result", expected="extents of 0 or more", found=list(spatial))
        return (x.type.with_shape((x.shape[0], channels, *spatial)),)

    def _check_attributes(self, count: int) -> None:
        lengths = {len(self.strides), len(self.dilations), len(self.output_padding), len(self.output_shape) or count}
        fits = lengths == {count} and len(self.pads) == 2 * count and self.padding in PADDINGS
        if not fits or min(*self.strides, *self.dilations) < 1 or min(*self.pads, *self.output_padding) < 0:
            raise ShapeError("window attributes out of range", expected=f"{count} spatial axes", found=str(self))

    def lines(self, x: tuple[int, ...], w: tuple[int, ...]) -> list[_Line]:
        """The arithmetic of every spatial axis, for x and w of these shapes."""
        count = len(x) - FIRST_SPATIAL
        result = []
        for axis in range(count):
            extent, taps, stride = x[FIRST_SPATIAL + axis], w[FIRST_SPATIAL + axis], self.strides[axis]
            reach = (taps - 1) * self.dilations[axis] + 1
            whole = stride * (extent - 1) + reach + self.output_padding[axis] if extent else 0
            before, total = self.pads[axis], self.pads[axis] + self.pads[axis + count]
            if self.output_shape:
                total = whole - self.output_shape[axis]
                before = self._share(total)
            elif self.padding in ("same_upper", "same_lower"):
                total = whole - stride * extent
                before = self._share(total)
            elif self.padding == "valid":
                before = total = 0
            result.append(
                _Line(extent, taps, stride, self.dilations[axis], reach, before, whole - total if extent else 0)
            )
        return result

    def _share(self, total: int) -> int:
        """The part of the padding that stands before; what is to be added, not cut off, stands all behind."""
        smaller = max(total, 0) // 2
        return smaller if self.padding == "same_upper" else max(total, 0) - smaller

    def reference(self, x: Array, w: Array, bias: Array | None = None) -> Array:
        outputs, inputs = w.shape[1], x.shape[1] // self.groups
        lines = self.lines(x.shape, w.shape)
        room = [max(line.stride * (line.extent - 1) + line.reach, line.before + line.result, 0) for line in lines]
        shift = [max(-line.before, 0) for line in lines]
        full = np.zeros((x.shape[0], outputs * self.groups, *(a + b for a, b in zip(room, shift, strict=True))))
        for group in range(self.groups):
            ins, outs = slice(group * inputs, (group + 1) * inputs), slice(group * outputs, (group + 1) * outputs)
            for position in np.ndindex(*w.shape[2:]):
                target = tuple(
                    slice(start := s + k * line.dilation, start + (line.extent - 1) * line.stride + 1, line.stride)
                    if line.extent
                    else slice(0, 0)
                    for k, s, line in zip(position, shift, lines, strict=True)
                )
                taps = w[(ins, slice(None), *position)].astype(np.float64)
                part = np.einsum("io,ni...->no...", taps, x[:, ins].astype(np.float64))
                full[(slice(None), outs, *target)] += part
        kept = tuple(
            slice(line.before + s, line.before + s + line.result) for s, line in zip(shift, lines, strict=True)
        )
        result = full[(slice(None), slice(None), *kept)]
        if bias is not None:
            result = result + bias.reshape((-1, *[1] * len(lines))).astype(np.float64)
        return np.asarray(result).astype(x.dtype)

    def decompose(self, builder: Builder, x: Value, w: Value, bias: Value | None = None) -> Value:
        if self.output_shape and x.dynamic:  # the padding follows from x's extents: refuse others
            x = reshaped(builder, x, extents(builder, x, 0, FIRST_SPATIAL), x.shape[FIRST_SPATIAL:])
        return _Phases(builder, self, self.lines(x.shape, w.shape)).run(x, w, bias)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(61)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls(), (normal(1, 3, 3, 4), normal(3, 2, 3, 3))),
            Sample(cls((3, 2)), (normal(2, 3, 3, 3), normal(3, 2, 3, 3), normal(2))),
            Sample(cls((2, 2)), (normal(1, 16, 4, 5), normal(16, 8, 2, 2))),
            Sample(cls((3, 2), pads=(1, 2, 1, 2)), (normal(1, 2, 4, 3), normal(2, 2, 3, 3))),
            Sample(cls((3, 2), output_padding=(1, 1)), (normal(1, 2, 4, 3), normal(2, 2, 3, 3))),
            Sample(cls((3, 2), output_shape=(10, 8)), (normal(1, 1, 3, 3), normal(1, 2, 3, 3))),
            Sample(cls((3, 2), output_shape=(8, 6)), (normal(1, 1, 3, 3), normal(1, 2, 3, 3))),
            Sample(cls((2, 2), padding="same_lower"), (normal(1, 1, 3, 3), normal(1, 2, 3, 3))),
            Sample(cls((2, 2), padding="same_upper"), (normal(1, 1, 3, 3), normal(1, 2, 3, 3))),
            Sample(cls((1, 1), (2, 2), (1, 1, 1, 1)), (normal(1, 1, 3, 3), normal(1, 1, 2, 2))),
            Sample(cls((2, 2), groups=2, pads=(1, 1, 1, 1)), (normal(1, 6, 4, 3), normal(6, 4, 3, 3), normal(8))),
            Sample(cls((2,), (1,), (0, 1), output_padding=(1,)), (normal(2, 3, 5), normal(3, 2, 4))),
            Sample(
                cls((2, 1, 2), (1, 1, 1), (1, 0, 0, 0, 0, 1), output_padding=(0, 0, 0)),
                (normal(1, 2, 3, 4, 3), normal(2, 3, 3, 2, 3)),
            ),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, w = np.ones((1, 3, 4, 4), np.float32), np.ones((3, 2, 3, 3), np.float32)
        return [
            ErrorSample(cls(), (x, w[:2]), "channels do not fit"),
            ErrorSample(cls(), (x, w[..., 0]), "ranks do not fit"),
            ErrorSample(cls(), (x, w, np.ones(3, np.float32)), "bias is one number"),
            ErrorSample(cls((1,)), (x, w), "window attributes out of range"),
            ErrorSample(cls(pads=(9, 9, 9, 9)), (x, w), "padding is larger than the result"),
        ]


@dataclass(frozen=True)
class _Line:
    """One spatial axis. Element i of x and tap k meet at `i * stride + k * dilation - before` of the result.

    That place is `q * stride + phase - before` for one q; taps of one phase are `taps_per_phase` neighbours in steps of
    the stride. So phase by phase the result is a plain convolution of x, one q after the other.
    """

    extent: int
    taps: int
    stride: int
    dilation: int
    reach: int
    before: int
    result: int

    @property
    def taps_per_phase(self) -> int:
        return -(-self.reach // self.stride)

    @property
    def first(self) -> int:
        """The first q computed: that of the result's first element, or as near as padding allows."""
        return min(self.before // self.stride, self.taps_per_phase - 1)

    @property
    def pads(self) -> tuple[int, int]:
        """Padding of the plain convolution, so that its results are q from `first` to that of the last element.

        Both depend on x only by way of `before`.
        """
        last = (self.before + self.result - 1) // self.stride
        return self.taps_per_phase - 1 - self.first, max(last - (self.extent - 1), 0)

    @property
    def cut(self) -> tuple[int, int]:
        """Elements that the phases give before and after the result."""
        before = self.before - self.first * self.stride
        computed = self.extent + sum(self.pads) - self.taps_per_phase + 1
        return before, computed * self.stride - before - self.result


@dataclass(frozen=True)
class _Phases:
    """The decomposition of one transposed convolution."""

    builder: Builder
    operator: ConvTranspose
    lines: list[_Line]

    def run(self, x: Value, w: Value, bias: Value | None) -> Value:
        pads = [line.pads for line in self.lines]
        conv = Conv(
            (1,) * len(pads),
            (1,) * len(pads),
            (*(before for before, _ in pads), *(after for _, after in pads)),
            self.operator.groups,
        )
        weights = self._weights(w)
        product = self.builder.emit(conv, x, weights, None if bias is None else self._bias(bias))
        return self._cut(self._interleaved(product, w.shape[1] * self.operator.groups))

    @property
    def _strides(self) -> tuple[int, ...]:
        return tuple(line.stride for line in self.lines)

    @property
    def _phases_first(self) -> bool:
        """Whether the plain convolution's channels are [phases, outputs]: images whose phases are blocks of pixels.

        Else they are [groups, outputs, phases].
        """
        return self.operator.groups == 1 and len(self.lines) == IMAGE_AXES and len(set(self._strides)) == 1

    def _weights(self, w: Value) -> Value:
        """[channels, C / groups, taps per phase], taps reversed, from [C, outputs / groups, taps]."""
        count, groups = len(self.lines), self.operator.groups
        for axis, line in enumerate(self.lines):
            w = self._spread(w, FIRST_SPATIAL + axis, line)
        inputs, outputs = w.shape[:2]
        split = [extent for line in self.lines for extent in (line.taps_per_phase, line.stride)]
        w = reshaped(self.builder, w, (groups, inputs // groups, outputs, *split))
        tap_axes = [3 + 2 * axis for axis in range(count)]
        for axis in tap_axes:
            w = sliced(self.builder, w, axis, -1, -LARGEST_EXTENT, -1)
        phase_axes = [axis + 1 for axis in tap_axes]
        channels = (*phase_axes, 2) if self._phases_first else (2, *phase_axes)
        w = self.builder.emit(Transpose((0, *channels, 1, *tap_axes)), w)
        kernel = tuple(line.taps_per_phase for line in self.lines)
        phases = math.prod(self._strides)
        return reshaped(self.builder, w, (groups * outputs * phases, inputs // groups, *kernel))

    def _spread(self, w: Value, axis: int, line: _Line) -> Value:
        """The taps with zeros between them by dilation, and after them up to whole phases."""
        if line.dilation > 1:
            apart = unsqueeze(self.builder, w, (axis + 1,))
            apart = self._extended(apart, axis + 1, line.dilation - 1)
            merged = (*w.shape[:axis], line.taps * line.dilation, *w.shape[axis + 1 :])
            w = sliced(self.builder, reshaped(self.builder, apart, merged), axis, 0, line.reach)
        return self._extended(w, axis, line.taps_per_phase * line.stride - line.reach)

    def _extended(self, w: Value, axis: int, count: int) -> Value:
        """w with zeros after it on one axis."""
        if count == 0:
            return w
        zero = scalar(self.builder, 0.0, w.element)
        zeros = stretched(self.builder, zero, (*w.shape[:axis], count, *w.shape[axis + 1 :]))
        return self.builder.emit(Concat(axis), w, zeros)

    def _bias(self, bias: Value) -> Value:
        """The bias of an output channel for each of its phases."""
        phases = math.prod(self._strides)
        axis = 0 if self._phases_first else 1
        counts = (phases, 1) if self._phases_first else (1, phases)
        repeated = stretched(self.builder, unsqueeze(self.builder, bias, (axis,)), counts)
        return reshaped(self.builder, repeated, -1)

    def _interleaved(self, product: Value, channels: int) -> Value:
        """Phases, which are channels, put next to each other along the spatial axes."""
        if math.prod(self._strides) == 1:
            return product
        if self._phases_first:
            return self.builder.emit(DepthToSpace(self._strides[0]), product)
        count = len(self.lines)
        batch, places = extents(self.builder, product, 0, 1), extents(self.builder, product, FIRST_SPATIAL)
        apart = reshaped(self.builder, product, batch, (channels, *self._strides), places)
        order = [axis for number in range(count) for axis in (2 + count + number, 2 + number)]
        woven = self.builder.emit(Transpose((0, 1, *order)), apart)
        longer = self.builder.emit(Mul(), places, vector(self.builder, self._strides))
        return reshaped(self.builder, woven, batch, channels, longer)

    def _cut(self, y: Value) -> Value:
        """Without what stands before and after the result; both counts hold for every extent of x."""
        cuts = [line.cut for line in self.lines]
        if not any(before or after for before, after in cuts):
            return y
        starts = vector(self.builder, tuple(before for before, _ in cuts))
        ends = vector(self.builder, tuple(-after if after else LARGEST_EXTENT for _, after in cuts))
        axes = vector(self.builder, tuple(range(FIRST_SPATIAL, y.rank)))
        return self.builder.emit(Slice(), y, starts, ends, axes)
