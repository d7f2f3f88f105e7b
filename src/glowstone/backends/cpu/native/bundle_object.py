"""The code of a bundle: kernels, table of calls, run loop for one thread and an entry for C, in one object.

In: keys, table and sizes. Out: a relocatable ELF object. It refers to two symbols that it does not define,
`constants_symbol` and `plan_constants_symbol` of the program's name; `glowstone.bundle` adds them with their bytes,
which would be slow to carry through LLVM's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from glowstone.backends.cpu.compile import add_kernels
from glowstone.backends.cpu.ir_types import I8, I32, I64, POINTER, Type, Value
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.machine import create_target_machine, optimize, parse_module
from glowstone.backends.cpu.native.emit import build_single_run
from glowstone.backends.cpu.native.layout import LINE_BYTES, RUN_WORDS, WORD_BYTES, RunField
from glowstone.backends.cpu.native.routine import Routine
from glowstone.backends.cpu.target import Target
from glowstone.errors import UnsupportedError
from glowstone.table import (
    BASE_ARENA,
    BASE_CONSTANTS,
    BASE_PLAN_CONSTANTS,
    FIRST_ARGUMENT_BASE,
    STATUS_CODE,
    STATUS_WORDS,
    Words,
)

UNLIMITED_BUDGET = (1 << 63) - 1
_SYSTEMS_WITHOUT_ELF = ("apple", "windows", "wasm")


@dataclass(frozen=True)
class BundleCode:
    """What the code of a bundle depends on besides the target."""

    name: str
    """A C identifier; prefix of every symbol."""
    words: Words
    kernels: tuple[KernelKey, ...]
    """By kernel index."""
    base_count: int
    inputs: int
    outputs: int
    arena_bytes: int
    """As planned for the program, without what the run itself adds."""
    scratch_bytes: int
    has_loops: bool

    @property
    def constants_symbol(self) -> str:
        return f"{self.name}_constants"

    @property
    def plan_constants_symbol(self) -> str:
        return f"{self.name}_plan_constants"

    @property
    def run_symbol(self) -> str:
        return f"{self.name}_run"

    @property
    def scratch_offset(self) -> int:
        """Where scratch begins in the arena that the caller gives."""
        return _round_up(self.arena_bytes)

    @property
    def passes_offset(self) -> int:
        """Where the counts of loops begin."""
        return self.scratch_offset + _round_up(self.scratch_bytes)

    @property
    def total_arena_bytes(self) -> int:
        """What the caller gives: the planned arena, scratch and the counts of loops."""
        return self.passes_offset + (len(self.words) * WORD_BYTES if self.has_loops else 0)


def _round_up(size: int) -> int:
    return -(-size // LINE_BYTES) * LINE_BYTES


def emit_bundle_code(code: BundleCode, target: Target) -> bytes:
    """The object.

    Raises:
        UnsupportedError: the target's linker takes no ELF objects.
    """
    if any(system in target.triple for system in _SYSTEMS_WITHOUT_ELF):
        remedy = "name a target whose linker takes ELF"
        raise UnsupportedError("bundles are ELF object files", found=target.triple, remedy=remedy)
    machine = create_target_machine(target.triple, target.cpu, target.features)
    module = ir.Module(code.name, context=ir.Context())
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    add_kernels(module, code.kernels, target)
    _, run_alone = build_single_run(module, target.triple)
    for function in module.functions:
        if function.blocks:
            function.linkage = "internal"  # several bundles may be linked into one program
    _build_entry(module, code, run_alone)
    parsed = parse_module(str(module))
    optimize(parsed, machine)
    return bytes(machine.emit_object(parsed))


def _build_entry(module: ir.Module, code: BundleCode, run_alone: ir.Function) -> None:
    """`int <name>_run(const void *const *inputs, void *const *outputs, void *arena)`."""
    routine = Routine(module, code.run_symbol, I32, [POINTER, POINTER, POINTER], exported=True)
    builder = routine.builder
    inputs, outputs, arena = routine.arguments
    run, bases, status = (_local_words(routine, count) for count in (RUN_WORDS, code.base_count, STATUS_WORDS))
    routine.set(bases, BASE_CONSTANTS, _external_bytes(module, code.constants_symbol))
    routine.set(bases, BASE_PLAN_CONSTANTS, _external_bytes(module, code.plan_constants_symbol))
    routine.set(bases, BASE_ARENA, arena)
    for array, count, first in (
        (inputs, code.inputs, FIRST_ARGUMENT_BASE),
        (outputs, code.outputs, FIRST_ARGUMENT_BASE + code.inputs),
    ):
        for number in range(count):
            routine.set(bases, first + number, routine.pointer(array, number))
    for word in range(STATUS_WORDS):
        routine.set(status, word, 0)
    fields: dict[RunField, Value | int] = {
        RunField.TABLE: _constant_words(module, f"{code.name}_table", code.words),
        RunField.KERNELS: _kernel_array(module, code),
        RunField.BASES: bases,
        RunField.PASSES: routine.shifted(arena, I64(code.passes_offset)),
        RunField.POSITION: 0,
        RunField.SCRATCH: routine.shifted(arena, I64(code.scratch_offset)),
        RunField.SCRATCH_STRIDE: 0,
        RunField.STATUS: status,
        RunField.BUDGET: UNLIMITED_BUDGET,
        RunField.SPENT: 0,
    }
    for field, value in fields.items():
        routine.set(run, field, value)
    routine.call(run_alone, [run])
    builder.ret(builder.trunc(routine.word(status, STATUS_CODE), I32))


def _local_words(routine: Routine, count: int) -> Value:
    return _untyped(routine.builder.alloca(ir.ArrayType(I64, count)))


def _untyped(pointer: Value) -> Value:
    """llvmlite types stack slots and variables by their content, which LLVM no longer does."""
    pointer.type = POINTER
    return pointer


def _external_bytes(module: ir.Module, symbol: str) -> Value:
    """Bytes that are defined later, in this object."""
    variable = ir.GlobalVariable(module, ir.ArrayType(I8, 0), symbol)
    variable.global_constant = True
    variable.storage_class = "hidden"
    return _untyped(variable)


def _constant(module: ir.Module, symbol: str, kind: Type, values: Sequence[Value]) -> Value:
    variable = ir.GlobalVariable(module, kind, symbol)
    variable.initializer = ir.Constant(kind, list(values))
    variable.global_constant = True
    variable.linkage = "internal"
    variable.align = WORD_BYTES
    return _untyped(variable)


def _constant_words(module: ir.Module, symbol: str, words: Words) -> Value:
    return _constant(module, symbol, ir.ArrayType(I64, len(words)), [I64(word) for word in words.tolist()])


def _kernel_array(module: ir.Module, code: BundleCode) -> Value:
    """Kernel addresses by index."""
    functions = [module.globals[key.symbol] for key in code.kernels]
    return _constant(module, f"{code.name}_kernels", ir.ArrayType(POINTER, len(functions)), functions)
