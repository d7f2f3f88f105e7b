"""A program run in NumPy, through the same table of calls as machine code.

In: a program with lifetime marks and constants with data. Out: output arrays by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from glowstone.backends.interpreter.checks import MemoryChecks
from glowstone.backends.interpreter.executor import Bytes, run_table
from glowstone.backends.interpreter.planner import InterpreterLibrary, InterpreterPlanner
from glowstone.errors import ExecutionError, InputError, InternalError
from glowstone.lir.buffer import Buffer, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.program import Program
from glowstone.lir.table import TableEntry, encode, plan_calls
from glowstone.memory import AddressMap, MemoryPlan, assign_addresses, check_plan, plan_memory
from glowstone.table import FIRST_ARGUMENT_BASE, NO_CALL, Address

Array = np.ndarray[Any, np.dtype[Any]]
Watcher = Callable[[int, Instruction, Callable[[View], Array]], None]
"""Receives number, instruction, and a function that shows any view as an array of the run's memory."""


class Interpreter:
    """A program, planned and encoded, ready to run.

    Args:
        program: with lifetimes and with data in its constants.
        plan: where activations lie; planned here if None.
        checked: check the plan, assert padding lanes zero around every instruction, poison the arena and outputs before
            each run and dead buffers after their last use.
    """

    def __init__(self, program: Program, plan: MemoryPlan | None = None, *, checked: bool = True) -> None:
        self._program = program
        self._checked = checked
        plan = plan or plan_memory(program)
        if checked:
            check_plan(program, plan)
        self._map = assign_addresses(program, plan)
        self._instructions = list(program.instructions())
        planner, library = InterpreterPlanner(), InterpreterLibrary()
        calls = plan_calls(planner.plan, self._instructions)
        entries = [
            TableEntry(instruction, call, 0 if call is NO_CALL else library.index_of([call.key])[0])
            for instruction, call in zip(self._instructions, calls, strict=True)
        ]
        self._words = encode(entries, self._map.addresses)
        self._kernels = library.keys
        self._shared = _constant_bases(program, self._map)

    def run(
        self, inputs: Mapping[str, Array], *, before: Watcher | None = None, after: Watcher | None = None
    ) -> dict[str, Array]:
        """Run once, with `before` called before each instruction and `after` after it.

        Raises:
            InputError: an input is missing or not of its buffer's element type and shape.
            ExecutionError: an instruction met a value that it refuses; `node` has the ONNX names.
            InternalError: a check failed.
        """
        bases = [*self._shared, np.zeros(self._map.arena_bytes, np.uint8)]
        bases += (_read_only(_input_bytes(buffer, inputs)) for buffer in self._program.inputs)
        bases += (np.zeros(buffer.bytes, np.uint8) for buffer in self._program.outputs)
        checks = MemoryChecks(self._program, self._map.addresses, bases) if self._checked else None
        if checks is not None:
            checks.poison_all(self._program.outputs)
        current = 0

        def show(view: View) -> Array:
            return view.array(_storage(self._map.addresses[view.buffer], view.buffer, bases))

        def before_call(number: int) -> None:
            nonlocal current
            current = number
            if checks is not None:
                checks.check_inputs(number)
            if before is not None:
                before(number, self._instructions[number], show)

        def after_call(number: int) -> None:
            if checks is not None:
                checks.check_outputs(number)
            if after is not None:
                after(number, self._instructions[number], show)
            if checks is not None:
                checks.poison_dead(number)

        try:
            run_table(self._words, self._kernels, bases, before=before_call, after=after_call)
        except ExecutionError as error:
            raise error.with_context(node=", ".join(self._instructions[current].names) or None) from None
        first = FIRST_ARGUMENT_BASE + len(self._program.inputs)
        return {
            buffer.name: base.view(buffer.element.dtype).reshape(buffer.shape)
            for buffer, base in zip(self._program.outputs, bases[first:], strict=False)  # windows follow
        }


def _constant_bases(program: Program, addresses: AddressMap) -> list[Bytes]:
    """Bases 0 and 1, read-only, with the data of constants in place."""
    bases = [np.zeros(addresses.constant_bytes, np.uint8), np.zeros(addresses.plan_constant_bytes, np.uint8)]
    for buffer in program.buffers():
        address = addresses.addresses[buffer]
        if address.base < len(bases) and buffer.size:
            if buffer.data is None:
                raise InternalError(f"constant {buffer.name} has no data")
            data = np.ascontiguousarray(buffer.data).reshape(-1).view(np.uint8)
            bases[address.base][address.offset : address.offset + buffer.bytes] = data
    return [_read_only(base) for base in bases]


def _storage(address: Address, buffer: Buffer, bases: Sequence[Bytes]) -> Array:
    """The elements of a buffer, flat."""
    return bases[address.base][address.offset : address.offset + buffer.bytes].view(buffer.element.dtype)


def _input_bytes(buffer: Buffer, inputs: Mapping[str, Array]) -> Bytes:
    if buffer.name not in inputs:
        raise InputError("an input is missing", expected=buffer.name, found=", ".join(inputs))
    array = inputs[buffer.name]
    if (array.shape, array.dtype) != (buffer.shape, buffer.element.dtype):
        expected = f"{buffer.element.dtype}{list(buffer.shape)}"
        raise InputError(f"input {buffer.name}", expected=expected, found=f"{array.dtype}{list(array.shape)}")
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _read_only(base: Bytes) -> Bytes:
    view = base.view()
    view.flags.writeable = False
    return view
