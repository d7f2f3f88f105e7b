"""Loops along a run of the innermost axis: wide vectors first, then the tail."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.types import ElementType

VECTORS_PER_PASS = 2
"""Vectors side by side in the main loop, so that one hides the latency of the other."""
LEAST_COMPUTED_BYTES = 4
"""Narrower numbers are computed, or converted, in lanes of this size."""

VectorBody = Callable[[Value, int, Value | None], None]
"""Emits the work on `lanes` elements from an index on, under a mask where there is one."""


def vector_lanes(emitter: Emitter, elements: Sequence[ElementType]) -> int:
    """Lanes that fill one register with the widest of the types."""
    return emitter.target.vector_bytes // max(LEAST_COMPUTED_BYTES, *(element.size for element in elements))


def emit_row(
    emitter: Emitter,
    operands: Sequence[InnerOperand],
    length: Value | int,
    body: VectorBody,
    widths: Sequence[int] = (VECTORS_PER_PASS,),
) -> None:
    """The body for all of a run: whole vectors without mask, so many (`widths`) per pass, the tail under a mask.

    The tail is taken one by one where types do not permit masks. The body is emitted once for each width and the tail,
    or just once for a length that is compiled in.
    """
    if isinstance(length, int):
        body(emitter.i64(0), length, None)
        return
    lanes = vector_lanes(emitter, [operand.element for operand in operands])
    is_strided = any(operand.inner is InnerStride.ANY for operand in operands)
    start = emitter.i64(0)
    for width in (1,) if is_strided else widths:
        wide = lanes * width
        whole = emitter.mul(emitter.div(length, wide), wide)
        with emitter.for_range(start, whole, wide) as loop:
            body(loop.index, wide, None)
        start = whole
    if all(operand.is_maskable for operand in operands):
        with emitter.for_range(start, length, lanes) as tail:
            body(tail.index, lanes, emitter.first_lanes(emitter.sub(length, tail.index), lanes))
    else:
        with emitter.for_range(start, length) as tail:
            body(tail.index, 1, None)
