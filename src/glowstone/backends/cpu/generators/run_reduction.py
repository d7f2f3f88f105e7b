"""Reduction along one run of elements, in an order that depends on its length alone.

A run is cut in fixed chunks; in each, lanes of a few vectors are carried side by side and joined by a fixed tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.rows import vector_lanes
from glowstone.backends.cpu.ir_types import I32, Value, lanes_of

CHUNK = 4096
"""Elements whose sum is carried apart: bounds the error of long sums."""
VECTORS = 4
"""Vectors carried side by side."""

Term = Callable[[Value, int, Value | None], Value]
"""Emits `lanes` values from an index on; under a mask, lanes outside it may hold anything."""


@dataclass(frozen=True)
class Monoid:
    """How values are joined: `identity(lanes)` changes nothing."""

    identity: Callable[[int], Value]
    combine: Callable[[Value, Value], Value]


def emit_run_reduction(
    emitter: Emitter, operands: Sequence[InnerOperand], length: Value, term: Term, monoid: Monoid
) -> Value:
    """The scalar reduction of all terms below `length`; `operands` are those that `term` touches."""
    lanes = vector_lanes(emitter, [operand.element for operand in operands])
    is_maskable = all(operand.is_maskable for operand in operands)
    with emitter.for_range(0, length, CHUNK, [monoid.identity(lanes), monoid.identity(1)]) as chunks:
        end = emitter.minimum(length, emitter.add(chunks.index, CHUNK))
        total, single = _reduce_chunk(emitter, chunks.index, end, lanes, is_maskable, term, monoid)
        chunks.carry([monoid.combine(chunks.values[0], total), monoid.combine(chunks.values[1], single)])
    total, single = chunks.results
    return monoid.combine(fold_lanes(emitter, total, 1, monoid), single)


def _reduce_chunk(
    emitter: Emitter, start: Value, end: Value, lanes: int, is_maskable: bool, term: Term, monoid: Monoid
) -> tuple[Value, Value]:
    """(`lanes` partial results, one more from a tail taken element by element)."""
    wide = lanes * VECTORS
    length = emitter.sub(end, start)
    whole = emitter.add(start, emitter.mul(emitter.div(length, wide), wide))
    with emitter.for_range(start, whole, wide, [monoid.identity(wide)]) as main:
        main.carry([monoid.combine(main.values[0], term(main.index, wide, None))])
    total = fold_lanes(emitter, main.results[0], lanes, monoid)
    if not is_maskable:
        with emitter.for_range(whole, end, carried=[monoid.identity(1)]) as tail:
            tail.carry([monoid.combine(tail.values[0], term(tail.index, 1, None))])
        return total, tail.results[0]
    with emitter.for_range(whole, end, lanes, [total]) as tail:
        mask = emitter.first_lanes(emitter.sub(end, tail.index), lanes)
        value = emitter.select(mask, term(tail.index, lanes, mask), monoid.identity(lanes))
        tail.carry([monoid.combine(tail.values[0], value)])
    return tail.results[0], monoid.identity(1)


def fold_lanes(emitter: Emitter, value: Value, lanes: int, monoid: Monoid) -> Value:
    """Join the upper half of the lanes with the lower until `lanes` are left."""
    while (count := lanes_of(value.type)) > lanes:
        half = count // 2
        lower, upper = (_lanes(emitter, value, first, half) for first in (0, half))
        value = monoid.combine(lower, upper)
    return value


def _lanes(emitter: Emitter, value: Value, first: int, count: int) -> Value:
    if count == 1:
        return emitter.builder.extract_element(value, I32(first))
    mask = ir.Constant(ir.VectorType(I32, count), list(range(first, first + count)))
    return emitter.builder.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), mask)
