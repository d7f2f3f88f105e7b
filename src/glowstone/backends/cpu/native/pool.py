"""A run shared by several threads that claim its work.

A *step* is one instruction open to claims. Its units are cut into chunks of `grain`, the chunks into one slice per
participant. A claim word per slice holds (step, chunks taken) and grows by compare-and-exchange; a participant takes
from its own slice first, then from the others' in order, and reports what it finished at once. Whoever reports the
last chunk *advances*: walks the control records, executes alone what is too small to share, and publishes the next
step. So any thread may be absent or late, and the caller alone can finish.

Why a late thread does no harm: the advancing thread first retags all claim words, then (after a fence) writes the
fields of the next step, then publishes it. Had a thread read a field of a later step, its claim would carry an
outdated tag and fail; and who holds a claim keeps the step from ending. Without a claim a thread touches only the
pool, never the run, so nobody waits for helpers to leave.

Exported: `i64 glowstone_run_shared(run)`. `step.py` publishes, `claim.py` claims, `helper.py` is the life of a helper.
"""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I64, POINTER, Value
from glowstone.backends.cpu.native import atomics
from glowstone.backends.cpu.native.claim import build_participate
from glowstone.backends.cpu.native.floating_point import set_default_environment
from glowstone.backends.cpu.native.helper import build_help, build_wake_children
from glowstone.backends.cpu.native.layout import MAX_PARTICIPANTS, RUN_SHARED_SYMBOL, PoolField, RunField
from glowstone.backends.cpu.native.routine import Routine
from glowstone.backends.cpu.native.step import TO_FIRST_STEP, build_advance, is_open, retag, set_field

FIELDS_OF_RUN = (
    (PoolField.PARTICIPANTS, RunField.PARTICIPANTS),
    (PoolField.BASES, RunField.BASES),
    (PoolField.SCRATCH, RunField.SCRATCH),
    (PoolField.SCRATCH_STRIDE, RunField.SCRATCH_STRIDE),
    (PoolField.STATUS, RunField.STATUS),
)


def build_pool(module: ir.Module, next_call: ir.Function, run_alone: ir.Function, triple: str) -> None:
    """Add everything that a shared run needs."""
    advance = build_advance(module, next_call)
    participate = build_participate(module, advance, triple)
    wake_children = build_wake_children(module)
    build_help(module, participate, wake_children, triple)
    _build_run_shared(module, run_alone, advance, participate, wake_children, triple)


def _build_run_shared(
    module: ir.Module,
    run_alone: ir.Function,
    advance: ir.Function,
    participate: ir.Function,
    wake_children: ir.Function,
    triple: str,
) -> None:
    """The caller's side: take the pool, or run alone where another run has it."""
    routine = Routine(module, RUN_SHARED_SYMBOL, I64, [POINTER], exported=True)
    builder = routine.builder
    (run,) = routine.arguments
    pool = routine.pointer(run, RunField.POOL)
    lock = routine.at(pool, PoolField.LOCK)
    shared, alone = routine.block("shared"), routine.block("alone")
    builder.cbranch(atomics.compare_exchange(builder, lock, I64(0), I64(1)), shared, alone)
    builder.position_at_end(alone)
    builder.ret(routine.call(run_alone, [run]))
    builder.position_at_end(shared)
    restore_environment = set_default_environment(builder, triple)
    _open_run(routine, run, pool)
    routine.call(advance, [run, pool, I64(0)])
    with builder.if_then(is_open(builder, _step(routine, pool))):
        builder.fence("seq_cst")
        routine.call(wake_children, [pool, I64(0), routine.word(run, RunField.PARTICIPANTS)])
    watch, work, done = (routine.block(name) for name in ("watch", "work", "done"))
    routine.go_to(watch)
    step = _step(routine, pool)
    builder.cbranch(is_open(builder, step), work, done)
    builder.position_at_end(work)
    routine.call(participate, [pool, I64(0), step])
    builder.branch(watch)
    builder.position_at_end(done)
    restore_environment()
    result = routine.word(run, RunField.RESULT)
    atomics.store(builder, I64(0), lock)
    builder.ret(result)


def _step(routine: Routine, pool: Value) -> Value:
    return atomics.load(routine.builder, routine.at(pool, PoolField.STEP))


def _open_run(routine: Routine, run: Value, pool: Value) -> None:
    """Write what stays the same for all steps of the run. Every claim word is retagged first, also those that only
    an earlier run with more participants used: see the module's docstring.
    """
    builder = routine.builder
    step = atomics.load(builder, routine.at(pool, PoolField.STEP))
    retag(routine, pool, builder.add(step, I64(TO_FIRST_STEP)), I64(MAX_PARTICIPANTS))
    for target, source in FIELDS_OF_RUN:
        set_field(routine, pool, target, routine.word(run, source))
    set_field(routine, pool, PoolField.RUN, builder.ptrtoint(run, I64))
    set_field(routine, pool, PoolField.FAILED, I64(0))
