"""Merging of axes, and what of it reaches the keys of kernels."""

from __future__ import annotations

import math

import pytest

from glowstone.backends.cpu.kernel_family import CpuPlanner, InnerStride
from glowstone.backends.cpu.loop_nest import LoopNest, WorkDivision, column_division, row_division
from glowstone.backends.cpu.product_tile import ProductDivision, ProductTile, panel_width
from glowstone.backends.cpu.target import Target
from glowstone.lir import Buffer, BufferKind, Elementwise, Instruction, MatMul, Reduce, Softmax
from glowstone.scalar import Input, apply
from glowstone.types import ElementType

F32 = ElementType.F32
TARGET = Target.host()


def view(*shape):
    return Buffer("b", BufferKind.ACTIVATION, F32, shape).view()


def test_contiguous_axes_become_one():
    nest = LoopNest.of([view(3, 4, 5), view(3, 4, 5)])
    assert nest.extents == (1, 1, 60)
    assert nest.inner_classes == (InnerStride.ONE, InnerStride.ONE)


def test_broadcast_splits_where_it_starts():
    nest = LoopNest.of([view(3, 4, 5), view(1, 4, 5).broadcast((3, 4, 5)), view(3, 1, 1).broadcast((3, 4, 5))])
    assert nest.extents == (1, 3, 20)
    assert nest.strides == ((0, 20, 1), (0, 0, 1), (0, 1, 0))


def test_transposed_operands_are_visited_in_order_of_the_result():
    nest = LoopNest.of([view(4, 3).transpose((1, 0)), view(3, 4)])
    assert nest.extents == (4, 3)
    assert nest.strides == ((3, 1), (1, 4))


def add(shape, *smaller):
    operands = (view(*shape), *(view(*small).broadcast(shape) for small in smaller))
    return Instruction(Elementwise((apply("add", Input(F32, 0), Input(F32, 1)),), 2), operands)


def keys(instructions):
    return {CpuPlanner(TARGET).plan(instruction).key for instruction in instructions}


def test_extents_of_0_and_1_need_no_other_kernel():
    pairs = [(batch, length) for batch in (0, 1, 2, 7) for length in (1, 2, 9, 130)]
    assert len(keys(add((b, n, 384), (b, n, 384), (384,)) for b, n in pairs)) == 1
    assert len(keys(add((b, 12, n, n), (b, 12, n, n), (b, 1, 1, n)) for b, n in pairs)) == 1


def test_attention_of_length_1_needs_no_other_kernel():
    def scores(batch, length):
        a, b = view(batch, length, 12, 32), view(batch, length, 12, 32)
        out = view(batch, 12, length, length)
        return Instruction(MatMul(), (out, a.transpose((0, 2, 1, 3)), b.transpose((0, 2, 3, 1))))

    assert len(keys(scores(b, n) for b in (0, 1, 3) for n in (1, 5, 128))) == 1
    assert len(keys(Instruction(Softmax(), (view(n, n, 1), view(n, n, 1))) for n in (0, 1, 77))) == 1
    assert len(keys(Instruction(Reduce("mean"), (view(n, 8), view(n, 5, 8))) for n in (0, 1, 77))) == 1


@pytest.mark.parametrize("shape", [(1,), (3, 70_000), (1000, 1000), (9, 9, 9, 9), (5_000_000,), (4000, 3)], ids=str)
def test_units_cover_every_element(shape):
    nest = LoopNest.of([view(*shape), view(*shape[:-1], 1).broadcast(shape)])
    division = WorkDivision.of(nest, TARGET, 1, 8)
    chunk, chunks, rows, groups = division.derived[:4]
    *outer, row_extent, inner = nest.extents
    assert (chunks - 1) * chunk < inner <= chunks * chunk
    assert (groups - 1) * rows < row_extent <= groups * rows
    assert division.units == math.prod(outer) * chunks * groups


def test_nothing_to_do():
    assert CpuPlanner(TARGET).plan(add((0, 5), (0, 5), (5,))).units == 0
    assert row_division(0, 1)[0] == 0
    assert column_division(0, 5, 1)[0] == 0


def test_division_of_rows_and_columns():
    units, rows = row_division(1000, 1_000_000)
    assert (units, rows) == (100, 10)
    units, grain, columns, chunks = column_division(4, 100_000, 4_000_000)
    assert units == 4 * chunks
    assert (chunks - 1) * columns < 100_000 <= chunks * columns
    assert grain == 1


def test_a_call_without_units_has_all_its_words():
    """Words of a call are read before anybody looks whether there is work."""
    x, empty = view(3, 4), view(0, 4)
    pairs = [
        (add((3, 4), (3, 4), (4,)), add((0, 4), (0, 4), (4,))),
        (Instruction(MatMul(), (x, view(3, 5), view(5, 4))), Instruction(MatMul(), (empty, view(0, 5), view(5, 4)))),
        (
            Instruction(Reduce("sum"), (view(3, 1), view(3, 4, 1))),
            Instruction(Reduce("sum"), (view(0, 1), view(0, 4, 1))),
        ),
        (
            Instruction(Softmax(), (view(3, 4, 5), view(3, 4, 5))),
            Instruction(Softmax(), (view(0, 4, 5), view(0, 4, 5))),
        ),
    ]
    for some, none in pairs:
        with_work, without = (CpuPlanner(TARGET).plan(instruction) for instruction in (some, none))
        assert without.units == 0
        assert len(without.derived) == len(with_work.derived)
        assert without.key == with_work.key


@pytest.mark.parametrize("rows", [1, 5, 96, 191, 193, 512, 100_000])
@pytest.mark.parametrize("panels", [1, 7, 415])
@pytest.mark.parametrize("nanoseconds", [0.5, 10.0, 400.0])
def test_products_are_divided_into_whole_tiles(rows, panels, nanoseconds):
    tile = ProductTile.of(TARGET, panel_width(TARGET))
    division = ProductDivision.of(rows, panels, tile, nanoseconds)
    assert division.units == division.row_chunks * division.panel_groups
    assert (division.row_chunks - 1) * division.rows_per_unit < rows <= division.row_chunks * division.rows_per_unit
    assert (division.panel_groups - 1) * division.panels_per_unit < panels
    assert panels <= division.panel_groups * division.panels_per_unit
    assert division.row_chunks == 1 or division.rows_per_unit % tile.rows == 0
