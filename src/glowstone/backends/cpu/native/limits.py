"""Two small routines that show what the machine can do at most: multiply-adds in registers, and reading memory.

In: a target. Out: an object file with `ARITHMETIC_SYMBOL`, `void(i64 rounds, float *result)`, and `READ_SYMBOL`,
`void(float *begin, i64 lines, float *result)`. They are timed for display only; nothing is ever chosen by them.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from glowstone.backends.cpu.ir_types import F32, I64, POINTER, VOID, Type, Value, suffix, vector
from glowstone.backends.cpu.machine import create_target_machine, optimize, parse_module
from glowstone.backends.cpu.native.routine import Routine
from glowstone.backends.cpu.target import FLOAT_BYTES, Target

ARITHMETIC_SYMBOL: Final = "glow_limit_arithmetic"
READ_SYMBOL: Final = "glow_limit_read"
ACCUMULATORS: Final = 10
"""Independent sums: enough for two units with a latency of four or five cycles, few enough for sixteen registers."""
LINE_BYTES: Final = 64


def emit_limits(target: Target) -> bytes:
    """The object file."""
    machine = create_target_machine(target.triple, target.cpu, target.features)
    module = ir.Module("glowstone.limits", context=ir.Context())
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    _build_arithmetic(module, vector(F32, target.float_lanes))
    _build_read(module, target.float_lanes)
    parsed = parse_module(str(module))
    optimize(parsed, machine)
    return bytes(machine.emit_object(parsed))


def _build_arithmetic(module: ir.Module, kind: Type) -> None:
    """Each round does `ACCUMULATORS` vector multiply-adds on registers alone."""
    routine = Routine(module, ARITHMETIC_SYMBOL, VOID, [I64, POINTER], exported=True)
    rounds, result = routine.arguments
    builder = routine.builder
    fuse = ir.Function(module, ir.FunctionType(kind, [kind] * 3), f"llvm.fmuladd.{suffix(kind)}")
    scale = builder.load(result, typ=kind, align=FLOAT_BYTES)
    sums = [_variable(builder, scale) for _ in range(ACCUMULATORS)]
    with routine.counted(0, rounds):
        for sum in sums:
            builder.store(builder.call(fuse, [builder.load(sum), scale, scale]), sum)
    _store_total(builder, sums, result)
    builder.ret_void()


def _build_read(module: ir.Module, lanes: int) -> None:
    """Reads whole cache lines and adds up what is in them."""
    routine = Routine(module, READ_SYMBOL, VOID, [POINTER, I64, POINTER], exported=True)
    begin, lines, result = routine.arguments
    builder = routine.builder
    kind = vector(F32, lanes)
    parts = LINE_BYTES // (FLOAT_BYTES * lanes)
    sums = [_variable(builder, builder.load(result, typ=kind, align=FLOAT_BYTES)) for _ in range(parts)]
    with routine.counted(0, lines) as line:
        address = routine.shifted(begin, builder.mul(line, I64(LINE_BYTES)))
        for part, sum in enumerate(sums):
            place = routine.shifted(address, I64(part * lanes * FLOAT_BYTES))
            builder.store(builder.fadd(builder.load(sum), builder.load(place, typ=kind, align=FLOAT_BYTES)), sum)
    _store_total(builder, sums, result)
    builder.ret_void()


def _variable(builder: ir.IRBuilder, value: Value) -> Value:
    variable = builder.alloca(value.type)
    builder.store(value, variable)
    return variable


def _store_total(builder: ir.IRBuilder, sums: list[Value], result: Value) -> None:
    """So that no sum is left out as unused."""
    total = builder.load(sums[0])
    for sum in sums[1:]:
        total = builder.fadd(total, builder.load(sum))
    builder.store(total, result, align=FLOAT_BYTES)
