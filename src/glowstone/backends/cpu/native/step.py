"""Ends a step and publishes the next one. See `pool.py`.

The step word is odd while an instruction is open to claims and even between runs. Within a run it grows by `NEXT_STEP`;
from the last step of a run to the first of the next it grows by more, so that nobody takes one for the other.
"""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I64, POINTER, VOID, Value
from glowstone.backends.cpu.native import atomics
from glowstone.backends.cpu.native.layout import CLAIM_STRIDE_WORDS, PoolField, RunField
from glowstone.backends.cpu.native.routine import Routine
from glowstone.backends.cpu.native.run_loop import end_failed, execute_whole, kernel_of
from glowstone.table import COST, GRAIN, UNITS

NEXT_STEP = 2
TO_END, TO_FIRST_STEP = 3, 1
TAG_BITS = 32
MAX_CHUNKS_BITS = 30
"""Instructions of more chunks get a larger grain, so that their count stays within its half of the claim word."""


def is_open(builder: ir.IRBuilder, step: Value) -> Value:
    """Whether a step word means that an instruction is open (i1)."""
    return builder.trunc(step, ir.IntType(1))


def set_field(routine: Routine, pool: Value, field: PoolField, value: Value) -> None:
    """Write a field that late threads may read meanwhile."""
    atomics.store(routine.builder, value, routine.at(pool, field), "monotonic")


def claim_word(routine: Routine, pool: Value, slice_number: Value) -> Value:
    """Address of a slice's claim word."""
    builder = routine.builder
    offset = builder.mul(slice_number, I64(CLAIM_STRIDE_WORDS))
    return routine.at(pool, builder.add(offset, I64(int(PoolField.CLAIMS))))


def tag_of(builder: ir.IRBuilder, step: Value) -> Value:
    """A claim word of this step with nothing taken."""
    return builder.shl(step, I64(TAG_BITS))


def retag(routine: Routine, pool: Value, step: Value, count: Value) -> None:
    """Give the first `count` claim words to a step. All later stores are seen after these."""
    tag = tag_of(routine.builder, step)
    with routine.counted(0, count) as number:
        atomics.store(routine.builder, tag, claim_word(routine, pool, number), "monotonic")
    routine.builder.fence("release")


class _Advance:
    """Builds `advance(run, pool, participant)`."""

    def __init__(self, module: ir.Module, next_call: ir.Function) -> None:
        self.routine = Routine(module, "advance", VOID, [POINTER, POINTER, I64])
        self.run, self.pool, self.participant = self.routine.arguments
        self.builder = self.routine.builder
        self.next_call = next_call

    def build(self) -> ir.Function:
        routine, builder = self.routine, self.builder
        fetch, found, end, fail = (routine.block(name) for name in ("fetch", "found", "end", "fail"))
        failed = atomics.load(builder, routine.at(self.pool, PoolField.FAILED), "monotonic")
        builder.cbranch(builder.icmp_signed("!=", failed, I64(0)), fail, fetch)
        builder.position_at_end(fetch)
        record = routine.call(self.next_call, [self.run])
        builder.cbranch(builder.icmp_unsigned("==", record, POINTER(None)), end, found)
        builder.position_at_end(found)
        self._start(record, fetch, fail)
        builder.position_at_end(fail)
        end_failed(routine, self.run)
        builder.branch(end)
        builder.position_at_end(end)
        self._publish_end()
        return routine.function

    def _start(self, record: Value, fetch: ir.Block, fail: ir.Block) -> None:
        """Execute a small instruction here, open a large one to all."""
        routine, builder = self.routine, self.builder
        units = routine.word(record, UNITS)
        least = builder.add(builder.lshr(units, I64(MAX_CHUNKS_BITS)), I64(1))
        wanted = routine.word(record, GRAIN)
        grain = builder.select(builder.icmp_signed("<", wanted, least), least, wanted)
        chunks = builder.udiv(builder.add(units, builder.sub(grain, I64(1))), grain)
        single = builder.icmp_signed("==", chunks, I64(1))
        cheap = builder.icmp_signed("<", routine.word(record, COST), routine.word(self.pool, PoolField.INLINE_COST))
        alone, share = routine.block("alone"), routine.block("share")
        builder.cbranch(builder.or_(single, cheap), alone, share)
        builder.position_at_end(alone)
        builder.cbranch(execute_whole(routine, self.run, record, self.participant), fail, fetch)
        builder.position_at_end(share)
        self._publish(record, units, grain, chunks)
        builder.ret_void()

    def _publish(self, record: Value, units: Value, grain: Value, chunks: Value) -> None:
        routine, builder, pool = self.routine, self.builder, self.pool
        step_address = routine.at(pool, PoolField.STEP)
        before = atomics.load(builder, step_address, "monotonic")
        growth = builder.select(is_open(builder, before), I64(NEXT_STEP), I64(TO_FIRST_STEP))
        step = builder.add(before, growth)
        retag(routine, pool, step, routine.word(self.run, RunField.PARTICIPANTS))
        set_field(routine, pool, PoolField.CHUNKS, chunks)
        set_field(routine, pool, PoolField.GRAIN, grain)
        set_field(routine, pool, PoolField.UNITS, units)
        set_field(routine, pool, PoolField.KERNEL, builder.ptrtoint(kernel_of(routine, self.run, record), I64))
        set_field(routine, pool, PoolField.RECORD, builder.ptrtoint(record, I64))
        set_field(routine, pool, PoolField.DONE, I64(0))
        atomics.store(builder, step, step_address)

    def _publish_end(self) -> None:
        """Close the step if one was open. From then on the caller may return: the run must not be touched."""
        builder = self.builder
        step_address = self.routine.at(self.pool, PoolField.STEP)
        step = atomics.load(builder, step_address, "monotonic")
        with builder.if_then(is_open(builder, step)):
            atomics.store(builder, builder.add(step, I64(TO_END)), step_address)
        builder.ret_void()


def build_advance(module: ir.Module, next_call: ir.Function) -> ir.Function:
    """Add `advance` to the module."""
    return _Advance(module, next_call).build()
