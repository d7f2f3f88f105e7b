"""Runs one instruction as machine code, on guarded copies of its operands."""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_int64, c_void_p
from dataclasses import dataclass

import llvmlite.binding as llvm
import numpy as np

from glowstone.backends.cpu.compile import emit_object
from glowstone.backends.cpu.kernel_family import KernelKey, family_for
from glowstone.backends.cpu.target import Target
from glowstone.lir import Buffer, BufferKind, Instruction, Operation, View
from glowstone.lir.table import TableEntry, encode
from glowstone.table import FIRST_ARGUMENT_BASE, STATUS_WORDS, Address, KernelCall
from glowstone.types import ElementType

KERNEL = CFUNCTYPE(None, c_void_p, c_void_p, c_int64, c_int64, c_void_p, c_void_p)
GUARD_BYTES = 256
GUARD = 0xFF  # as floats, NaN
ALIGNMENT = 64

_functions: dict[KernelKey, tuple[object, object]] = {}


def compiled(key: KernelKey):
    """The machine code of a key, compiled once per process."""
    if key not in _functions:
        target = Target.host()
        code = emit_object([key], target)
        machine = llvm.Target.from_triple(target.triple).create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _functions[key] = KERNEL(engine.get_function_address(key.symbol)), engine
    return _functions[key][0]


class GuardedMemory:
    """A copy of a flat array between guard bytes, aligned to a cache line."""

    def __init__(self, content: np.ndarray) -> None:
        raw = np.full(content.nbytes + 2 * GUARD_BYTES + ALIGNMENT, GUARD, np.uint8)
        shift = -raw.ctypes.data % ALIGNMENT
        self._raw = raw
        self._low = shift + GUARD_BYTES
        self._high = self._low + content.nbytes
        self.array = raw[self._low : self._high].view(content.dtype)
        self.array[:] = content

    def assert_guards(self) -> None:
        outside = np.concatenate([self._raw[: self._low], self._raw[self._high :]])
        assert (outside == GUARD).all(), "a kernel wrote outside its buffer"

    @property
    def address(self) -> int:
        return self.array.ctypes.data


@dataclass
class Run:
    """What a run left behind."""

    arrays: list[np.ndarray]
    status: np.ndarray
    call: KernelCall
    contents: dict[Buffer, np.ndarray]
    """Every buffer afterwards, flat."""


def run(instruction: Instruction, storages: dict[Buffer, np.ndarray], unit_order=None) -> Run:
    """Run the instruction on copies of the storages; `Run.arrays` are its operands afterwards.

    Units run in the order given (as they may on threads), by default one call for all.
    """
    instruction.verify()
    call = family_for(instruction.operation).plan(instruction, Target.host())
    assert isinstance(call.key, KernelKey)
    function = compiled(call.key)
    buffers = list(storages)
    memories = {buffer: GuardedMemory(storages[buffer]) for buffer in buffers}
    addresses = {buffer: Address(FIRST_ARGUMENT_BASE + i, 0) for i, buffer in enumerate(buffers)}
    words = encode([TableEntry(instruction, call, 0)], addresses)
    bases = np.array([0] * FIRST_ARGUMENT_BASE + [memories[buffer].address for buffer in buffers], np.int64)
    scratch = GuardedMemory(np.full(call.scratch, GUARD, np.uint8))
    status = np.zeros(STATUS_WORDS, np.int64)
    ranges = [(0, call.units)] if unit_order is None else [(u, u + 1) for u in unit_order(call.units)]
    for begin, end in ranges:
        function(words.ctypes.data, bases.ctypes.data, begin, end, scratch.address, status.ctypes.data)
    for memory in [*memories.values(), scratch]:
        memory.assert_guards()
    contents = {buffer: memory.array for buffer, memory in memories.items()}
    return Run([view.array(contents[view.buffer]) for view in instruction.operands], status, call, contents)


def make_view(array_like, strides=None, shape=None, offset=0, kind=BufferKind.ACTIVATION, element=None):
    """A view on a new buffer holding the flat array, and the array."""
    flat = np.ascontiguousarray(array_like).reshape(-1)
    element = element or ElementType.from_dtype(flat.dtype)
    buffer = Buffer("b", kind, element, (flat.size,))
    if shape is None:
        return Buffer("b", kind, element, np.shape(array_like)).view(), flat
    return View(buffer, offset, tuple(shape), tuple(strides)), flat


def run_operation(operation: Operation, arrays, integers=()) -> Run:
    """Run an operation on contiguous operands."""
    made = [make_view(array) for array in arrays]
    instruction = Instruction(operation, tuple(view for view, _ in made), tuple(integers))
    return run(instruction, {view.buffer: flat for view, flat in made})
