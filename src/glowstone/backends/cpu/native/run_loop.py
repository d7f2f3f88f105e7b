"""The run loop for one thread, and what one call of a kernel is.

Exported: `i64 glowstone_run(run)`, which executes records until the run ends, pauses or fails (`Result`).
"""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I64, POINTER, VOID, Value
from glowstone.backends.cpu.native.floating_point import set_default_environment
from glowstone.backends.cpu.native.layout import RUN_SYMBOL, STATUS_STRIDE, Result, RunField
from glowstone.backends.cpu.native.routine import Routine
from glowstone.table import INSTRUCTION, KERNEL, STATUS_CODE, STATUS_INSTRUCTION, UNITS, StatusCode

KERNEL_TYPE = ir.FunctionType(VOID, [POINTER, POINTER, I64, I64, POINTER, POINTER])
RUN_ALL = "run_all"


def build_run_all(module: ir.Module, next_call: ir.Function) -> ir.Function:
    """Add `run_all(run) -> result`: every call on this thread, in the floating-point environment there is."""
    routine = Routine(module, RUN_ALL, I64, [POINTER])
    builder = routine.builder
    (run,) = routine.arguments
    fetch, execute, leave = routine.block("fetch"), routine.block("execute"), routine.block("leave")
    routine.go_to(fetch)
    record = routine.call(next_call, [run])
    builder.cbranch(builder.icmp_unsigned("==", record, POINTER(None)), leave, execute)
    builder.position_at_end(execute)
    failed = execute_whole(routine, run, record, I64(0))
    fail = routine.block("fail")
    builder.cbranch(failed, fail, fetch)
    builder.position_at_end(fail)
    end_failed(routine, run)
    builder.branch(leave)
    builder.position_at_end(leave)
    builder.ret(routine.word(run, RunField.RESULT))
    return routine.function


def build_run(module: ir.Module, run_all: ir.Function, triple: str) -> ir.Function:
    """Add the exported entry for one thread."""
    routine = Routine(module, RUN_SYMBOL, I64, [POINTER], exported=True)
    (run,) = routine.arguments
    restore_environment = set_default_environment(routine.builder, triple)
    result = routine.call(run_all, [run])
    restore_environment()
    routine.builder.ret(result)
    return routine.function


def execute_whole(routine: Routine, run: Value, record: Value, participant: Value) -> Value:
    """Execute all units of a call as `participant`; gives an i1, whether it failed."""
    kernel = kernel_of(routine, run, record)
    bases = routine.pointer(run, RunField.BASES)
    scratch = participant_block(
        routine, routine.pointer(run, RunField.SCRATCH), routine.word(run, RunField.SCRATCH_STRIDE), participant
    )
    status = participant_block(routine, routine.pointer(run, RunField.STATUS), I64(STATUS_STRIDE), participant)
    return execute(routine, kernel, record, bases, I64(0), routine.word(record, UNITS), scratch, status)


def kernel_of(routine: Routine, run: Value, record: Value) -> Value:
    """Address of a call's kernel."""
    return routine.pointer(routine.pointer(run, RunField.KERNELS), routine.word(record, KERNEL))


def participant_block(routine: Routine, first: Value, stride: Value, participant: Value) -> Value:
    """Address of a participant's block, of blocks `stride` bytes apart."""
    return routine.shifted(first, routine.builder.mul(stride, participant))


def execute(
    routine: Routine,
    kernel: Value,
    record: Value,
    bases: Value,
    unit_begin: Value,
    unit_end: Value,
    scratch: Value,
    status: Value,
) -> Value:
    """Call a kernel on units; gives an i1, whether this participant's status says that something was wrong.

    Kernels write unit, code and value; the instruction is written here.
    """
    builder = routine.builder
    routine.call_address(kernel, KERNEL_TYPE, [record, bases, unit_begin, unit_end, scratch, status])
    failed = builder.icmp_signed("!=", routine.word(status, STATUS_CODE), I64(int(StatusCode.GOOD)))
    with builder.if_then(failed, likely=False):
        number = builder.add(routine.word(record, INSTRUCTION), I64(1))
        routine.set(status, STATUS_INSTRUCTION, number)
    return failed


def end_failed(routine: Routine, run: Value) -> None:
    """Note that the run failed; it can be started again from the first record."""
    routine.set(run, RunField.POSITION, 0)
    routine.set(run, RunField.SPENT, 0)
    routine.set(run, RunField.RESULT, int(Result.FAILED))
