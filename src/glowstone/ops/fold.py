"""Col2Im."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import known_shape
from glowstone.ops.element_sets import NUMBERS, SHAPES
from glowstone.ops.window import Window
from glowstone.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]
Extents = tuple[int, ...]

NOWHERE = -1


@operator
class Col2Im(Operator):
    """Sums of windows laid over an image: x [N, C * block, windows] to [N, C, image]. ONNX Col2Im-18."""

    onnx = "Col2Im-18"
    operands = (
        Operand("x", NUMBERS),
        Operand("image", SHAPES, host=True),
        Operand("block", SHAPES, host=True),
    )
    strides: tuple[int, ...] | None = None
    dilations: tuple[int, ...] | None = None
    pads: tuple[int, ...] | None = None

    def window(self, block: Extents) -> Window:
        ones = (1,) * len(block)
        return Window(block, self.strides or ones, self.dilations or ones, self.pads or (0,) * (2 * len(block)))

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        x, image, block = operands
        extents, kernel = known_shape(image, "image"), known_shape(block, "block")
        window = self.window(kernel)
        window.check(len(extents))
        size, count = math.prod(kernel), math.prod(window.output_extents(extents))
        if x.rank != 3 or x.shape[1] % size or x.shape[2] != count:
            raise ShapeError(
                "x does not hold the windows", expected=f"[N, multiple of {size}, {count}]", found=list(x.shape)
            )
        return (x.type.with_shape((x.shape[0], x.shape[1] // size, *extents)),)

    def places(self, image: Extents, block: Extents) -> Array:
        """[pixels, taps]: for every pixel the elements of [block, windows] that it sums, or `NOWHERE`."""
        window = self.window(block)
        counts = window.output_extents(image)
        axes = [_axis_places(window, axis, extent, counts[axis]) for axis, extent in enumerate(image)]
        columns = []
        for number, tap in enumerate(itertools.product(*map(range, block))):
            grids = np.meshgrid(*(table[:, step] for table, step in zip(axes, tap, strict=True)), indexing="ij")
            windows = [grid.ravel() for grid in grids]
            place = number * math.prod(counts) + np.ravel_multi_index(np.maximum(windows, 0), counts)
            columns.append(np.where(np.min(windows, axis=0) < 0, NOWHERE, place))
        result = np.stack(columns, axis=1)
        order = np.argsort(result == NOWHERE, axis=1, kind="stable")
        packed = np.take_along_axis(result, order, axis=1)
        return packed[:, (packed != NOWHERE).any(axis=0)]

    def reference(self, x: Array, image: Array, block: Array) -> Array:
        extents, kernel = (tuple(int(extent) for extent in numbers) for numbers in (image, block))
        places = self.places(extents, kernel)
        flat = x.reshape(x.shape[0], x.shape[1] // math.prod(kernel), -1)
        taken = np.where(places == NOWHERE, 0, flat[..., np.maximum(places, 0)] if flat.size else 0)
        total = taken.sum(axis=-1, dtype=x.dtype)
        return np.asarray(total.reshape(*flat.shape[:2], *extents))

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        def case(shape: Extents, image: list[int], block: list[int], **attributes: Any) -> Sample:
            x = np.arange(math.prod(shape), dtype=np.float32).reshape(shape)
            return Sample(cls(**attributes), (x, np.array(image, np.int64), np.array(block, np.int64)))

        return [
            case((1, 5, 5), [5, 5], [1, 5]),
            case((2, 18, 9), [5, 5], [3, 3]),
            case((1, 4, 9), [5, 5], [2, 2], strides=(2, 2), pads=(1, 0, 1, 2)),
            case((1, 6, 8), [6, 6], [2, 3], dilations=(2, 2), strides=(1, 1)),
            case((1, 8, 8), [3, 3, 3], [2, 2, 2]),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((1, 4, 5), np.float32)
        return [ErrorSample(cls(), (x, np.array([3, 3]), np.array([2, 2])), "does not hold the windows")]


def _axis_places(window: Window, axis: int, extent: int, count: int) -> Array:
    """[extent, kernel]: number of the window in which the pixel lies at each place of the kernel, or `NOWHERE`."""
    steps = np.arange(window.kernel[axis]) * window.dilations[axis]
    starts = np.arange(extent)[:, None] + window.pads[axis] - steps
    numbers, rest = np.divmod(starts, window.strides[axis])
    return np.where((rest == 0) & (numbers >= 0) & (numbers < count), numbers, NOWHERE)
