"""One participant in a run: claims chunks until the run ends. See `pool.py`."""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I64, POINTER, VOID, Value
from glowstone.backends.cpu.native import atomics
from glowstone.backends.cpu.native.layout import STATUS_STRIDE, PoolField
from glowstone.backends.cpu.native.routine import Routine
from glowstone.backends.cpu.native.run_loop import execute, participant_block
from glowstone.backends.cpu.native.step import NEXT_STEP, claim_word, set_field, tag_of

YIELD_TYPE = ir.FunctionType(VOID, [])
FIELDS = (
    PoolField.PARTICIPANTS,
    PoolField.CHUNKS,
    PoolField.GRAIN,
    PoolField.UNITS,
    PoolField.KERNEL,
    PoolField.RECORD,
    PoolField.BASES,
    PoolField.SCRATCH,
    PoolField.SCRATCH_STRIDE,
    PoolField.STATUS,
    PoolField.RUN,
)


class _Participate:
    """Builds `participate(pool, number, step)`, which goes on from a step that the caller saw open.

    It returns when the step expected is over: a later one that is open may belong to another run, for which a helper
    has to wake others first. It also returns when the run has no place for this number.
    """

    def __init__(self, module: ir.Module, advance: ir.Function, triple: str) -> None:
        self.routine = Routine(module, "participate", VOID, [POINTER, I64, I64])
        self.pool, self.number, self.first_step = self.routine.arguments
        self.builder = self.routine.builder
        self.advance = advance
        self.triple = triple
        self.look = self.routine.block("look")
        self.leave = self.routine.block("leave")

    def build(self) -> ir.Function:
        routine, builder = self.routine, self.builder
        self.finished_variable = builder.alloca(I64)
        self.passed_variable = builder.alloca(I64)
        self.expected_variable = builder.alloca(I64)
        builder.store(self.first_step, self.expected_variable)
        routine.go_to(self.look)
        self._read_step()
        self._claim_all()
        self._report()
        self._wait()
        builder.position_at_end(self.leave)
        builder.ret_void()
        return routine.function

    def _read_step(self) -> None:
        """Go on with the step expected, if it is open. The fields that are read may be of a later step; then no claim
        will succeed.
        """
        routine, builder = self.routine, self.builder
        self.step = atomics.load(builder, routine.at(self.pool, PoolField.STEP))
        opened, invited = routine.block("opened"), routine.block("invited")
        expected = builder.load(self.expected_variable, typ=I64)
        builder.cbranch(builder.icmp_signed("==", self.step, expected), opened, self.leave)
        builder.position_at_end(opened)
        builder.store(builder.add(self.step, I64(NEXT_STEP)), self.expected_variable)
        self.fields = {field: atomics.load(builder, routine.at(self.pool, field), "monotonic") for field in FIELDS}
        builder.fence("acquire")
        self.participants = self.fields[PoolField.PARTICIPANTS]
        builder.cbranch(builder.icmp_signed("<", self.number, self.participants), invited, self.leave)
        builder.position_at_end(invited)

    def _claim_all(self) -> None:
        """Execute what can be had from every slice, the own one first; counts the chunks in `finished`."""
        builder = self.builder
        self.scratch = self._block(PoolField.SCRATCH, self.fields[PoolField.SCRATCH_STRIDE])
        self.status = self._block(PoolField.STATUS, I64(STATUS_STRIDE))
        builder.store(I64(0), self.finished_variable)
        with self.routine.counted(0, self.participants) as turn:
            wrapped = builder.add(self.number, turn)
            over = builder.icmp_signed(">=", wrapped, self.participants)
            self._drain(builder.select(over, builder.sub(wrapped, self.participants), wrapped))

    def _block(self, first: PoolField, stride: Value) -> Value:
        return participant_block(self.routine, self._pointer(first), stride, self.number)

    def _pointer(self, field: PoolField) -> Value:
        return self.builder.inttoptr(self.fields[field], POINTER)

    def _drain(self, slice_number: Value) -> None:
        """Claim chunks of one slice until none is left."""
        routine, builder = self.routine, self.builder
        begin = self._slice_begin(slice_number)
        length = builder.sub(self._slice_begin(builder.add(slice_number, I64(1))), begin)
        word_address = claim_word(routine, self.pool, slice_number)
        claim, attempt, take, empty = (routine.block(name) for name in ("claim", "attempt", "take", "empty"))
        routine.go_to(claim)
        word = atomics.load(builder, word_address)
        taken = builder.sub(word, tag_of(builder, self.step))
        # A word of another step is far outside: unsigned, its difference is at least 1 << TAG_BITS.
        builder.cbranch(builder.icmp_unsigned("<", taken, length), attempt, empty)
        builder.position_at_end(attempt)
        claimed = atomics.compare_exchange(builder, word_address, word, builder.add(word, I64(1)))
        builder.cbranch(claimed, take, claim)
        builder.position_at_end(take)
        self._execute_chunk(builder.add(begin, taken))
        builder.branch(claim)
        builder.position_at_end(empty)

    def _slice_begin(self, slice_number: Value) -> Value:
        """First chunk of a slice."""
        return self.builder.udiv(self.builder.mul(self.fields[PoolField.CHUNKS], slice_number), self.participants)

    def _execute_chunk(self, chunk: Value) -> None:
        routine, builder = self.routine, self.builder
        grain, units = self.fields[PoolField.GRAIN], self.fields[PoolField.UNITS]
        begin = builder.mul(chunk, grain)
        wanted = builder.add(begin, grain)
        end = builder.select(builder.icmp_signed("<", wanted, units), wanted, units)
        failed = execute(
            routine,
            self._pointer(PoolField.KERNEL),
            self._pointer(PoolField.RECORD),
            self._pointer(PoolField.BASES),
            begin,
            end,
            self.scratch,
            self.status,
        )
        with builder.if_then(failed, likely=False):
            set_field(routine, self.pool, PoolField.FAILED, I64(1))
        finished = builder.load(self.finished_variable, typ=I64)
        builder.store(builder.add(finished, I64(1)), self.finished_variable)

    def _report(self) -> None:
        """Add to the chunks done; whoever completes them advances the run."""
        routine, builder = self.routine, self.builder
        report, last, wait = (routine.block(name) for name in ("report", "last", "wait"))
        finished = builder.load(self.finished_variable, typ=I64)
        builder.cbranch(builder.icmp_signed(">", finished, I64(0)), report, wait)
        builder.position_at_end(report)
        before = atomics.fetch_add(builder, routine.at(self.pool, PoolField.DONE), finished)
        complete = builder.icmp_signed("==", builder.add(before, finished), self.fields[PoolField.CHUNKS])
        builder.cbranch(complete, last, wait)
        builder.position_at_end(last)
        routine.call(self.advance, [self._pointer(PoolField.RUN), self.pool, self.number])
        builder.branch(self.look)
        builder.position_at_end(wait)

    def _wait(self) -> None:
        """Until the step changes; now and then give the processor away, as those waited for may need it."""
        routine, builder = self.routine, self.builder
        watch, still, give_way = (routine.block(name) for name in ("watch", "still", "give_way"))
        builder.store(I64(0), self.passed_variable)
        routine.go_to(watch)
        step = atomics.load(builder, routine.at(self.pool, PoolField.STEP), "monotonic")
        builder.cbranch(builder.icmp_signed("==", step, self.step), still, self.look)
        builder.position_at_end(still)
        atomics.pause(builder, self.triple)
        passed = builder.add(builder.load(self.passed_variable, typ=I64), I64(1))
        builder.store(passed, self.passed_variable)
        limit = routine.word(self.pool, PoolField.WAIT_SPINS)
        builder.cbranch(builder.icmp_signed(">=", passed, limit), give_way, watch)
        builder.position_at_end(give_way)
        routine.call_address(routine.pointer(self.pool, PoolField.YIELD), YIELD_TYPE, [])
        builder.store(I64(0), self.passed_variable)
        builder.branch(watch)


def build_participate(module: ir.Module, advance: ir.Function, triple: str) -> ir.Function:
    """Add `participate` to the module."""
    return _Participate(module, advance, triple).build()
