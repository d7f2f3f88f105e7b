"""The floating-point environment: round to nearest, denormals kept, nothing trapped, whatever the caller had."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from glowstone.backends.cpu.ir_types import I32, I64, POINTER, VOID, Value

MXCSR_DEFAULT = 0x1F80
FPCR_DEFAULT = 0


def set_default_environment(builder: ir.IRBuilder, triple: str) -> Callable[[], None]:
    """Enter the default environment; the function returned emits going back to the one before.

    Architectures without control over denormals are left as they are.
    """
    architecture = triple.split("-", maxsplit=1)[0]
    if architecture == "x86_64":
        return _x86(builder)
    if architecture in ("aarch64", "arm64"):
        return _aarch64(builder)
    return lambda: None


def _x86(builder: ir.IRBuilder) -> Callable[[], None]:
    store = _declared(builder, "llvm.x86.sse.stmxcsr", VOID, [POINTER])
    load = _declared(builder, "llvm.x86.sse.ldmxcsr", VOID, [POINTER])
    with builder.goto_entry_block():
        before, default = builder.alloca(I32), builder.alloca(I32)
    builder.call(store, [before])
    builder.store(I32(MXCSR_DEFAULT), default)
    builder.call(load, [default])
    return lambda: builder.call(load, [before])


def _aarch64(builder: ir.IRBuilder) -> Callable[[], None]:
    before = builder.call(_declared(builder, "llvm.aarch64.get.fpcr", I64, []), [])
    change = _declared(builder, "llvm.aarch64.set.fpcr", VOID, [I64])
    builder.call(change, [I64(FPCR_DEFAULT)])
    return lambda: builder.call(change, [before])


def _declared(builder: ir.IRBuilder, name: str, result: ir.Type, parameters: list[ir.Type]) -> Value:
    existing = builder.module.globals.get(name)
    return existing or ir.Function(builder.module, ir.FunctionType(result, parameters), name)
