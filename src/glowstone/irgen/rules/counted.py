"""Results of as many elements as the data say."""

from __future__ import annotations

import numpy as np

from glowstone.graph import Value
from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.selection import split_at
from glowstone.irgen.rules.table import generates
from glowstone.lir import View
from glowstone.lir.operations.counted import (
    DistinctSlices,
    FindNonZero,
    KeepSlices,
    ListSelected,
    SuppressOverlaps,
)
from glowstone.ops import Compress, NonMaxSuppression, NonZero, Unique
from glowstone.types import ElementType, TensorType


@generates(NonZero)
def generate_non_zero(generator: Generator, application: Application) -> None:
    results = [generator.result(value) for value in application.node.results]
    generator.emit(FindNonZero(), *results, generator.view(application.operand(0)))


@generates(Compress)
def generate_compress(generator: Generator, application: Application) -> None:
    operator, condition = application.operator, application.operand(1)
    assert isinstance(operator, Compress)
    source = _slices(generator, application.operand(0), operator.axis)
    results = [generator.result(value) for value in application.node.results]
    generator.emit(KeepSlices(), *results, source, generator.view(condition))


@generates(Unique)
def generate_unique(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, Unique)
    source = _slices(generator, application.operand(0), operator.axis)
    results = [generator.result(value) for value in application.node.results]
    generator.emit(DistinctSlices(operator.ordered), *results, source)


def _slices(generator: Generator, x: Value, axis: int | None) -> View:
    """x as [outer, R, inner] around an axis; flat where None."""
    shape = (1, x.type.size, 1) if axis is None else split_at(x.shape, axis)
    return generator.reshaped(generator.view(x), shape)


@generates(NonMaxSuppression)
def generate_non_max_suppression(generator: Generator, application: Application) -> None:
    operator, boxes, scores = application.operator, application.operand(0), application.operand(1)
    assert isinstance(operator, NonMaxSuppression)
    most, overlap, threshold = (*application.operands[2:], None, None, None)[:3]
    classes = scores.shape[0] * scores.shape[1]
    shape = (classes, operator.most_per_class(boxes.shape[1]))
    selected = generator.new(TensorType(ElementType.I64, shape))
    counts = generator.new(TensorType(ElementType.I64, shape[:1]))
    limits = [_number(generator, overlap, np.zeros(1, np.float32)), _number(generator, most, np.zeros(1, np.int64))]
    if threshold is not None:
        limits.append(generator.reshaped(generator.view(threshold), (1,)))
    operation = SuppressOverlaps(operator.by_center, threshold is not None)
    generator.emit(operation, selected, counts, generator.view(boxes), generator.view(scores), *limits)
    results = [generator.result(value) for value in application.node.results]
    generator.emit(ListSelected(), *results, selected, counts, integers=(scores.shape[1],))


def _number(generator: Generator, value: Value | None, default: np.ndarray[tuple[int], np.dtype[np.generic]]) -> View:
    """An operand of one element as [1]."""
    if value is None:
        return generator.plan_constant(default)
    return generator.reshaped(generator.view(value), (1,))
