"""The life of a helper thread: watch for a run, take part, wait a little, park. See `pool.py`.

Helpers are woken as a tree: each wakes two others, so that the caller does not pay for all.
Exported: `ptr glowstone_help(helper)`, which never returns, and `void glowstone_spin(count)`, which tells Python how
long a pause takes.
"""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I32, I64, POINTER, VOID, Value
from glowstone.backends.cpu.native import atomics
from glowstone.backends.cpu.native.floating_point import set_default_environment
from glowstone.backends.cpu.native.layout import (
    HELP_SYMBOL,
    HELPER_WORDS,
    HELPERS_OFFSET_WORDS,
    SPIN_SYMBOL,
    HelperField,
    PoolField,
)
from glowstone.backends.cpu.native.routine import Routine
from glowstone.backends.cpu.native.step import is_open

CHILDREN = 2
MUTEX_FUNCTION = ir.FunctionType(I32, [POINTER])
WAIT_FUNCTION = ir.FunctionType(I32, [POINTER, POINTER])
SIGNAL_FUNCTION = ir.FunctionType(I32, [POINTER])


def _lock(routine: Routine, pool: Value, helper: Value) -> None:
    address = routine.pointer(pool, PoolField.MUTEX_LOCK)
    routine.call_address(address, MUTEX_FUNCTION, [routine.at(helper, HelperField.MUTEX)])


def _unlock(routine: Routine, pool: Value, helper: Value) -> None:
    address = routine.pointer(pool, PoolField.MUTEX_UNLOCK)
    routine.call_address(address, MUTEX_FUNCTION, [routine.at(helper, HelperField.MUTEX)])


def build_wake_children(module: ir.Module) -> ir.Function:
    """Add `wake_children(pool, number, participants)`: wake those of the next two in the tree that are parked."""
    routine = Routine(module, "wake_children", VOID, [POINTER, I64, I64])
    builder = routine.builder
    pool, number, participants = routine.arguments
    first = builder.add(builder.mul(number, I64(CHILDREN)), I64(1))
    wanted_end = builder.add(first, I64(CHILDREN))
    end = builder.select(builder.icmp_signed("<", wanted_end, participants), wanted_end, participants)
    with routine.counted(first, end) as child:
        offset = builder.add(builder.mul(child, I64(HELPER_WORDS)), I64(HELPERS_OFFSET_WORDS))
        helper = routine.at(pool, offset)
        parked = atomics.load(builder, routine.at(helper, HelperField.PARKED), "seq_cst")
        with builder.if_then(builder.icmp_signed("!=", parked, I64(0))):
            _lock(routine, pool, helper)
            routine.set(helper, HelperField.WOKEN, 1)
            signal = routine.pointer(pool, PoolField.CONDITION_SIGNAL)
            routine.call_address(signal, SIGNAL_FUNCTION, [routine.at(helper, HelperField.CONDITION)])
            _unlock(routine, pool, helper)
    builder.ret_void()
    return routine.function


class _Help:
    """Builds the helpers' main function."""

    def __init__(self, module: ir.Module, participate: ir.Function, wake_children: ir.Function, triple: str) -> None:
        self.routine = Routine(module, HELP_SYMBOL, POINTER, [POINTER], exported=True)
        self.builder = self.routine.builder
        (self.helper,) = self.routine.arguments
        self.participate = participate
        self.wake_children = wake_children
        self.triple = triple

    def build(self) -> ir.Function:
        routine, builder = self.routine, self.builder
        self.pool = routine.pointer(self.helper, HelperField.POOL)
        self.number = routine.word(self.helper, HelperField.NUMBER)
        self.passed_variable = builder.alloca(I64)
        names = ("fresh", "watch", "work", "idle", "park")
        self.fresh, self.watch, self.work, self.idle, self.park = (routine.block(name) for name in names)
        set_default_environment(builder, self.triple)  # for good: the thread is ours
        self._life()
        return routine.function

    def _life(self) -> None:
        routine, builder = self.routine, self.builder
        routine.go_to(self.fresh)
        builder.store(I64(0), self.passed_variable)
        routine.go_to(self.watch)
        step, is_invited = self._look()
        builder.cbranch(is_invited, self.work, self.idle)
        builder.position_at_end(self.work)
        routine.call(self.wake_children, [self.pool, self.number, routine.word(self.pool, PoolField.PARTICIPANTS)])
        routine.call(self.participate, [self.pool, self.number, step])
        builder.branch(self.fresh)
        builder.position_at_end(self.idle)
        atomics.pause(builder, self.triple)
        passed = builder.add(builder.load(self.passed_variable, typ=I64), I64(1))
        builder.store(passed, self.passed_variable)
        limit = routine.word(self.pool, PoolField.IDLE_SPINS)
        builder.cbranch(builder.icmp_signed("<", passed, limit), self.watch, self.park)
        builder.position_at_end(self.park)
        self._park()
        builder.branch(self.fresh)

    def _look(self) -> tuple[Value, Value]:
        """The step, and whether it is open and has a place for this helper (i1)."""
        routine, builder = self.routine, self.builder
        step = atomics.load(builder, routine.at(self.pool, PoolField.STEP), "seq_cst")
        participants = atomics.load(builder, routine.at(self.pool, PoolField.PARTICIPANTS), "monotonic")
        return step, builder.and_(is_open(builder, step), builder.icmp_signed("<", self.number, participants))

    def _park(self) -> None:
        """Sleep until woken. The flag is raised before the last look for a run, and a caller looks at the flag after it
        opened one: so one of the two sees the other.
        """
        routine, builder = self.routine, self.builder
        woken = routine.at(self.helper, HelperField.WOKEN)
        parked = routine.at(self.helper, HelperField.PARKED)
        _lock(routine, self.pool, self.helper)
        atomics.store(builder, I64(1), parked, "seq_cst")
        builder.fence("seq_cst")
        check, sleep, wake = (routine.block(name) for name in ("check", "sleep", "wake"))
        builder.cbranch(self._look()[1], wake, check)
        builder.position_at_end(check)
        is_woken = atomics.load(builder, woken, "monotonic")
        builder.cbranch(builder.icmp_signed("!=", is_woken, I64(0)), wake, sleep)
        builder.position_at_end(sleep)
        wait = routine.pointer(self.pool, PoolField.CONDITION_WAIT)
        arguments = [routine.at(self.helper, HelperField.CONDITION), routine.at(self.helper, HelperField.MUTEX)]
        routine.call_address(wait, WAIT_FUNCTION, arguments)
        builder.branch(check)
        builder.position_at_end(wake)
        atomics.store(builder, I64(0), woken, "monotonic")
        atomics.store(builder, I64(0), parked, "seq_cst")
        _unlock(routine, self.pool, self.helper)


def _build_spin(module: ir.Module, triple: str) -> None:
    routine = Routine(module, SPIN_SYMBOL, VOID, [I64], exported=True)
    with routine.counted(0, routine.arguments[0]):
        atomics.pause(routine.builder, triple)
    routine.builder.ret_void()


def build_help(module: ir.Module, participate: ir.Function, wake_children: ir.Function, triple: str) -> None:
    """Add the helpers' main function, and `glowstone_spin`."""
    _Help(module, participate, wake_children, triple).build()
    _build_spin(module, triple)
