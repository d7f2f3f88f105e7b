"""Walks through decision trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.scalar.forest import AGGREGATES, ForestTable, aggregated
from glowstone.types import ElementType

FORMS = ("single", "dense", "sparse")
"""Leaves have one weight of the one target each, one of every target in order, or what `starts` says."""


@operation
class TreeSums(Operation):
    """`y[p, n, k]` is what the leaves that row n reaches in the trees of part p give to target k, summed or extreme.

    Operands: y [parts, N, targets] of f64, x [N, features], nodes and roots (i32, see `ForestTable`), starts, target
    ids (i32) and weights: leaf l has the entries starts[l] to starts[l + 1]. The trees are dealt to the parts in runs
    of `ceil(trees / parts)`. The extreme of nothing is 0; extremes have one part. x has any strides. The program
    that has this operation has checked the table.
    """

    aggregate: str
    form: str
    nan_low: bool
    ulp_bound: ClassVar[float] = 0.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, *[Access.IN] * 6)

    def accepts(self, operand: int, view: View) -> bool:
        return operand == 1 or view.is_contiguous

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, *tables = views
        require(self.aggregate in AGGREGATES and self.form in FORMS, f"{self.aggregate} of {self.form} leaves")
        require(y.rank == 3 and x.rank == 2 and y.shape[1] == x.shape[0], f"{y.shape} from {x.shape}")
        require(self.aggregate == "sum" or y.shape[0] == 1, f"{y.shape[0]} parts of a {self.aggregate}")
        require(y.element is ElementType.F64 and x.element in (ElementType.F32, ElementType.F64), f"{x.element}")
        require(all(view.rank == 1 for view in tables), "tables are vectors")
        require(all(view.element is ElementType.I32 for view in tables[:4]), "positions are i32")
        require(self.form != "single" or y.shape[2] == 1, f"{y.shape[2]} targets of single weights")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, nodes, roots, starts, ids, weights = arrays
        leaves = ForestTable(nodes, ElementType.from_dtype(x.dtype)).leaves_of(roots, x)
        run = max(1, -(-len(roots) // len(y)))
        for part in range(len(y)):
            reached = leaves[:, part * run : (part + 1) * run]
            y[part] = aggregated(self.aggregate, reached, starts, ids, weights, y.shape[2])


def leaf_form(starts: Array, ids: Array, targets: int) -> str:
    """The form of leaves with these entries."""
    if (np.diff(starts) == targets).all() and np.array_equal(ids, np.tile(np.arange(targets), len(starts) - 1)):
        return "single" if targets == 1 else "dense"
    return "sparse"
