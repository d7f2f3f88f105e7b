"""Two executions of one model, and the first value at which they part.

In: a model and its inputs. Out: a `Comparison`. Values are compared by their ONNX names. Where outputs differ, halving
finds the first node: a part made of the first n nodes is good if all it hands on agrees. So the node that turns a good
part into a bad one has inputs that agree, and it takes as many runs as the number of nodes has binary digits. Where the
outputs agree, one more run compares every value. Around the node found the smallest part that still shows the
difference is cut out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import glowstone
from glowstone import importer
from glowstone.backends.interpreter import Interpreter
from glowstone.importer.structure import node_name
from glowstone.lir import Instruction, View
from glowstone.tools.difference import largest_difference, tolerance_of, unit_in_last_place
from glowstone.tools.execution import EXECUTIONS, Execution, run_evaluator, shapes_of
from glowstone.tools.stepping import IsolatedInstructions
from glowstone.tools.submodel import Submodels

if TYPE_CHECKING:
    from onnx import ModelProto

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Difference:
    """A value that differs: its ONNX name, what computes it, and by how much.

    `amount` is the largest difference as a part of the largest value, `allowed` what it may be.
    """

    value: str
    source: str
    amount: float
    allowed: float


@dataclass(frozen=True)
class Part:
    """A model that shows a difference, with its inputs."""

    model: ModelProto
    inputs: Mapping[str, Array]


@dataclass(frozen=True)
class Comparison:
    """What was found: the values or instructions compared, and the first that differs, None where all agree.

    `part` is the smallest model found that shows the difference.
    """

    compared: int
    difference: Difference | None = None
    part: Part | None = None


def compare_model(
    model: ModelProto, inputs: Mapping[str, Array], backend: str, reference: str, tolerance: float | None = None
) -> Comparison:
    """Compare a backend with a reference, both by name (see `EXECUTIONS`).

    Machine code and the interpreter are compared by instructions, all others by the values of the ONNX model.
    """
    if (backend, reference) == ("cpu", "interpreter"):
        return compare_instructions(model, inputs, tolerance)
    return compare_values(model, inputs, EXECUTIONS[backend], EXECUTIONS[reference], tolerance)


def compare_values(
    model: ModelProto,
    inputs: Mapping[str, Array],
    run: Execution,
    reference: Execution,
    tolerance: float | None = None,
) -> Comparison:
    """Compare two executions by the values of the ONNX model.

    Args:
        model: with its weights inside.
        inputs: an array by input name.
        run: what is tested. It sees the model, then parts of it.
        reference: what is right. It runs once, with every value as an output.
        tolerance: of floats, as a part of the largest value; that of the element type where None.
    """
    search = _Search(model, inputs, run, reference, tolerance)
    return search.run()


class _Search:
    def __init__(
        self,
        model: ModelProto,
        inputs: Mapping[str, Array],
        run: Execution,
        reference: Execution,
        tolerance: float | None,
    ) -> None:
        self._model = model
        self._inputs = inputs
        self._execute = run
        self._tolerance = tolerance
        self._parts = Submodels(model)
        computed = reference(self._parts.with_all_values(), inputs)
        self._expected: dict[str, Array] = {**inputs, **computed}

    def run(self) -> Comparison:
        outputs = [info.name for info in self._model.graph.output]
        found = self._execute(self._model, self._inputs)
        differing = self._differing(found, outputs)
        if differing:
            position, differing = self._first_bad_node(differing)
        else:
            differing = self._differing_inside()
            if not differing:
                return Comparison(len(self._parts.computed()))
            position = self._parts.producer(next(iter(differing)))
        name = next((name for name in self._parts.nodes[position].output if name in differing), next(iter(differing)))
        amount = differing[name]
        node = self._parts.nodes[position]
        source = f"{node.op_type} {node_name(node, position)}"
        difference = Difference(name, source, amount, tolerance_of(self._expected[name], self._tolerance))
        return Comparison(len(self._parts.computed()), difference, self._smallest_part(position, list(differing)))

    def _differing_inside(self) -> dict[str, float]:
        """The values that differ, in order, with all values handed out: a difference may die out before the outputs."""
        found = self._execute(self._parts.with_all_values(self._expected), self._inputs)
        return self._differing(found, [name for name in self._parts.computed() if name in self._expected])

    def _first_bad_node(self, differing: dict[str, float]) -> tuple[int, dict[str, float]]:
        """The position of the first node that hands on a difference, and the values that differ there."""
        good, bad = 0, len(self._parts.nodes)
        while bad - good > 1:
            middle = (good + bad) // 2
            found = self._differing_of_part(range(middle), self._parts.live(middle))[1]
            if found:
                bad, differing = middle, found
            else:
                good = middle
        return bad - 1, differing

    def _smallest_part(self, position: int, names: Sequence[str]) -> Part:
        """The node alone if that shows the difference, else with twice as many nodes before it, and so on."""
        own = [name for name in names if name in self._parts.nodes[position].output]
        length = 1 if own else position + 1
        while True:
            first = max(position + 1 - length, 0)
            part, found = self._differing_of_part(range(first, position + 1), own or names)
            if found or first == 0:
                return part
            length *= 2

    def _differing_of_part(self, positions: Iterable[int], names: Sequence[str]) -> tuple[Part, dict[str, float]]:
        """A part that computes the values, and those of them that differ."""
        wanted = [name for name in names if name in self._expected]
        model = self._parts.cut(positions, wanted, self._expected)
        inputs = {info.name: self._expected[info.name] for info in model.graph.input}
        part = Part(model, inputs)
        return part, self._differing(self._execute(model, inputs), wanted) if wanted else {}

    def _differing(self, found: Mapping[str, Array], names: Sequence[str]) -> dict[str, float]:
        """The values that differ by more than they may, and by how much."""
        differing: dict[str, float] = {}
        for name in names:
            expected = self._expected[name]
            amount = largest_difference(found[name], expected)
            if amount > tolerance_of(expected, self._tolerance):
                differing[name] = amount
        return differing


def compare_instructions(model: ModelProto, inputs: Mapping[str, Array], tolerance: float | None = None) -> Comparison:
    """Compare machine code with the interpreter, instruction by instruction of one program.

    The interpreter runs the program with all checks of memory; every instruction also runs as machine code on a copy of
    its buffers. So an instruction is blamed for what it does itself alone.

    Args:
        model: with its weights inside.
        inputs: an array by input name.
        tolerance: of floats, as a part of the largest value; the operation's own bound where None.
    """
    compiled, left = glowstone.compile(model, shapes=shapes_of(inputs)).specialized(inputs)
    plan = compiled.engine.reference_plan()
    machine = IsolatedInstructions(compiled, plan)
    found: list[tuple[Instruction, Difference]] = []

    def after(number: int, instruction: Instruction, show: Callable[[View], Array]) -> None:
        if found:
            return
        machine.run(instruction)
        written = {view.buffer for view in instruction.outputs}
        for buffer, copy in machine.copies.items():
            expected = show(buffer.view()).reshape(-1)
            allowed = _instruction_tolerance(instruction, expected, tolerance) if buffer in written else 0.0
            amount = largest_difference(copy, expected)
            if amount > allowed:
                source = f"instruction {number}, {instruction.operation.name}"
                name = ", ".join(instruction.names) or buffer.name
                found.append((instruction, Difference(name, source, amount, allowed)))
                return

    Interpreter(plan.program, plan.memory).run(left, before=machine.before, after=after)
    count = len(plan.instructions)
    if not found:
        return Comparison(count)
    instruction, difference = found[0]
    return Comparison(count, difference, _part_of_nodes(model, inputs, instruction.names))


def _instruction_tolerance(instruction: Instruction, expected: Array, given: float | None) -> float:
    if given is not None:
        return tolerance_of(expected, given)
    return instruction.operation.ulp_bound * unit_in_last_place(expected)


def _part_of_nodes(model: ModelProto, inputs: Mapping[str, Array], names: Sequence[str]) -> Part | None:
    """The nodes of these names as a model; None where the file has none of them."""
    parts = Submodels(model)
    positions = [position for position, node in enumerate(parts.nodes) if node_name(node, position) in names]
    if not positions:
        return None
    values = {**inputs, **run_evaluator(parts.with_all_values(), inputs)}
    part = parts.cut(positions, parts.handed_on(positions), values)
    return Part(part, {info.name: values[info.name] for info in part.graph.input})


def load_whole(path: Any) -> ModelProto:
    """A model with its external data inside.

    Raises:
        ModelError: it is no model, or a file cannot be read.
    """
    model: ModelProto = importer.with_data_inside(importer.open_model(path))
    return model
