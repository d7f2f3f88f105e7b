"""From kernel keys to machine code.

In: keys and a target. Out: one relocatable object with a function for each key and no external symbols, or text.
The bytes follow from keys and target alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import llvmlite.binding as llvm
from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.kernel_family import KernelKey, family_for
from glowstone.backends.cpu.machine import code_generation, create_target_machine, optimize, parse_module
from glowstone.backends.cpu.target import Target

MODULE_NAME = "glowstone"


def emit_object(keys: Sequence[KernelKey], target: Target) -> bytes:
    """One object file with every key's symbol."""
    machine = _machine(target)
    module = _optimized(keys, target, machine)
    with code_generation(target.wants_machine_scheduling):
        return bytes(machine.emit_object(module))


def assembly(key: KernelKey, target: Target) -> str:
    """The machine code of one kernel as text."""
    machine = _machine(target)
    module = _optimized([key], target, machine)
    with code_generation(target.wants_machine_scheduling):
        return str(machine.emit_assembly(module))


def llvm_ir(key: KernelKey, target: Target) -> str:
    """The IR of one kernel before LLVM's passes."""
    return _build([key], target)


def _machine(target: Target) -> llvm.TargetMachine:
    return create_target_machine(target.triple, target.cpu, target.features)


def _optimized(keys: Sequence[KernelKey], target: Target, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    module = parse_module(_build(keys, target))
    optimize(module, machine)
    return module


def _build(keys: Sequence[KernelKey], target: Target) -> str:
    module = ir.Module(MODULE_NAME, context=ir.Context())
    module.triple = target.triple
    module.data_layout = str(_machine(target).target_data)
    add_kernels(module, keys, target)
    return str(module)


def add_kernels(module: ir.Module, keys: Sequence[KernelKey], target: Target) -> None:
    """Build a function for every distinct key in the module."""
    for key in dict.fromkeys(keys):
        emitter = Emitter(module, key, target)
        family_for(key.operation).build(key, target, emitter)
        emitter.finish()
