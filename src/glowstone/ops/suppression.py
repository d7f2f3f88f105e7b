"""NonMaxSuppression: of boxes that overlap, only the one of the highest score is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.counted import COUNT, padded
from glowstone.ops.element_sets import SHAPES
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]

FLOAT32 = frozenset({ElementType.F32})
CORNERS = 4
COLUMNS = 3
"""Of a selected box: image, class, number."""


@operator
class NonMaxSuppression(Operator):
    """Greedily the boxes of highest scores that overlap none selected before. What ONNX NonMaxSuppression-11 selects.

    boxes [images, boxes, 4], scores [images, classes, boxes]; per class at most `most` boxes (none where left out), no
    two with an intersection of more than `overlap` of their union (0 where left out), each with a score above
    `threshold`. Boxes are two opposite corners (y, x, y, x), or centre and size (x, y, width, height) where
    `by_center`. `selected` holds [count, 3] elements: image, class, box. There is room for `room` boxes of a class.
    """

    operands = (
        Operand("boxes", FLOAT32),
        Operand("scores", FLOAT32),
        Operand("most", SHAPES, optional=True),
        Operand("overlap", FLOAT32, optional=True),
        Operand("threshold", FLOAT32, optional=True),
    )
    result_names = ("selected", "count")
    by_center: bool = False
    room: int | None = None

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        boxes, scores = operands[:2]
        if boxes.rank != 3 or boxes.shape[2] != CORNERS:
            raise ShapeError("no list of boxes", expected="[images, boxes, 4]", found=list(boxes.shape))
        if scores.rank != 3 or scores.shape[::2] != boxes.shape[:2]:
            expected = f"[{boxes.shape[0]}, classes, {boxes.shape[1]}]"
            raise ShapeError("scores do not fit the boxes", expected=expected, found=list(scores.shape))
        for operand in operands[2:]:
            if operand is not None and operand.type.size != 1:
                raise ShapeError("a limit is not one number", expected="one element", found=str(operand.type))
        rows = scores.shape[0] * scores.shape[1] * self.most_per_class(boxes.shape[1])
        return (TensorType(ElementType.I64, (COLUMNS * rows,)), COUNT)

    def most_per_class(self, boxes: int) -> int:
        """How many boxes of a class can be selected at most."""
        return boxes if self.room is None else min(self.room, boxes)

    def reference(
        self,
        boxes: Array,
        scores: Array,
        most: Array | None = None,
        overlap: Array | None = None,
        threshold: Array | None = None,
    ) -> tuple[Array, Array]:
        room = self.most_per_class(boxes.shape[1])
        limit = 0 if most is None else min(int(most.reshape(())), room)
        largest = np.float32(0 if overlap is None else overlap.reshape(()))
        corners = _corners(boxes, self.by_center)
        selected = []
        for image, kind in np.ndindex(*scores.shape[:2]):
            row = scores[image, kind]
            kept: list[int] = []
            for box in np.argsort(-row, kind="stable").tolist():
                passes = threshold is None or row[box] > threshold.reshape(())
                if passes and len(kept) < limit:
                    rivals = (_overlap(corners[image, box], corners[image, other]) for other in kept)
                    if not any(rival > largest for rival in rivals):
                        kept.append(box)
            selected += [(image, kind, box) for box in kept]
        found = np.array(selected, np.int64).reshape(-1, COLUMNS)
        return padded(found, COLUMNS * scores.shape[0] * scores.shape[1] * room), np.array([len(found)], np.int64)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(73)
        corners = random.random((2, 12, 4), np.float32)
        centers = np.concatenate([corners[..., :2], 0.3 * corners[..., 2:]], 2)
        scores = np.round(random.random((2, 3, 12), np.float32), 1)  # with ties
        overlap, threshold = np.array([0.2], np.float32), np.array([0.35], np.float32)
        return [
            Sample(cls(), (corners, scores, np.array([12]), overlap, threshold)),
            Sample(cls(room=2), (corners, scores, np.array([2]), overlap)),
            Sample(cls(), (corners, scores, np.array([3]), None, threshold)),
            Sample(cls(room=0), (corners, scores)),
            Sample(cls(), (corners, scores, np.array([-1]), overlap)),
            Sample(cls(True), (centers, scores, np.array([5]), overlap, threshold)),
            Sample(cls(), (corners, scores, np.array(4), np.array(0.5, np.float32), np.array([2], np.float32))),
            Sample(cls(), (corners[:, :0], scores[:, :, :0], np.array([4]), overlap)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        boxes, scores = np.ones((1, 2, 4), np.float32), np.ones((1, 3, 2), np.float32)
        return [
            ErrorSample(cls(), (boxes[0], scores), "no list of boxes"),
            ErrorSample(cls(), (boxes, scores[:, :, :1]), "scores do not fit"),
            ErrorSample(cls(), (boxes, scores, np.array([1, 2])), "a limit is not one number"),
        ]


def _corners(boxes: Array, by_center: bool) -> Array:
    """Lowest and highest coordinates: [..., 0:2] and [..., 2:4]."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if by_center:
        half = second / np.float32(2)
        return np.concatenate([first - half, first + half], -1)
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _overlap(one: Array, other: Array) -> float:
    """The intersection's part of the union, in float32; minus infinity where they have no area in common."""
    sides = np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2])
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    common = sides[0] * sides[1]
    if not (sides > 0).all() or not min(areas) > 0:
        return -np.inf
    return float(common / (areas[0] + areas[1] - common))
