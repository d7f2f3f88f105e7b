"""Atomic words and the processor's hint for waiting loops."""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I32, I64, VOID, Value
from glowstone.backends.cpu.native.layout import WORD_BYTES
from glowstone.backends.cpu.native.routine import typed_pointer

AARCH64_YIELD_HINT = 1


def load(builder: ir.IRBuilder, address: Value, ordering: str = "acquire") -> Value:
    return builder.load_atomic(address, ordering, WORD_BYTES, typ=I64)


def store(builder: ir.IRBuilder, value: Value, address: Value, ordering: str = "release") -> None:
    builder.store_atomic(value, typed_pointer(builder, address, I64), ordering, WORD_BYTES)


def fetch_add(builder: ir.IRBuilder, address: Value, amount: Value) -> Value:
    """Add; gives the value before. Acquires and releases."""
    return builder.atomic_rmw("add", address, amount, "acq_rel")


def compare_exchange(builder: ir.IRBuilder, address: Value, expected: Value, value: Value) -> Value:
    """Store `value` where the word is `expected`; gives an i1, whether it was."""
    pair = builder.cmpxchg(address, expected, value, "acq_rel", "acquire")
    return builder.extract_value(pair, 1)


def pause(builder: ir.IRBuilder, triple: str) -> None:
    """Tell the processor that this thread waits. Nothing on architectures without such a hint."""
    architecture = triple.split("-", maxsplit=1)[0]
    if architecture in ("x86_64", "i686"):
        builder.call(_declared(builder.module, "llvm.x86.sse2.pause", ir.FunctionType(VOID, [])), [])
    elif architecture in ("aarch64", "arm64"):
        hint = _declared(builder.module, "llvm.aarch64.hint", ir.FunctionType(VOID, [I32]))
        builder.call(hint, [I32(AARCH64_YIELD_HINT)])


def _declared(module: ir.Module, name: str, kind: ir.FunctionType) -> ir.Function:
    return module.globals.get(name) or ir.Function(module, kind, name)
