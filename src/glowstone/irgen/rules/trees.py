"""Tree ensembles: walks in parts where rows are few, then the sum of the parts."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Reduce, TreeSums
from glowstone.lir.operations.trees import leaf_form
from glowstone.ops import TreeScores
from glowstone.ops.constant import constant_array
from glowstone.scalar.forest import ForestTable
from glowstone.types import ElementType, TensorType

PART_WALKS = 128
"""Walks (a row through a tree) that are worth a unit of their own."""
BLOCK_ROWS = 64
"""About what a unit takes of the rows: from so many on, rows make units too."""
WANTED_UNITS = 16


@generates(TreeScores)
def generate_tree_scores(generator: Generator, application: Application) -> None:
    operator, result = application.operator, application.result
    assert isinstance(operator, TreeScores)
    out = generator.result(result)
    if out.size == 0:
        return
    x, *tables = (application.operand(number) for number in range(6))
    nodes, roots, starts, ids = (constant_array(table) for table in tables[:4])
    assert nodes is not None
    assert roots is not None
    assert starts is not None
    assert ids is not None
    form = leaf_form(starts, ids, operator.targets)
    operation = TreeSums(operator.aggregate, form, ForestTable(nodes, x.element).sends_nan_low)
    views = [generator.view(x), *map(generator.view, tables)]
    parts = part_count(x.shape[0], len(roots)) if operator.aggregate == "sum" else 1
    single = out.reshape((1, *result.shape))
    assert single is not None, "a fresh buffer is contiguous"
    if parts == 1:
        generator.emit(operation, single, *views)
        return
    sums = generator.new(TensorType(ElementType.F64, (parts, *result.shape)))
    generator.emit(operation, sums, *views)
    flat, stacked = out.reshape((1, out.size)), sums.reshape((1, parts, out.size))
    assert flat is not None
    assert stacked is not None
    generator.emit(Reduce("sum"), flat, stacked)


def part_count(rows: int, trees: int) -> int:
    """How many parts the trees are dealt to, from the extents alone, so that sums have a fixed order."""
    wanted = WANTED_UNITS // -(-rows // BLOCK_ROWS)
    return max(1, min(wanted, trees, rows * trees // PART_WALKS))
