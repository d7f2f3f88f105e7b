"""Walks the table of calls: executes control records until there is a kernel to call.

The generated function is `next_call(run) -> record or null`. With null, the run's `RESULT` says why; otherwise the
run's `POSITION` is already that of the record after. At most one thread executes it for a run at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I8, I64, POINTER, Value
from glowstone.backends.cpu.native.layout import RECORD_COST, Result, RunField
from glowstone.backends.cpu.native.routine import Routine
from glowstone.table import COST, KIND, LOOP_FIRST_SLOT, LOOP_SLOT_WORDS, UNITS, WORDS, Record

NEXT_CALL = "next_call"

LOOP_COUNT_BASE, LOOP_COUNT_OFFSET, LOOP_SLOTS = 2, 3, 4
SLOT_BASE, SLOT_SOURCE, SLOT_INCREMENT = 0, 1, 2
NEXT_LOOP = 2
BRANCH_BASE, BRANCH_OFFSET, BRANCH_TARGET = 2, 3, 4
JUMP_TARGET = 2


class _Walk:
    """Builds `next_call`."""

    def __init__(self, module: ir.Module) -> None:
        self.routine = Routine(module, NEXT_CALL, POINTER, [POINTER])
        (self.run,) = self.routine.arguments
        self.builder = self.routine.builder
        self.table = self.routine.pointer(self.run, RunField.TABLE)
        self.bases = self.routine.pointer(self.run, RunField.BASES)
        self.passes = self.routine.pointer(self.run, RunField.PASSES)
        self.budget = self.routine.word(self.run, RunField.BUDGET)
        self.position_variable = self.builder.alloca(I64)
        self.builder.store(self.routine.word(self.run, RunField.POSITION), self.position_variable)
        self.fetch = self.routine.block("fetch")

    def build(self) -> ir.Function:
        routine, builder = self.routine, self.builder
        routine.go_to(self.fetch)
        self.position = builder.load(self.position_variable, typ=I64)
        self.record = routine.at(self.table, self.position)
        self.following = builder.add(self.position, routine.word(self.record, WORDS))
        spent = routine.word(self.run, RunField.SPENT)
        with builder.if_then(builder.icmp_signed(">=", spent, self.budget), likely=False):
            self._leave(Result.PAUSED, self.position)
        routine.set(self.run, RunField.SPENT, builder.add(spent, I64(RECORD_COST)))
        self._dispatch(
            {
                Record.CALL: self._call,
                Record.END: lambda: self._leave(Result.FINISHED, I64(0)),
                Record.LOOP: self._loop,
                Record.NEXT: self._next,
                Record.BRANCH: self._branch,
                Record.JUMP: lambda: self._go(routine.word(self.record, JUMP_TARGET)),
            }
        )
        return routine.function

    def _dispatch(self, cases: dict[Record, Callable[[], None]]) -> None:
        unknown = self.routine.block("unknown")
        switch = self.builder.switch(self.routine.word(self.record, KIND), unknown)
        for kind, build in cases.items():
            block = self.routine.block(kind.name.lower())
            switch.add_case(I64(int(kind)), block)
            self.builder.position_at_end(block)
            build()
        self.builder.position_at_end(unknown)
        self._leave(Result.INVALID, I64(0))

    def _leave(self, result: Result, position: Value) -> None:
        """Return null; the next budget starts fresh."""
        self.routine.set(self.run, RunField.POSITION, position)
        self.routine.set(self.run, RunField.SPENT, 0)
        self.routine.set(self.run, RunField.RESULT, int(result))
        self.builder.ret(POINTER(None))

    def _go(self, position: Value) -> None:
        self.builder.store(position, self.position_variable)
        self.builder.branch(self.fetch)

    def _call(self) -> None:
        routine, builder = self.routine, self.builder
        call = routine.block("call.found")
        skip = routine.block("call.empty")
        builder.cbranch(builder.icmp_signed(">", routine.word(self.record, UNITS), I64(0)), call, skip)
        builder.position_at_end(skip)
        self._go(self.following)
        builder.position_at_end(call)
        spent = builder.add(routine.word(self.run, RunField.SPENT), routine.word(self.record, COST))
        routine.set(self.run, RunField.SPENT, spent)
        routine.set(self.run, RunField.POSITION, self.following)
        builder.ret(self.record)

    def _byte(self, base: int, offset: int) -> Value:
        """Address that two words of the record name: a base number and an offset in bytes."""
        start = self.routine.pointer(self.bases, self.routine.word(self.record, base))
        return self.routine.shifted(start, self.routine.word(self.record, offset))

    def _loop(self) -> None:
        routine, builder = self.routine, self.builder
        count = routine.word(self._byte(LOOP_COUNT_BASE, LOOP_COUNT_OFFSET), 0)
        with self._slots(self.record) as slot:
            source = routine.pointer(self.bases, routine.word(slot, SLOT_SOURCE))
            routine.set(self.bases, routine.word(slot, SLOT_BASE), source)
        routine.set(self.passes, self.position, count)
        enter, skip = routine.block("loop.enter"), routine.block("loop.skip")
        builder.cbranch(builder.icmp_signed(">", count, I64(0)), enter, skip)
        builder.position_at_end(enter)
        self._go(self.following)
        builder.position_at_end(skip)
        self._skip_loop()

    @contextmanager
    def _slots(self, loop: Value) -> Iterator[Value]:
        """The body runs for each slot of a LOOP record, given the slot's address."""
        with self.routine.counted(0, self.routine.word(loop, LOOP_SLOTS)) as index:
            offset = self.builder.mul(index, I64(LOOP_SLOT_WORDS))
            yield self.routine.at(loop, self.builder.add(offset, I64(LOOP_FIRST_SLOT)))

    def _skip_loop(self) -> None:
        """Go behind the NEXT record of this LOOP."""
        routine, builder = self.routine, self.builder
        scan, found = routine.block("scan"), routine.block("scan.found")
        entry = builder.block
        routine.go_to(scan)
        position = builder.phi(I64)
        position.add_incoming(self.following, entry)
        record = routine.at(self.table, position)
        after = builder.add(position, routine.word(record, WORDS))
        position.add_incoming(after, scan)
        is_next = builder.icmp_signed("==", routine.word(record, KIND), I64(int(Record.NEXT)))
        is_ours = builder.icmp_signed("==", routine.word(record, NEXT_LOOP), self.position)
        builder.cbranch(builder.and_(is_next, is_ours), found, scan)
        builder.position_at_end(found)
        self._go(after)

    def _next(self) -> None:
        routine, builder = self.routine, self.builder
        loop_position = routine.word(self.record, NEXT_LOOP)
        loop = routine.at(self.table, loop_position)
        left = builder.sub(routine.word(self.passes, loop_position), I64(1))
        routine.set(self.passes, loop_position, left)
        again, leave = routine.block("next.again"), routine.block("next.leave")
        builder.cbranch(builder.icmp_signed(">", left, I64(0)), again, leave)
        builder.position_at_end(leave)
        self._go(self.following)
        builder.position_at_end(again)
        with self._slots(loop) as slot:
            base = routine.word(slot, SLOT_BASE)
            moved = routine.shifted(routine.pointer(self.bases, base), routine.word(slot, SLOT_INCREMENT))
            routine.set(self.bases, base, moved)
        self._go(builder.add(loop_position, routine.word(loop, WORDS)))

    def _branch(self) -> None:
        condition = self.builder.load(self._byte(BRANCH_BASE, BRANCH_OFFSET), typ=I8)
        is_true = self.builder.icmp_unsigned("!=", condition, I8(0))
        target = self.routine.word(self.record, BRANCH_TARGET)
        self._go(self.builder.select(is_true, self.following, target))


def build_next_call(module: ir.Module) -> ir.Function:
    """Add `next_call` to the module."""
    return _Walk(module).build()
