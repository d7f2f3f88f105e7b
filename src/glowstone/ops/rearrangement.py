"""Operators that move blocks of elements: split, tile, depth and space, crop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_array, known_shape
from glowstone.ops.element_sets import ANY, INDICES, SHAPES
from glowstone.types import TensorType, normalize_axes, normalize_axis

Array = np.ndarray[Any, np.dtype[Any]]
Extents = tuple[int, ...]

IMAGE_RANK = 4


def _numbers(*shape: int) -> Array:
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


@operator
class Split(Operator):
    """Parts of x along an axis: of these sizes, or `count` of one size, the last what is left. ONNX Split-18."""

    onnx = "Split-18"
    operands = (Operand("x", ANY), Operand("sizes", SHAPES, optional=True, host=True))
    axis: int = 0
    count: int = 2

    def parts(self, extent: int, sizes: Array | None) -> Extents:
        """Extents of the parts.

        Raises:
            ShapeError: the sizes do not add up to the extent, one is negative, or there are not `count`.
        """
        if sizes is None:
            part = -(-extent // self.count)
            return tuple(max(min(part, extent - index * part), 0) for index in range(self.count))
        result = tuple(int(size) for size in sizes.ravel())
        if len(result) != self.count or min(result, default=0) < 0 or sum(result) != extent:
            raise ShapeError(
                "sizes of the parts do not fit", expected=f"{self.count} numbers of sum {extent}", found=list(result)
            )
        return result

    def known_parts(self, *operands: Value | None) -> Extents:
        """`parts` from the operands of a node."""
        x = operands[0]
        assert x is not None
        sizes = operands[1] if len(operands) > 1 else None
        axis = normalize_axis(self.axis, x.rank)
        return self.parts(x.shape[axis], None if sizes is None else known_array(sizes, "sizes"))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        if self.count < 1:
            raise ModelError("a split into no parts", expected="1 or more", found=self.count)
        x = operands[0]
        axis = normalize_axis(self.axis, x.rank)
        return tuple(
            TensorType(x.element, (*x.shape[:axis], part, *x.shape[axis + 1 :])) for part in self.known_parts(*operands)
        )

    def reference(self, x: Array, sizes: Array | None = None) -> tuple[Array, ...]:
        parts = self.parts(x.shape[self.axis], sizes)
        return tuple(np.split(x, np.cumsum(parts)[:-1], axis=self.axis))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = _numbers(2, 6, 5)
        return [
            Sample(cls(1, 3), (x,)),
            Sample(cls(-1, 3), (x,)),
            Sample(cls(1, 2), (x, np.array([2, 4], np.int64))),
            Sample(cls(0, 2), (x, np.array([0, 2], np.int64))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = _numbers(2, 6)
        return [
            ErrorSample(cls(1, 2), (x, np.array([2, 3], np.int64)), "sizes of the parts do not fit"),
            ErrorSample(cls(2, 2), (x,), "axis out of range"),
        ]


@operator
class Tile(Operator):
    """x repeated along every axis. ONNX Tile-13."""

    onnx = "Tile-13"
    operands = (Operand("x", ANY), Operand("repeats", SHAPES, host=True))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, repeats = operands
        counts = known_shape(repeats, "repeats")
        if len(counts) != x.rank:
            raise ShapeError("repeats is one number for each axis", expected=f"{x.rank} numbers", found=list(counts))
        return (TensorType(x.element, tuple(extent * count for extent, count in zip(x.shape, counts, strict=True))),)

    def reference(self, x: Array, repeats: Array) -> Array:
        return np.tile(x, tuple(int(count) for count in repeats))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        cases = [((2, 3), [2, 3]), ((2, 3, 2), [1, 2, 1]), ((4,), [3]), ((2, 3), [0, 2]), ((), [])]
        return [Sample(cls(), (_numbers(*shape), np.array(repeats, np.int64))) for shape, repeats in cases]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(), (_numbers(2, 3), np.array([2], np.int64)), "one number for each axis")]


class _BlockMove(Operator):
    """Base of the two moves between channels and blocks of pixels of x [N, C, H, W].

    A pixel's place in its block counts before the channels that stay, or behind them where `column_first` (CRD).
    """

    operands = (Operand("x", ANY),)
    block: int = 1
    column_first: bool = False

    def shapes(self, shape: Extents) -> tuple[Extents, Extents, Extents]:
        """x as six axes, their order in the result, and the result's shape."""
        raise NotImplementedError

    def moves_blocks(self, channels: int, block: int) -> bool:
        """Whether blocks of so many channels stay whole, so that the operator works on data blocked by channels."""
        return False

    def check(self, shape: Extents) -> None:
        """Raise ShapeError unless x is an image and the block fits it."""
        if len(shape) != IMAGE_RANK:
            raise ShapeError("x is no batch of images", expected="[N, C, H, W]", found=list(shape))
        if self.block < 1:
            raise ShapeError("a block has at least one pixel", expected="1 or more", found=self.block)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        self.check(x.shape)
        if x.type.channel_block is not None and not self.moves_blocks(x.shape[1], x.type.channel_block):
            raise ModelError("only whole blocks of channels move", found=str(x.type))
        return (x.type.with_shape(self.shapes(x.shape)[2]),)

    def reference(self, x: Array) -> Array:
        split, order, result = self.shapes(x.shape)
        return np.ascontiguousarray(x.reshape(split).transpose(order)).reshape(result)


@operator
class DepthToSpace(_BlockMove):
    """Channels moved into blocks of pixels. ONNX DepthToSpace-13."""

    onnx = "DepthToSpace-13"
    block: int = 1
    column_first: bool = False

    def shapes(self, shape: Extents) -> tuple[Extents, Extents, Extents]:
        n, c, h, w = shape
        b = self.block
        depth = c // (b * b)
        result = (n, depth, h * b, w * b)
        if self.column_first:
            return (n, depth, b, b, h, w), (0, 1, 4, 2, 5, 3), result
        return (n, b, b, depth, h, w), (0, 3, 4, 1, 5, 2), result

    def moves_blocks(self, channels: int, block: int) -> bool:
        return not self.column_first and channels % (self.block**2 * block) == 0

    def check(self, shape: Extents) -> None:
        super().check(shape)
        if shape[1] % self.block**2:
            raise ShapeError("blocks do not fit the channels", expected=f"multiples of {self.block**2}", found=shape[1])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(block, mode), (_numbers(2, 18, 3, 4),)) for block in (1, 3) for mode in (False, True)]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [
            ErrorSample(cls(2), (_numbers(1, 6, 2, 2),), "do not fit the channels"),
            ErrorSample(cls(2), (_numbers(4, 2, 2),), "no batch of images"),
        ]


@operator
class SpaceToDepth(_BlockMove):
    """Blocks of pixels moved into channels. ONNX SpaceToDepth-13."""

    onnx = "SpaceToDepth-13"
    block: int = 1
    column_first: bool = False

    def shapes(self, shape: Extents) -> tuple[Extents, Extents, Extents]:
        n, c, h, w = shape
        b = self.block
        order = (0, 1, 3, 5, 2, 4) if self.column_first else (0, 3, 5, 1, 2, 4)
        return (n, c, h // b, b, w // b, b), order, (n, c * b * b, h // b, w // b)

    def check(self, shape: Extents) -> None:
        super().check(shape)
        if shape[2] % self.block or shape[3] % self.block:
            raise ShapeError("blocks do not fit the image", expected=f"multiples of {self.block}", found=shape[2:])

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(block), (_numbers(2, 3, 4, 6),)) for block in (1, 2)]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls(2), (_numbers(1, 2, 3, 2),), "do not fit the image")]


@operator
class CenterCropPad(Operator):
    """x cut or filled up with zeros around its middle to the shape given. ONNX CenterCropPad-18."""

    onnx = "CenterCropPad-18"
    operands = (Operand("x", ANY), Operand("shape", INDICES, host=True))
    axes: tuple[int, ...] | None = None

    def margins(self, shape: Extents, target: Sequence[int]) -> tuple[Extents, Extents]:
        """Zeros before and after every axis; negative where x is cut.

        Raises:
            ShapeError: axes out of range, or not as many as numbers in the target.
        """
        rank = len(shape)
        names = self.axes if self.axes is not None else tuple(range(rank))
        if len(names) != len(target):
            raise ShapeError("shape is one number for each axis", expected=f"{len(names)} numbers", found=list(target))
        normalize_axes(names, rank)
        before, after = [0] * rank, [0] * rank
        for name, extent in zip(names, target, strict=True):
            axis = normalize_axis(name, rank)
            change = int(extent) - shape[axis]
            before[axis] = change // 2 if change > 0 else -(-change // 2)
            after[axis] = change - before[axis]
        return tuple(before), tuple(after)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, shape = operands
        before, after = self.margins(x.shape, known_shape(shape, "shape"))
        return (TensorType(x.element, tuple(sum(extents) for extents in zip(before, x.shape, after, strict=True))),)

    def reference(self, x: Array, shape: Array) -> Array:
        return padded(x, *self.margins(x.shape, [int(extent) for extent in shape]))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = _numbers(4, 5, 3)
        return [
            Sample(cls(), (x, np.array([2, 8, 4], np.int64))),
            Sample(cls((1, -1)), (x, np.array([2, 1], np.int64))),
            Sample(cls((0,)), (x, np.array([7], np.int64))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        return [ErrorSample(cls((0,)), (_numbers(2, 3), np.array([2, 2], np.int64)), "one number for each axis")]


def padded(x: Array, before: Sequence[int], after: Sequence[int], value: Array | None = None) -> Array:
    """x with elements put before and after every axis, or taken away where a number is negative.

    `value` is the element to put; by default the one whose bits are zero, as f8e8m0 has no zero.
    """
    widths = [(max(first, 0), max(last, 0)) for first, last in zip(before, after, strict=True)]
    grown = np.pad(x, widths, constant_values=np.zeros((), x.dtype) if value is None else value)
    kept = tuple(
        slice(max(-first, 0), extent - max(-last, 0))
        for first, extent, last in zip(before, grown.shape, after, strict=True)
    )
    return grown[kept]
