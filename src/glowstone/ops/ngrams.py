"""Counts of short sequences of tokens (n-grams) in texts, and their weights."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.constant import ConstantOfShape, constant, scalar
from glowstone.ops.element_sets import INDICES
from glowstone.ops.elementwise import Add, Greater, Mul, Where
from glowstone.ops.lookup import Lookup
from glowstone.ops.scatter import ScatterElements
from glowstone.ops.shape import Concat, Shape
from glowstone.ops.shape_arithmetic import extents, joined, reshaped, sliced
from glowstone.ops.widening import converted
from glowstone.types import ElementType, TensorType

Array = np.ndarray[Any, np.dtype[Any]]
Gram = tuple[int, ...]

MODES = ("TF", "IDF", "TFIDF")
END = np.iinfo(np.int64).max
"""Of a slice that goes to the end."""


@operator
class TfIdfVectorizer(Operator):
    """How often each n-gram of a pool occurs in texts x [tokens] or [texts, tokens]. ONNX TfIdfVectorizer-9.

    The n-grams of one size stand together in the pool, by size; those of size n begin at `starts[n - 1]`. The i-th of
    all is counted in column `columns[i]`. Those of `sizes` (smallest, largest) are looked for, with 0 to `skips` tokens
    left out between any two (none for single tokens). `mode` TF gives counts, IDF the weight where there are any, TFIDF
    counts times weights; weights are by column, as in the reference implementation.
    """

    onnx = "TfIdfVectorizer-9"
    operands = (Operand("x", INDICES),)
    mode: str = "TF"
    sizes: tuple[int, int] = (1, 1)
    skips: int = 0
    pool: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        self._check()
        if x.rank > 2:
            raise ShapeError("texts are rows of tokens", expected="[tokens] or [texts, tokens]", found=list(x.shape))
        return (TensorType(ElementType.F32, (*x.shape[:-1], self.width)),)

    def _check(self) -> None:
        least, most = self.sizes
        if self.mode not in MODES or not 0 < least <= most or self.skips < 0:
            raise ModelError(
                "mode, sizes and skips do not fit",
                expected=f"{', '.join(MODES)}; sizes from 1, rising; no negative skips",
                found=[self.mode, least, most, self.skips],
            )
        bounds = (*self.starts, len(self.pool))
        parts = [end - start for start, end in itertools.pairwise(bounds)]
        if bounds[0] or any(part < 0 or part % size for size, part in enumerate(parts, 1)):
            raise ModelError("the pool is not made of whole n-grams by size", expected=len(self.pool), found=bounds)
        count = sum(part // size for size, part in enumerate(parts, 1))
        if len(self.columns) != count or min(self.columns, default=0) < 0:
            raise ModelError("not one column for each n-gram", expected=count, found=len(self.columns))
        if self.weights and len(self.weights) < self.width:
            raise ModelError("not one weight for each column", expected=self.width, found=len(self.weights))

    @property
    def width(self) -> int:
        """Columns of the result."""
        return max(self.columns, default=-1) + 1

    def grams(self, size: int) -> dict[Gram, int]:
        """Columns of the n-grams of a size; the last one counts of those that are there twice."""
        bounds = (*self.starts, len(self.pool))
        if size >= len(bounds):
            return {}
        before = sum((end - start) // n for n, (start, end) in enumerate(itertools.pairwise(bounds[:size]), 1))
        count = (bounds[size] - bounds[size - 1]) // size
        rows = np.reshape(self.pool[bounds[size - 1] : bounds[size]], (count, size)).tolist()
        return {tuple(row): self.columns[before + index] for index, row in enumerate(rows)}

    def distances(self, size: int) -> range:
        """How far apart the tokens of an n-gram may be."""
        return range(1, 2 if size == 1 else self.skips + 2)

    def reference(self, x: Array) -> Array:
        rows = x.reshape((-1, x.shape[-1]) if x.ndim > 1 else (1, -1))
        counts = np.zeros((len(rows), self.width), np.float32)
        for size in range(self.sizes[0], self.sizes[1] + 1):
            grams = self.grams(size)
            for distance in self.distances(size) if grams else ():
                for number, row in enumerate(rows.tolist()):
                    for start in range(len(row) - distance * (size - 1)):
                        column = grams.get(tuple(row[start : start + distance * size : distance][:size]))
                        if column is not None:
                            counts[number, column] += 1
        weights = np.array(self.weights[: self.width] or 1, np.float32)
        found = {"TF": counts, "IDF": np.where(counts > 0, weights, np.float32(0)), "TFIDF": counts * weights}
        return np.asarray(found[self.mode]).reshape((*x.shape[:-1], self.width))

    def decompose(self, builder: Builder, x: Value) -> Value:
        emit, width = builder.emit, self.width
        tokens = converted(builder, x, ElementType.I64)
        rows = tokens if x.rank == 2 else reshaped(builder, tokens, (1, -1))
        texts = extents(builder, rows, 0, 1)
        hits = self._hits(builder, rows)
        counts = emit(ConstantOfShape(0.0, ElementType.F32), joined(builder, texts, width + 1))
        if hits:
            columns = hits[0] if len(hits) == 1 else emit(Concat(1), *hits)
            ones = emit(ConstantOfShape(1.0, ElementType.F32), emit(Shape(), columns))
            counts = emit(ScatterElements(1, "add"), counts, columns, ones)
        result = sliced(builder, counts, 1, 0, width)
        if self.mode != "TF":
            zero, one = (scalar(builder, number, ElementType.F32) for number in (0, 1))
            weights = constant(builder, np.array(self.weights[:width], np.float32)) if self.weights else one
            seen = emit(Where(), emit(Greater(), result, zero), weights, zero)
            result = seen if self.mode == "IDF" else emit(Mul(), result, weights)
        return result if x.rank == 2 else reshaped(builder, result, width)

    def _hits(self, builder: Builder, rows: Value) -> list[Value]:
        """For every size and distance the column of the n-gram at each start [texts, starts]; `width` for none."""
        sizes = [size for size in range(self.sizes[0], self.sizes[1] + 1) if self.grams(size)]
        vocabulary = sorted({token for size in sizes for gram in self.grams(size) for token in gram})
        if not vocabulary:
            return []
        number_of = {token: index for index, token in enumerate(vocabulary)}
        numbers = _found(builder, rows, number_of, len(vocabulary))
        hits = []
        for size in sizes:
            grams = {tuple(number_of[token] for token in gram): column for gram, column in self.grams(size).items()}
            for distance in self.distances(size):
                parts = [
                    sliced(builder, numbers, 1, distance * index, -distance * (size - 1 - index) or END)
                    for index in range(size)
                ]
                hits.append(_columns(builder, parts, grams, len(vocabulary) + 1, self.width))
        return hits

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        pool = {"pool": (2, 3, 5, 4, 5, 6, 7, 8, 6, 7), "starts": (0, 4), "columns": (0, 1, 2, 3, 4, 5, 6)}
        x = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int32)
        long = {"pool": (1, 3, 1, 1, 3, 3, 3, 7, 1, 3), "starts": (0, 2, 4), "columns": (3, 0, 1, 0, 2)}
        weights = (0.5, 1.5, 2.0, 0.25)
        return [
            Sample(cls("TF", (1, 2), 5, **pool), (x,)),
            Sample(cls("TF", (2, 2), 0, **pool), (x.reshape(-1).astype(np.int64),)),
            Sample(cls("IDF", (1, 3), 1, **long, weights=weights), (x,)),
            Sample(cls("TFIDF", (2, 3), 2, **long, weights=weights), (x,)),
            Sample(cls("IDF", (3, 3), 9, **long), (x,)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, pool = np.ones((2, 3), np.int64), {"pool": (1, 2, 3), "starts": (0, 1), "columns": (0, 1)}
        return [
            ErrorSample(cls("TF", (1, 2), 0, **pool), (x[None],), "rows of tokens"),
            ErrorSample(cls("FT", (1, 2), 0, **pool), (x,), "mode, sizes and skips"),
            ErrorSample(cls("TF", (1, 2), 0, **{**pool, "starts": (0, 2)}), (x,), "whole n-grams"),
            ErrorSample(cls("TF", (1, 2), 0, **{**pool, "columns": (0,)}), (x,), "one column"),
            ErrorSample(cls("TF", (1, 2), 0, **pool, weights=(1.0,)), (x,), "one weight"),
        ]


def _found(builder: Builder, x: Value, table: dict[int, int], missing: int) -> Value:
    keys = sorted(table)
    values = np.array([*(table[key] for key in keys), missing])
    return builder.emit(Lookup(), x, constant(builder, np.array(keys, np.int64)), constant(builder, values))


def _columns(builder: Builder, parts: list[Value], grams: dict[Gram, int], base: int, missing: int) -> Value:
    """The column of the n-gram whose tokens are the parts, all of one shape.

    Beginnings of n-grams are numbered; one with a token more is found by `number * base + token`.
    """
    numbers = {gram[:1]: gram[0] for gram in grams}
    node = parts[0]
    for length in range(2, len(parts) + 1):
        longer = sorted({gram[:length] for gram in grams})
        keys = {gram: numbers[gram[:-1]] * base + gram[-1] for gram in longer}
        key = builder.emit(Add(), builder.emit(Mul(), node, scalar(builder, base, node.element)), parts[length - 1])
        numbers = {gram: index for index, gram in enumerate(longer)}
        node = _found(builder, key, {keys[gram]: numbers[gram] for gram in longer}, len(longer))
    return _found(builder, node, {numbers[gram]: column for gram, column in grams.items()}, missing)
