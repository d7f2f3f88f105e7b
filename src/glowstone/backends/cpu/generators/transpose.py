"""Transposition of square blocks in registers."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import I32, Value


def emit_transpose(emitter: Emitter, rows: Sequence[Value]) -> list[Value]:
    """Lane j of row i goes to lane i of row j: n vectors of n lanes, n a power of two.

    In log2(n) rounds, each of which exchanges off-diagonal blocks of one size.
    """
    size = len(rows)
    result = list(rows)
    step = size // 2
    while step:
        for first in range(size):
            if not first & step:
                upper, lower = result[first], result[first + step]
                result[first], result[first + step] = _exchange(emitter, upper, lower, size, step)
        step //= 2
    return result


def _exchange(emitter: Emitter, upper: Value, lower: Value, size: int, step: int) -> tuple[Value, Value]:
    from_low = [lane if not lane & step else size + lane - step for lane in range(size)]
    from_high = [lane + step if not lane & step else size + lane for lane in range(size)]
    kind = ir.VectorType(I32, size)
    low, high = (
        emitter.builder.shuffle_vector(upper, lower, ir.Constant(kind, mask)) for mask in (from_low, from_high)
    )
    return low, high
