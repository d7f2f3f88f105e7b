"""Emits the run loop as one object file without external references.

In: a target. Out: the object's bytes, which follow from the target alone.
"""

from __future__ import annotations

from llvmlite import ir

from glowstone.backends.cpu.machine import create_target_machine, optimize, parse_module
from glowstone.backends.cpu.native.control import build_next_call
from glowstone.backends.cpu.native.pool import build_pool
from glowstone.backends.cpu.native.run_loop import build_run, build_run_all
from glowstone.backends.cpu.target import Target

MODULE_NAME = "glowstone.run_loop"


def emit_run_loop(target: Target) -> bytes:
    """The run loop for one thread and for several, and the helpers' main function."""
    machine = create_target_machine(target.triple, target.cpu, target.features)
    module = ir.Module(MODULE_NAME, context=ir.Context())
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    next_call, run_alone = build_single_run(module, target.triple)
    build_pool(module, next_call, run_alone, target.triple)
    parsed = parse_module(str(module))
    optimize(parsed, machine)
    return bytes(machine.emit_object(parsed))


def build_single_run(module: ir.Module, triple: str) -> tuple[ir.Function, ir.Function]:
    """Add the run loop for one thread; gives `next_call` and the exported entry."""
    next_call = build_next_call(module)
    return next_call, build_run(module, build_run_all(module, next_call), triple)
