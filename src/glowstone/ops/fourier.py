"""Fourier transforms of arrays whose last axis holds real numbers [..., 1] or pairs (real, imaginary) [..., 2]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import constant, known_array, scalar
from glowstone.ops.element_sets import FLOATS, HALVES, INDICES
from glowstone.ops.elementwise import HALF_TOLERANCES, Add, Cast, Div, Mul, Sub
from glowstone.ops.fast_fourier import Transform, transform
from glowstone.ops.indexing import Gather
from glowstone.ops.iota import Iota
from glowstone.ops.padding import Pad
from glowstone.ops.shape import Transpose, unsqueeze
from glowstone.ops.shape_arithmetic import extents, joined, reshaped, sliced, vector
from glowstone.ops.widening import in_float32
from glowstone.types import ElementType, TensorType, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]


def _number(value: Value, name: str, least: int) -> int:
    """The number a host operand of one element holds.

    Raises:
        ShapeError: it has more elements, or the number is too small.
    """
    array = known_array(value, name)
    if array.size != 1 or int(array.reshape(())) < least:
        raise ShapeError(f"operand {name} is one number", expected=f"{least} or more", found=array.tolist())
    return int(array.reshape(()))


def _check_pairs(x: Value) -> None:
    if x.rank < 2 or x.shape[-1] not in (1, 2):
        raise ShapeError(
            "the last axis holds real numbers or pairs",
            expected="rank 2 or more, last extent 1 or 2",
            found=str(x.type),
        )


def _complex(x: Array) -> Array:
    wide = x.astype(np.float64)
    return wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def _pairs(y: Array, element: np.dtype[Any]) -> Array:
    return np.stack([y.real, y.imag], axis=-1).astype(element)


@operator
class DFT(Operator):
    """The discrete Fourier transform along an axis other than the last, which holds the parts. ONNX DFT-20.

    x is cut or filled with zeros to `length`, by default its extent. `one_sided`: of the results only the first
    length / 2 + 1, rounded down, are given; with `inverse` only these are read, and the results are real.
    16-bit floats are computed as float32.
    """

    onnx = "DFT-20"
    operands = (Operand("x", FLOATS), Operand("length", INDICES, optional=True, host=True))
    axis: int = -2
    inverse: bool = False
    one_sided: bool = False

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, *given = operands
        _check_pairs(x)
        axis = normalize_axis(self.axis, x.rank)
        if axis == x.rank - 1:
            raise ShapeError("the last axis holds the parts", expected=f"axis 0 to {x.rank - 2}", found=self.axis)
        count = self._length(x.shape[axis], _number(given[0], "length", 1) if given else None)
        if count < 1:
            raise ShapeError("nothing to transform", expected="length 1 or more", found=count)
        shape = list(x.shape)
        shape[axis] = count // 2 + 1 if self.one_sided and not self.inverse else count
        shape[-1] = 1 if self.one_sided and self.inverse else 2
        return (TensorType(x.element, tuple(shape)),)

    def _length(self, extent: int, given: int | None) -> int:
        if given is not None:
            return given
        return 2 * (extent - 1) if self.one_sided and self.inverse else extent

    def reference(self, x: Array, length: Array | None = None) -> Array:
        axis = normalize_axis(self.axis, x.ndim)
        count = self._length(x.shape[axis], None if length is None else int(length.reshape(())))
        if self.inverse and self.one_sided:
            return np.fft.irfft(_complex(x), count, axis)[..., None].astype(x.dtype)
        spectrum = (np.fft.ifft if self.inverse else np.fft.fft)(_complex(x), count, axis)
        if self.one_sided:
            spectrum = np.take(spectrum, range(count // 2 + 1), axis)
        return _pairs(spectrum, x.dtype)

    def decompose(self, builder: Builder, x: Value, length: Value | None = None) -> Value:
        if x.element in HALVES:
            return in_float32(builder, self, x, length)[0]
        axis, last = normalize_axis(self.axis, x.rank), x.rank - 2
        if axis != last:
            order = [*range(x.rank)]
            order[axis], order[last] = last, axis
            moved = DFT(last, self.inverse, self.one_sided)
            turned = builder.emit(moved, builder.emit(Transpose(tuple(order)), x), length)
            return builder.emit(Transpose(tuple(order)), turned)
        count = self._length(x.shape[last], None if length is None else int(known_array(length, "length").reshape(())))
        half = self.inverse and self.one_sided
        x = _fitted(builder, x, count // 2 + 1 if half else count, length, half)
        if half:
            x = _with_mirror_image(builder, x, count)
        y = transform(builder, x, Transform(count, 1 if self.inverse else -1))
        if self.inverse:
            y = builder.emit(Mul(), y, scalar(builder, 1 / count, x.element))
        if half:
            return sliced(builder, y, y.rank - 1, 0, 1)
        return sliced(builder, y, last, 0, count // 2 + 1) if self.one_sided else y

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(61)
        real, pairs = (random.standard_normal((2, 12, 3, parts)).astype(np.float32) for parts in (1, 2))
        lengths = [
            Sample(cls(1), (random.standard_normal((1, count, 2)).astype(np.float32), None), 2e-5)
            for count in (1, 7, 37)
        ]
        plain = [Sample(cls(1, inverse), (x, None)) for inverse in (False, True) for x in (real, pairs)]
        fitted = [Sample(cls(1), (pairs, np.array(count))) for count in (5, 16)]
        one_sided = [Sample(cls(1, False, True), (real, count)) for count in (None, np.array(7, np.int32))]
        halves = [
            Sample(cls(-2), (real.astype(element.dtype), None), HALF_TOLERANCES[element])
            for element in sorted(HALVES, key=str)
        ]
        return [*plain, *fitted, *one_sided, *lengths, *halves, Sample(cls(0), (real.astype(np.float64), None))]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 5, 1), np.float32)
        return [
            ErrorSample(cls(), (x[..., 0],), "real numbers or pairs"),
            ErrorSample(cls(2), (x,), "holds the parts"),
            ErrorSample(cls(), (x, np.array(0)), "one number"),
            ErrorSample(cls(), (x[:, :0],), "nothing to transform"),
        ]


def _fitted(builder: Builder, x: Value, count: int, length: Value | None, half: bool) -> Value:
    """x with `count` elements along its last axis but one. Where another shape or length gives more, it is refused."""
    axis = x.rank - 2
    if length is not None and (length.dynamic or x.dynamic or x.shape[axis] != count):
        wanted = reshaped(builder, builder.emit(Cast(ElementType.I64), length), 1)
        if half:
            one, two = vector(builder, (1,)), vector(builder, (2,))
            wanted = builder.emit(Add(), builder.emit(Div(), wanted, two), one)
        pads = joined(builder, (0,) * (x.rank + axis), wanted, 0)
        x = sliced(builder, builder.emit(Pad(), x, pads), axis, 0, wanted)
    return reshaped(builder, x, extents(builder, x, 0, axis), (count, x.shape[-1])) if x.dynamic else x


def _with_mirror_image(builder: Builder, x: Value, count: int) -> Value:
    """All `count` elements of a spectrum, from the first half: element count - k is conjugate to element k."""
    indices = np.minimum(np.arange(count), count - np.arange(count))
    signs = np.ones((count, 2), x.element.dtype)
    signs[count // 2 + 1 :, 1] = -1
    whole = builder.emit(Gather(x.rank - 2), x, constant(builder, indices))
    return builder.emit(Mul(), whole, constant(builder, signs[:, : x.shape[-1]]))


@operator
class STFT(Operator):
    """The transforms of windows of a signal. ONNX STFT-17.

    x [N, L, 1 or 2] is cut in frames of `length` elements that begin `step` apart; each is multiplied by `window`
    [length] and transformed: [N, frames, length, 2], or the first length / 2 + 1 where `one_sided`. Without a length it
    is that of the window, and without a window, L.
    """

    onnx = "STFT-17"
    operands = (
        Operand("x", FLOATS),
        Operand("step", INDICES, host=True),
        Operand("window", FLOATS, optional=True),
        Operand("length", INDICES, optional=True, host=True),
    )
    one_sided: bool = True

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        x, step, window, length = (*operands, None, None)[:4]
        assert x is not None
        assert step is not None
        _check_pairs(x)
        if x.rank != 3:
            raise ShapeError("a signal has three axes", expected="[N, L, 1 or 2]", found=list(x.shape))
        size = x.shape[1]
        if length is not None:
            size = _number(length, "length", 1)
        elif window is not None:
            size = window.type.size
        if window is not None and window.shape != (size,):
            raise ShapeError("the window has another length", expected=[size], found=list(window.shape))
        if not 0 < size <= x.shape[1]:
            raise ShapeError("a frame is longer than the signal", expected=f"1 to {x.shape[1]}", found=size)
        frames = (x.shape[1] - size) // _number(step, "step", 1) + 1
        return (TensorType(x.element, (x.shape[0], frames, size // 2 + 1 if self.one_sided else size, 2)),)

    def reference(self, x: Array, step: Array, window: Array | None = None, length: Array | None = None) -> Array:
        size = x.shape[1] if window is None else len(window)
        size = size if length is None else int(length.reshape(()))
        frames = (x.shape[1] - size) // int(step.reshape(())) + 1
        places = np.arange(frames)[:, None] * int(step.reshape(())) + np.arange(size)
        weights = 1 if window is None else window.astype(np.float64)
        spectrum = np.fft.fft(_complex(x)[:, places] * weights)
        return _pairs(spectrum[..., : size // 2 + 1] if self.one_sided else spectrum, x.dtype)

    def decompose(
        self, builder: Builder, x: Value, step: Value, window: Value | None = None, length: Value | None = None
    ) -> Value:
        if x.element in HALVES:
            return in_float32(builder, self, x, step, window, length)[0]
        emit = builder.emit
        size = extents(builder, x, 1, 2) if window is None else extents(builder, window)
        if length is not None:
            size = reshaped(builder, emit(Cast(ElementType.I64), length), 1)
        stride = reshaped(builder, emit(Cast(ElementType.I64), step), 1)
        room = emit(Div(), emit(Sub(), extents(builder, x, 1, 2), size), stride)
        begins = emit(Mul(), emit(Iota(), emit(Add(), room, vector(builder, (1,)))), stride)
        places = emit(Add(), unsqueeze(builder, begins, (1,)), emit(Iota(), size))
        frames = emit(Gather(1), x, places)
        if window is not None:
            frames = emit(Mul(), frames, unsqueeze(builder, window, (1,)))
        return emit(DFT(-2, False, self.one_sided), frames)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(62)
        x = random.standard_normal((2, 50, 1)).astype(np.float32)
        window = random.uniform(0.5, 1, 16).astype(np.float32)
        return [
            Sample(cls(), (x, np.array(8), window, np.array(16))),
            Sample(cls(False), (x, np.array(5), window)),
            Sample(cls(False), (np.concatenate([x, x * 2], -1), np.array(7, np.int32), None, np.array(20, np.int32))),
            Sample(cls(), (x.astype(np.float64), np.array(3), None, np.array(12))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, step = np.ones((2, 9, 1), np.float32), np.array(2)
        return [
            ErrorSample(cls(), (x[None], step), "three axes"),
            ErrorSample(cls(), (x, np.array(0)), "one number"),
            ErrorSample(cls(), (x, step, None, np.array(10)), "longer than the signal"),
            ErrorSample(cls(), (x, step, x[0, :4, 0], np.array(5)), "another length"),
        ]
