"""Einstein's summation, by transpositions, matrix products and sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Operand, Operator, Sample, Value, operator
from glowstone.graph.operator import ErrorSample
from glowstone.ops.element_sets import NUMBERS
from glowstone.ops.elementwise import Add, Identity, Mul
from glowstone.ops.linear import MatMul
from glowstone.ops.reduction import ReduceSum
from glowstone.ops.shape import Slice, Transpose, unsqueeze
from glowstone.ops.shape_arithmetic import extents, reshaped, vector
from glowstone.types import TensorType, broadcast_shapes

Array = np.ndarray[Any, np.dtype[Any]]

ELLIPSIS = "..."
Labels = tuple[str, ...]
"""One name for each axis; those of an ellipsis are "-1", "-2" ... from the back."""


@operator
class Einsum(Operator):
    """Sum of products over the indices that the right side of the equation leaves out. ONNX Einsum-12."""

    onnx = "Einsum-12"
    operands = (Operand("x", NUMBERS, variadic=True),)
    equation: str = ""

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        if not operands or any(operand.element is not operands[0].element for operand in operands):
            raise ModelError(
                "operands of Einsum differ in type", expected="one type", found=[str(value.type) for value in operands]
            )
        terms, result = parse_equation(self.equation, [operand.rank for operand in operands])
        shapes: dict[str, tuple[int, ...]] = {}
        for operand, labels in zip(operands, terms, strict=True):
            _check_diagonals(operand, labels)
            for label, extent in zip(labels, operand.shape, strict=True):
                shapes[label] = broadcast_shapes(shapes.get(label, (1,)), (extent,))
        return (TensorType(operands[0].element, tuple(shapes[label][0] for label in result)),)

    def reference(self, *operands: Array) -> Array:
        element = operands[0].dtype
        wide = [operand.astype(np.float64) if element.kind not in "iu" else operand for operand in operands]
        return np.asarray(np.einsum(self.equation.replace(" ", ""), *wide)).astype(element)

    def decompose(self, builder: Builder, *operands: Value) -> Value:
        terms, result = parse_equation(self.equation, [operand.rank for operand in operands])
        pending = [_Term(operand, labels) for operand, labels in zip(operands, terms, strict=True)]
        contraction = _Contraction(builder)
        pending = [contraction.with_distinct_labels(term) for term in pending]
        left, *rest = [
            contraction.summed(term, _labels_of(pending[:number] + pending[number + 1 :]) | set(result))
            for number, term in enumerate(pending)
        ]
        for number, right in enumerate(rest):
            left = contraction.product(left, right, _labels_of(rest[number + 1 :]) | set(result))
        permutation = tuple(left.labels.index(label) for label in result)
        if permutation == tuple(range(len(result))):
            return builder.emit(Identity(), left.value)
        return builder.emit(Transpose(permutation), left.value)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(71)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        return [
            Sample(cls("ij->ji"), (normal(3, 4),)),
            Sample(cls("ij->i"), (normal(3, 4),)),
            Sample(cls("...ii ->...i"), (normal(3, 5, 5),)),
            Sample(cls("i,i"), (normal(5), normal(5))),
            Sample(cls("bij, bjk -> bik"), (normal(5, 2, 3), normal(5, 3, 4))),
            Sample(cls("bhid,bhjd->bhij"), (normal(2, 3, 4, 5), normal(2, 3, 6, 5))),
            Sample(cls("abc,cbd->da"), (normal(2, 3, 4), normal(4, 3, 5))),
            Sample(cls("i,j->ij"), (normal(3), normal(4))),
            Sample(cls("...ij,...jk->...ik"), (normal(4, 5, 2, 3), normal(4, 5, 3, 2))),
            Sample(cls("ij,jk,kl->il"), (normal(2, 3), normal(3, 4), normal(4, 5))),
            Sample(cls("ii"), (normal(4, 4),)),
            Sample(cls("ij,ij->"), (np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3))),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x = np.ones((2, 3), np.float32)
        return [
            ErrorSample(cls("ij,jk->ik"), (x,), "operands than the equation"),
            ErrorSample(cls("ijk->i"), (x,), "another rank than in the equation"),
            ErrorSample(cls("ij->k"), (x,), "not an equation"),
            ErrorSample(cls("ii->i"), (x,), "a diagonal of unequal axes"),
            ErrorSample(cls("ij,ij->"), (x, x[:, :2]), "broadcast"),
        ]


def parse_equation(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of every operand and of the result.

    Raises:
        ModelError: text that is no equation, or for another number of operands.
        ShapeError: an operand has another rank than the equation.
    """
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ModelError("other operands than the equation has", expected=len(terms), found=len(ranks))
    labels = [_term_labels(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    flat = [label for term in labels for label in term]
    dots = sorted({label for label in flat if label[0] == "-"}, key=int)
    if arrow:
        result = tuple(label for name in _names(right) for label in (dots if name == ELLIPSIS else [name]))
    else:
        result = (*dots, *sorted(label for label in set(flat) if flat.count(label) == 1 and label[0] != "-"))
    if len(set(result)) != len(result) or not set(result) <= set(flat):
        raise ModelError("not an equation", expected="distinct labels of the operands on the right", found=equation)
    return labels, result


def _check_diagonals(operand: Value, labels: Labels) -> None:
    """Raise ShapeError unless axes of one label have one extent."""
    if len(set(zip(labels, operand.shape, strict=True))) != len(set(labels)):
        raise ShapeError("a diagonal of unequal axes", expected="equal extents", found=str(operand.type))


def _names(term: str) -> list[str]:
    """Letters and at most one ellipsis."""
    before, dots, after = term.partition(ELLIPSIS)
    if not (before + after).isalpha() and before + after:
        raise ModelError("not an equation", expected="letters, commas, an ellipsis, an arrow", found=term)
    return [*before, *([ELLIPSIS] if dots else []), *after]


def _term_labels(term: str, rank: int) -> Labels:
    names = _names(term)
    missing = rank - (len(names) - (ELLIPSIS in names))
    if missing < 0 or (missing and ELLIPSIS not in names):
        raise ShapeError("an operand has another rank than in the equation", expected=term, found=rank)
    dots = [str(-number) for number in range(missing, 0, -1)]
    return tuple(label for name in names for label in (dots if name == ELLIPSIS else [name]))


@dataclass(frozen=True)
class _Term:
    """A value with a label for each axis."""

    value: Value
    labels: Labels


def _labels_of(terms: Sequence[_Term]) -> set[str]:
    return {label for term in terms for label in term.labels}


@dataclass(frozen=True)
class _Contraction:
    """The steps that the decomposition is made of."""

    builder: Builder

    def with_distinct_labels(self, term: _Term) -> _Term:
        """Diagonals taken where a label repeats."""
        repeated = next((label for label in term.labels if term.labels.count(label) > 1), None)
        if repeated is None:
            return term
        first = term.labels.index(repeated)
        second = term.labels.index(repeated, first + 1)
        kept = [axis for axis in range(len(term.labels)) if axis not in (first, second)]
        moved = self.builder.emit(Transpose((*kept, first, second)), term.value)
        last = len(kept)
        flat = reshaped(self.builder, moved, extents(self.builder, moved, 0, last), -1)
        step = self.builder.emit(Add(), extents(self.builder, moved, last, last + 1), vector(self.builder, (1,)))
        bounds = (
            vector(self.builder, (0,)),
            extents(self.builder, flat, last, last + 1),
            vector(self.builder, (last,)),
        )
        diagonal = self.builder.emit(Slice(), flat, *bounds, step)
        return self.with_distinct_labels(_Term(diagonal, (*(term.labels[axis] for axis in kept), repeated)))

    def summed(self, term: _Term, kept: set[str]) -> _Term:
        """Summed over the labels that nothing else has."""
        axes = tuple(axis for axis, label in enumerate(term.labels) if label not in kept)
        if not axes:
            return term
        labels = tuple(label for label in term.labels if label in kept)
        return _Term(self.builder.emit(ReduceSum(axes, False), term.value), labels)

    def product(self, left: _Term, right: _Term, kept: set[str]) -> _Term:
        """The product of two, summed over shared labels that nothing else has."""
        shared = [label for label in left.labels if label in right.labels]
        summed = [label for label in shared if label not in kept]
        equal = all(self._extent(left, label) == self._extent(right, label) for label in summed)
        if not summed or not equal:
            return self._broadcast_product(left, right, kept)
        batch = [label for label in shared if label in kept]
        rows = [label for label in left.labels if label not in shared]
        columns = [label for label in right.labels if label not in shared]
        a = self._matrix(self._ordered(left, [*batch, *rows, *summed]), len(batch), len(rows))
        b = self._matrix(self._ordered(right, [*batch, *summed, *columns]), len(batch), len(summed))
        product = self.builder.emit(MatMul(), a, b)
        parts = [extents(self.builder, product, 0, len(batch))]
        parts += [self._extent_of(left, label) for label in rows]
        parts += [self._extent_of(right, label) for label in columns]
        whole = product
        if len(rows) != 1 or len(columns) != 1:
            whole = reshaped(self.builder, product, *parts)
        return _Term(whole, (*batch, *rows, *columns))

    def _broadcast_product(self, left: _Term, right: _Term, kept: set[str]) -> _Term:
        order = [*left.labels, *(label for label in right.labels if label not in left.labels)]
        product = self.builder.emit(Mul(), self._stretched(left, order), self._stretched(right, order))
        return self.summed(_Term(product, tuple(order)), kept)

    def _stretched(self, term: _Term, order: Sequence[str]) -> Value:
        """Axes in this order, of extent 1 where the term lacks a label."""
        value = self._ordered(term, [label for label in order if label in term.labels])
        missing = tuple(axis for axis, label in enumerate(order) if label not in term.labels)
        return unsqueeze(self.builder, value, missing) if missing else value

    def _ordered(self, term: _Term, order: Sequence[str]) -> Value:
        permutation = tuple(term.labels.index(label) for label in order)
        if permutation == tuple(range(len(order))):
            return term.value
        return self.builder.emit(Transpose(permutation), term.value)

    def _matrix(self, value: Value, batch: int, rows: int) -> Value:
        """A matrix for each of the batch axes: the next `rows` axes by the rest."""
        if value.rank == batch + 2 and rows == 1:
            return value
        if rows == 0:
            value, rows = unsqueeze(self.builder, value, (batch,)), 1
        if value.rank == batch + rows:
            value = unsqueeze(self.builder, value, (batch + rows,))
        merged = value
        if value.rank > batch + rows + 1:
            merged = reshaped(self.builder, merged, extents(self.builder, value, 0, batch + rows), -1)
        if rows > 1:
            merged = reshaped(
                self.builder,
                merged,
                extents(self.builder, value, 0, batch),
                -1,
                extents(self.builder, merged, batch + rows),
            )
        return merged

    def _extent(self, term: _Term, label: str) -> int:
        return term.value.shape[term.labels.index(label)]

    def _extent_of(self, term: _Term, label: str) -> Value:
        axis = term.labels.index(label)
        return extents(self.builder, term.value, axis, axis + 1)
