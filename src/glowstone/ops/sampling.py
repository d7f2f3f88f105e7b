"""Sampling of images at points that data names: GridSample, and the grids of affine maps."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_shape
from glowstone.ops.element_sets import FLOATS, NUMBERS, SHAPES
from glowstone.scalar import Expression, Input, Literal, apply, cast, evaluate
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

OFFSETS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}
"""Elements that make one of the result, counted from the one on the left, by mode."""
PADDINGS = ("zeros", "border", "reflection")
ALPHA = -0.75
"""Parameter of cubic convolution."""
INPUTS_PER_AXIS = 4
NOWHERE = -1
POINT, OFFSET, EXTENT, STRIDE = range(INPUTS_PER_AXIS)
"""What expressions read for each axis: point in [-1, 1], offset of the tap, extent (all floats), and stride."""


@dataclass(frozen=True)
class GridInterpolation:
    """How points become places and weights. Expressions are of `element`, the type of the grid."""

    mode: str
    padding: str
    align_corners: bool
    element: ElementType

    def expressions(self, axes: int, weight: ElementType) -> tuple[Expression, Expression]:
        """(place, weight) of one tap; the place is `NOWHERE` where the tap lies outside and counts as zero."""
        strides = [Input(ElementType.I64, INPUTS_PER_AXIS * axis + STRIDE) for axis in range(axes)]
        place, total = self.joined([self._axis(axis) for axis in range(axes)], strides)
        return place, cast(total, weight)

    def joined(
        self, taps: Sequence[tuple[Expression, Expression]], strides: Sequence[Expression]
    ) -> tuple[Expression, Expression]:
        """(place, weight) of a tap in all axes, from its (index, weight) in each."""
        places, weights = zip(*taps, strict=True)
        terms = [apply("mul", place, stride) for place, stride in zip(places, strides, strict=True)]
        total = functools.reduce(lambda x, y: apply("add", x, y), terms)
        nowhere = Literal(ElementType.I64, NOWHERE)
        for place in places if self.padding == "zeros" else ():
            total = apply("select", apply("equal", place, nowhere), nowhere, total)
        return total, functools.reduce(lambda x, y: apply("mul", x, y), weights)

    def offsets(self, axes: int) -> Array:
        """[axes, taps]: the offsets of every tap."""
        grid = np.meshgrid(*[np.array(OFFSETS[self.mode])] * axes, indexing="ij")
        return np.stack([numbers.ravel() for numbers in grid])

    def _axis(self, axis: int) -> tuple[Expression, Expression]:
        point, offset, extent = (
            Input(self.element, INPUTS_PER_AXIS * axis + number) for number in (POINT, OFFSET, EXTENT)
        )
        return self.tap(self._place(point, extent), offset, extent)

    def tap(self, place: Expression, offset: Expression, extent: Expression) -> tuple[Expression, Expression]:
        """(index, weight) of the tap at an offset from the coordinate `place` of one axis."""
        borders = self._borders(extent)
        place = self._inside(place, extent, borders)
        tap = apply("add", place if self.mode == "nearest" else apply("floor", place), offset)
        return self._index(tap, extent, borders), self._weight(apply("abs", apply("sub", place, tap)))

    def _number(self, value: float) -> Expression:
        return Literal(self.element, value)

    def _borders(self, extent: Expression) -> tuple[Expression, Expression]:
        if self.align_corners:
            return self._number(0), apply("sub", extent, self._number(1))
        return self._number(-0.5), apply("sub", extent, self._number(0.5))

    def _place(self, point: Expression, extent: Expression) -> Expression:
        """The coordinate in the image."""
        one, half = self._number(1), self._number(0.5)
        moved = apply("add", point, one)
        if self.align_corners:
            place = apply("mul", apply("mul", moved, half), apply("sub", extent, one))
        else:
            place = apply("mul", apply("sub", apply("mul", moved, extent), one), half)
        return apply("round", place) if self.mode == "nearest" else place

    def _inside(self, place: Expression, extent: Expression, borders: tuple[Expression, Expression]) -> Expression:
        """The coordinate moved between the borders, where the padding says so."""
        if self.padding == "zeros":
            return place
        low, high = borders
        outside = apply("or", apply("less", place, low), apply("less", high, place))
        moved = self._clamped(place, extent) if self.padding == "border" else self._reflected(place, borders)
        return apply("select", outside, moved, place)

    def _index(self, tap: Expression, extent: Expression, borders: tuple[Expression, Expression]) -> Expression:
        """The element that a tap reads."""
        if self.padding == "zeros":
            inside = apply("and", apply("less_equal", self._number(0), tap), apply("less", tap, extent))
            return apply("select", inside, cast(tap, ElementType.I64), Literal(ElementType.I64, NOWHERE))
        tap = self._inside(tap, extent, borders)
        return cast(self._clamped(tap, extent), ElementType.I64)

    def _clamped(self, x: Expression, extent: Expression) -> Expression:
        return apply("max", apply("min", x, apply("sub", extent, self._number(1))), self._number(0))

    def _reflected(self, x: Expression, borders: tuple[Expression, Expression]) -> Expression:
        """x outside the borders, mirrored at them until it is between them."""
        low, high = borders
        span = apply("sub", high, low)
        is_below = apply("less", x, low)
        away = apply("select", is_below, apply("sub", low, x), apply("sub", x, high))
        turns = apply("floor", apply("div", away, span))
        rest = apply("sub", away, apply("mul", turns, span))
        half = apply("mul", turns, self._number(0.5))
        from_low = apply("equal", is_below, apply("equal", apply("floor", half), half))
        return apply("select", from_low, apply("add", low, rest), apply("sub", high, rest))

    def _weight(self, away: Expression) -> Expression:
        """The weight at a distance."""
        if self.mode == "nearest":
            return self._number(1)
        if self.mode == "linear":
            return apply("sub", self._number(1), away)

        def polynomial(*coefficients: float) -> Expression:
            return functools.reduce(
                lambda total, number: apply("add", apply("mul", total, away), self._number(number)),
                coefficients[1:],
                self._number(coefficients[0]),
            )

        near = polynomial(ALPHA + 2, -(ALPHA + 3), 0, 1)
        far = polynomial(ALPHA, -5 * ALPHA, 8 * ALPHA, -4 * ALPHA)
        return apply("select", apply("less_equal", away, self._number(1)), near, far)


@operator
class GridSample(Operator):
    """x [N, C, spatial] at the points of a grid [N, points, axes], last axis first. ONNX GridSample-20.

    Points from -1 to 1 span an image. `padding` says what lies outside: zeros, the border, or the image mirrored.
    """

    onnx = "GridSample-20"
    operands = (Operand("x", NUMBERS), Operand("grid", FLOATS))
    mode: str = "linear"
    padding: str = "zeros"
    align_corners: bool = False

    def interpolation(self, element: ElementType) -> GridInterpolation:
        return GridInterpolation(self.mode, self.padding, self.align_corners, element)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, grid = operands
        if self.mode not in OFFSETS:
            raise ModelError("mode is unknown", expected=", ".join(OFFSETS), found=self.mode)
        if self.padding not in PADDINGS:
            raise ModelError("padding is unknown", expected=", ".join(PADDINGS), found=self.padding)
        if self.mode != "nearest" and x.element not in FLOATS:
            raise ModelError("only floats are interpolated", expected="a float type", found=x.element)
        axes = x.rank - 2
        if axes < 1:
            raise ShapeError("x is no image", expected="rank 3 or more", found=str(x.type))
        if grid.rank != x.rank or grid.shape[-1] != axes or grid.shape[0] != x.shape[0]:
            raise ShapeError(
                "the grid does not fit x", expected=f"[{x.shape[0]}, points, {axes}]", found=str(grid.type)
            )
        shape = (*x.shape[:2], *grid.shape[1:-1])
        if 0 in x.shape[2:] and 0 not in shape:
            raise ShapeError("nothing to take elements from", expected="an image that is not empty", found=str(x.type))
        return (x.type.with_shape(shape),)

    def reference(self, x: Array, grid: Array) -> Array:
        spatial = x.shape[2:]
        element = ElementType.F64
        shape = self.interpolation(element)
        points = grid.reshape(grid.shape[0], -1, len(spatial)).astype(np.float64)
        arrays: list[Array] = []
        for axis, offsets in enumerate(shape.offsets(len(spatial))):
            stride = math.prod(spatial[axis + 1 :])
            point = points[..., len(spatial) - 1 - axis, None]
            arrays += [point, offsets.astype(np.float64), np.array(float(spatial[axis])), np.array(stride)]
        places, weights = (evaluate(part, arrays) for part in shape.expressions(len(spatial), element))
        flat = x.reshape(*x.shape[:2], -1)
        taken = np.stack([image[:, np.maximum(at, 0)] for image, at in zip(flat, places, strict=True)])
        taken = taken.transpose(1, 0, 2, 3)
        weighed = taken if self.mode == "nearest" else taken.astype(np.float64) * weights
        total = np.where(places == NOWHERE, np.zeros((), weighed.dtype), weighed).sum(axis=-1, dtype=weighed.dtype)
        return np.asarray(total.transpose(1, 0, 2)).reshape(*x.shape[:2], *grid.shape[1:-1]).astype(x.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(9)
        x = random.standard_normal((2, 3, 4, 5)).astype(np.float32)
        grid = random.uniform(-1.6, 1.6, (2, 3, 2, 2)).astype(np.float32)
        # outside the border ONNX Runtime weighs cubic taps otherwise than the specification
        volume, points = x.reshape(2, 3, 2, 2, 5), random.uniform(-1.3, 1.3, (2, 2, 1, 2, 3)).astype(np.float32)
        return [
            *(
                Sample(cls(mode, padding, align), (x, grid / 1.6 if (mode, padding) == ("cubic", "border") else grid))
                for mode in OFFSETS
                for padding in PADDINGS
                for align in (False, True)
            ),
            Sample(cls("linear", "reflection"), (volume, points)),
            Sample(cls("nearest", "border"), (volume, points)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, grid = np.ones((1, 1, 2, 2), np.float32), np.ones((1, 1, 1, 2), np.float32)
        return [
            ErrorSample(cls("area"), (x, grid), "mode is unknown"),
            ErrorSample(cls(padding="wrap"), (x, grid), "padding is unknown"),
            ErrorSample(cls(), (x.astype(np.int32), grid), "only floats"),
            ErrorSample(cls(), (x, grid[0]), "the grid does not fit"),
            ErrorSample(cls(), (x[..., :0], grid), "nothing to take elements from"),
        ]


@operator
class AffineGrid(Operator):
    """The points of an image of the given size [N, C, spatial] under affine maps theta. ONNX AffineGrid-20."""

    onnx = "AffineGrid-20"
    operands = (Operand("theta", FLOATS), Operand("size", SHAPES, host=True))
    align_corners: bool = False

    def points(self, spatial: Sequence[int]) -> Array:
        """Homogeneous coordinates [points, axes + 1] in float64, the last axis first."""
        lines = [self._line(extent) for extent in spatial]
        grids = np.meshgrid(*lines, indexing="ij")
        return np.stack([grid.ravel() for grid in (*grids[::-1], np.ones(tuple(spatial)))], axis=-1)

    def _line(self, extent: int) -> Array:
        if self.align_corners:
            return np.linspace(-1, 1, extent)
        return (2 * np.arange(extent) + 1) / max(extent, 1) - 1

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        theta, size = operands
        extents = known_shape(size, "size")
        axes = len(extents) - 2
        if axes < 1 or theta.shape != (extents[0], axes, axes + 1):
            expected = f"[{extents[0] if extents else 'N'}, {axes}, {axes + 1}]"
            raise ShapeError("theta does not fit the size", expected=expected, found=list(theta.shape))
        return (theta.type.with_shape((extents[0], *extents[2:], axes)),)

    def reference(self, theta: Array, size: Array) -> Array:
        spatial = [int(extent) for extent in size[2:]]
        result = self.points(spatial) @ theta.astype(np.float64).transpose(0, 2, 1)
        return np.asarray(result.reshape(theta.shape[0], *spatial, len(spatial))).astype(theta.dtype)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(10)
        plane, space = (random.standard_normal((2, axes, axes + 1)).astype(np.float32) for axes in (2, 3))
        return [
            *(Sample(cls(align), (plane, np.array([2, 3, 4, 5], np.int64))) for align in (False, True)),
            Sample(cls(), (space, np.array([2, 1, 2, 3, 4], np.int64))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        theta = np.ones((1, 2, 3), np.float32)
        return [ErrorSample(cls(), (theta, np.array([2, 1, 3, 4])), "theta does not fit")]
