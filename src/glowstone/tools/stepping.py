"""The instructions of a compiled model, one at a time as machine code.

`IsolatedInstructions` runs an instruction on copies of its buffers, beside an interpreter that runs the program.
`run_stepwise` runs the program itself and reports every instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from glowstone.api import Model
from glowstone.compiler import Plan
from glowstone.lir import Buffer, Instruction, View
from glowstone.lir.control_flow import regions
from glowstone.lir.table import TableEntry, encode
from glowstone.runtime.arena import aligned_bytes
from glowstone.runtime.executable import address_of
from glowstone.runtime.runner import Runner, prepare
from glowstone.table import FIRST_ARGUMENT_BASE, Address

Array = np.ndarray[Any, np.dtype[Any]]


class IsolatedInstructions:
    """Runs instructions of a model's plan, each on copies of its buffers that were taken just before."""

    def __init__(self, model: Model, plan: Plan) -> None:
        self._code = model.code
        self._planner = model.engine.settings.backend.planner
        self._library = model.engine.library
        self._kernels = self._library.indices(plan.keys)
        self.copies: dict[Buffer, Array] = {}
        """Flat content of every buffer of the instruction."""

    def before(self, number: int, instruction: Instruction, show: Callable[[View], Array]) -> None:
        """Take the copies; a `Watcher` of the interpreter."""
        buffers = dict.fromkeys(view.buffer for view in instruction.operands)
        self.copies = {buffer: _aligned_copy(show(buffer.view())) for buffer in buffers}

    def run(self, instruction: Instruction) -> None:
        """Run the instruction on the copies.

        Raises:
            ExecutionError: it met a value that it refuses.
        """
        call = self._planner.plan(instruction)
        addresses = {buffer: Address(FIRST_ARGUMENT_BASE + number, 0) for number, buffer in enumerate(self.copies)}
        words = encode([TableEntry(instruction, call, self._kernels[call.key])], addresses)
        bases = FIRST_ARGUMENT_BASE + len(self.copies)
        table = prepare(words, self._library.addresses, bases, self._library.keep_alive)
        runner = Runner(self._code, table, 1, lambda _: ", ".join(instruction.names))
        for base, copy in enumerate(self.copies.values(), FIRST_ARGUMENT_BASE):
            runner.bases[base] = address_of(copy)
        runner.run()


def run_stepwise(
    model: Model, inputs: Mapping[str, Array], step: Callable[[int, Callable[[], None]], None]
) -> tuple[Plan, dict[str, Array]]:
    """Run a model once, instruction by instruction on one thread.

    Args:
        model: compiled at the shapes of the inputs.
        inputs: an array by input name.
        step: called for each instruction, in order, with its number and a function that runs it; for one that begins
            control flow, that runs all up to its end.

    Returns:
        The plan with the instructions, and the outputs by name.
    """
    engine = model.engine
    plan, executable = engine.reference_plan(), engine.executable(engine.reference)
    library = engine.library
    kernels = library.indices(plan.keys)
    arrays = [np.ascontiguousarray(inputs[buffer.name]) for buffer in plan.program.inputs]
    arrays += [np.empty(buffer.shape, buffer.element.dtype) for buffer in plan.program.outputs]
    memory = [executable.constants, executable.plan_constants, aligned_bytes(executable.arena_bytes), *arrays]
    for number, end in _steps(plan.instructions):
        part = range(number, end)
        entries = [TableEntry(plan.instructions[i], plan.calls[i], kernels.get(plan.calls[i].key, 0)) for i in part]
        words = encode(entries, plan.addresses.addresses)
        table = prepare(words, library.addresses, len(memory), library.keep_alive)
        names = [", ".join(plan.instructions[i].names) for i in part]
        runner = Runner(model.code, table, 1, names.__getitem__)
        runner.bases[: len(memory)] = [address_of(part) for part in memory]
        step(number, runner.run)
    results = arrays[len(plan.program.inputs) :]
    return plan, {argument.name: array for argument, array in zip(executable.outputs, results, strict=True)}


def _steps(instructions: Sequence[Instruction]) -> list[tuple[int, int]]:
    """The instructions that run by themselves, and those from a border to its end, as ranges of numbers."""
    inside = {region.begin: region.end for region in regions(instructions)}
    result: list[tuple[int, int]] = []
    number = 0
    while number < len(instructions):
        end = number
        while end in inside:  # the first part of a branch is followed by the second
            end = inside[end]
        result.append((number, end + 1))
        number = end + 1
    return result


def _aligned_copy(array: Array) -> Array:
    copy = aligned_bytes(array.nbytes)[: array.nbytes].view(array.dtype)
    copy[:] = array.reshape(-1)
    return copy
