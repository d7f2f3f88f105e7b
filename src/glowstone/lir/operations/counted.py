"""Operations whose results have as many elements as the data say.

Results lie one after the other from the start of a flat buffer of the largest possible size, zeros behind them; how
many there are is an i64[1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.types import ElementType, is_float_dtype

OUT, IN = Access.OUT, Access.IN


def _verify_integers(*views: View) -> None:
    for view in views:
        require(view.element is ElementType.I64, f"{view.element} where counts and positions are i64")


def _fill(buffer: Array, found: Array) -> None:
    """The elements in row-major order, then zeros."""
    buffer[...] = 0
    buffer[: found.size] = found.reshape(-1)


@operation
class FindNonZero(Operation):
    """Coordinates of the elements that are not zero: [rank, count] of them.

    Operands: positions [rank * size of x] and count [1], both i64; x of any rank.
    """

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (OUT, OUT, IN)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        positions, count, x = views
        require(positions.shape == (x.rank * x.size,) and count.shape == (1,), f"{positions.shape} of {x.shape}")
        _verify_integers(positions, count)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        positions, count, x = arrays
        found = np.argwhere(x)
        _fill(positions, found.T)
        count[0] = np.count_nonzero(x)


@operation
class KeepSlices(Operation):
    """`x[:, r]` of the r where the condition holds: [outer, count, inner] elements.

    Operands: y [size of x], count [1] of i64, x [outer, R, inner], condition [C] of bool with C <= R.
    """

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (OUT, OUT, IN, IN)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, count, x, condition = views
        require(x.rank == 3 and y.shape == (x.size,) and count.shape == (1,), f"{y.shape} of {x.shape}")
        require(condition.rank == 1 and condition.shape[0] <= x.shape[1], f"{condition.shape} on {x.shape}")
        require(y.element is x.element and condition.element is ElementType.BOOL, f"{y.element}, {condition.element}")
        _verify_integers(count)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, count, x, condition = arrays
        _fill(y, x[:, : condition.size][:, condition])
        count[0] = condition.sum()


@operation
class DistinctSlices(Operation):
    """The distinct `x[:, r]`, ascending by their first element that differs, or by first occurrence if not `ordered`.

    Operands: y [size of x] ([outer, count, inner] elements), first [R] and occurrences [R] (count elements), inverse
    [R], count [1], x [outer, R, inner]; all but y and x are i64. NaN equals NaN and is above every number.
    """

    ordered: bool = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (OUT, OUT, OUT, OUT, OUT, IN)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, first, inverse, occurrences, count, x = views
        require(x.rank == 3 and y.shape == (x.size,) and count.shape == (1,), f"{y.shape} of {x.shape}")
        require(y.element is x.element, f"{y.element} from {x.element}")
        for positions in (first, inverse, occurrences):
            require(positions.shape == (x.shape[1],), f"{positions.shape} of {x.shape}")
        _verify_integers(first, inverse, occurrences, count)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, first, inverse, occurrences, count, x = arrays
        length = x.shape[1]
        slices = np.moveaxis(x, 1, 0).reshape(length, x.shape[0] * x.shape[2])
        wide = slices.astype(np.float64) if is_float_dtype(x.dtype) else slices
        columns = list(wide.T[::-1]) or [np.zeros(length)]
        order = np.lexsort(columns) if length else np.zeros(0, np.int64)
        inverse[order] = np.cumsum(_differs_from_last(wide[order]))
        found, places, numbers, counts = np.unique(inverse, return_index=True, return_inverse=True, return_counts=True)
        if not self.ordered:
            by_place = np.argsort(places)
            places, counts, numbers = places[by_place], counts[by_place], np.argsort(by_place)[numbers]
        inverse[...] = numbers
        _fill(first, places)
        _fill(occurrences, counts)
        _fill(y, x[:, places])
        count[0] = len(found)


def _differs_from_last(rows: Array) -> Array:
    """For every row whether it differs from the one before; the first does not."""
    result = np.zeros(len(rows), bool)
    same = (rows[1:] == rows[:-1]) | ((rows[1:] != rows[1:]) & (rows[:-1] != rows[:-1]))
    result[1:] = ~same.all(axis=1)
    return result


@operation
class SuppressOverlaps(Operation):
    """Greedily the boxes of highest scores that overlap none selected before, for every class of every image.

    Operands: selected [images * classes, most] and counts [images * classes] of i64 (zeros behind the count); boxes
    [images, N, 4], scores [images, classes, N], `overlap` [1], all float32; limit [1] of i64; threshold [1] of float32
    where `has_threshold`. Boxes are opposite corners (y, x, y, x), or (x, y, width, height) where `by_center`.
    """

    by_center: bool = False
    has_threshold: bool = False

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (OUT, OUT, *([IN] * (5 if self.has_threshold else 4)))

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        selected, counts, boxes, scores, overlap, limit, *threshold = views
        require(boxes.rank == scores.rank == 3 and boxes.shape[2] == 4, f"{boxes.shape}, {scores.shape}")
        require(scores.shape[::2] == boxes.shape[:2], f"scores {scores.shape} of boxes {boxes.shape}")
        classes = scores.shape[0] * scores.shape[1]
        require(selected.rank == 2 and selected.shape[0] == classes and counts.shape == (classes,), f"{selected.shape}")
        require(selected.shape[1] <= boxes.shape[1], f"{selected.shape[1]} of {boxes.shape[1]} boxes")
        for number in (overlap, limit, *threshold):
            require(number.shape == (1,), f"{number.shape} is not one number")
        for view in (boxes, scores, overlap, *threshold):
            require(view.element is ElementType.F32, f"{view.element} where float32 is expected")
        _verify_integers(selected, counts, limit)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        selected, counts, boxes, scores, overlap, limit, *threshold = arrays
        selected[...] = 0
        most = min(int(limit[0]), selected.shape[1])
        for row, (image, kind) in enumerate(np.ndindex(*scores.shape[:2])):
            marks = scores[image, kind]
            order = [box for box in np.argsort(-marks, kind="stable") if not threshold or marks[box] > threshold[0][0]]
            kept: list[int] = []
            for box in order:
                rivals = (self._overlap(boxes[image, box], boxes[image, other]) for other in kept)
                if len(kept) < most and not any(rival > overlap[0] for rival in rivals):
                    kept.append(int(box))
            selected[row, : len(kept)] = kept
            counts[row] = len(kept)

    def _overlap(self, one: Array, other: Array) -> float:
        """Intersection over union in float32; minus infinity where they have no area in common."""
        (low, high, area), (other_low, other_high, other_area) = self._box(one), self._box(other)
        sides = np.minimum(high, other_high) - np.maximum(low, other_low)
        if not (sides > 0).all() or not (area > 0 and other_area > 0):
            return -np.inf
        common = sides[0] * sides[1]
        return float(common / (area + other_area - common))

    def _box(self, box: Array) -> tuple[Array, Array, float]:
        """Low and high corner, area."""
        low, high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
        if self.by_center:
            half = box[2:] / np.float32(2)
            low, high = box[:2] - half, box[:2] + half
        return low, high, (high[0] - low[0]) * (high[1] - low[1])


@operation
class ListSelected(Operation):
    """Rows (image, class, box) of what `SuppressOverlaps` selected: [count, 3] elements.

    Operands: rows [3 * images * classes * most], count [1], selected [images * classes, most], counts [images *
    classes], all i64. Integers: the number of classes.
    """

    integer_names = ("classes",)

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (OUT, OUT, IN, IN)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        rows, count, selected, counts = views
        require(selected.rank == 2 and counts.shape == selected.shape[:1], f"{selected.shape}, {counts.shape}")
        require(rows.shape == (3 * math.prod(selected.shape),) and count.shape == (1,), f"{rows.shape}")
        require(integers[0] > 0 or selected.size == 0, f"{integers[0]} classes")
        _verify_integers(rows, count, selected, counts)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        rows, count, selected, counts = arrays
        lengths = np.clip(counts, 0, selected.shape[1]).tolist()
        found = [
            (number // integers[0], number % integers[0], box)
            for number, length in enumerate(lengths)
            for box in selected[number, :length].tolist()
        ]
        _fill(rows, np.array(found, np.int64))
        count[0] = len(found)
