"""A graph of a file run in steps: compiled parts, and nodes on the host, one after another.

What a step is follows from what the nodes left need, and is found out when it is first needed; afterwards the same
steps run again. A part serves all calls in which its inputs have the same ranks and element types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from glowstone.api.environment import Environment, HostValue
from glowstone.api.part_step import PartStep, check_size
from glowstone.api.workshop import Step, Workshop
from glowstone.errors import GlowstoneError, InternalError, LimitError, ModelError
from glowstone.host import MISSING, HostRule
from glowstone.importer import FileGraph, Wishes
from glowstone.runtime.fork import ForkSafeLock
from glowstone.types import Dimension

MOST_VARIANTS = 32
"""Variants of one step kept, for inputs of other ranks or other fixed values; the oldest go."""
DEEPEST_NESTING = 32
"""Bodies inside bodies that run in steps."""


class SteppedGraph:
    """One graph of the file. Thread-safe."""

    def __init__(self, graph: FileGraph, workshop: Workshop, outer: SteppedGraph | None = None) -> None:
        self.file = graph
        self.workshop = workshop
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        if self.depth > DEEPEST_NESTING:
            raise LimitError("bodies are nested too deep", expected=f"at most {DEEPEST_NESTING}", found=self.depth)
        self.wishes = Wishes()
        self.dimensions: dict[str, tuple[Dimension, ...]] = {}
        """Of results of parts: an extent where every call has it, else ""."""
        self._bodies: dict[int, Mapping[str, SteppedGraph]] = {}
        self._lock = ForkSafeLock()
        self._first = _State(graph.live_nodes())
        for index in self._first.remaining:
            if not graph.is_imported(index) and graph.runs_on_host(index):
                workshop.host_nodes[graph, index] = graph.host_node(index, {})

    def run(self, environment: Environment) -> list[HostValue]:
        """The outputs, from an environment with the inputs."""
        state = self._first
        while state.remaining:
            step, state = self._next(state, environment)
            step.run(environment)
            environment.forget(step.unread)
        return [self.value(name, environment) for name in self.file.output_names]

    def value(self, name: str, environment: Environment) -> HostValue:
        """The value of a name, which may be a constant's."""
        try:
            return environment[name]
        except KeyError:
            return self.file.constant(name)

    def known_dimensions(self, name: str) -> tuple[Dimension, ...]:
        """Extents of a value, of this graph or of one around, that every call has; "" for others."""
        graph: SteppedGraph | None = self
        while graph is not None:
            found = graph.dimensions.get(name) or graph.file.dimensions(name)
            if found is not None:
                return found
            graph = graph.outer
        return ()

    def bodies(self, index: int) -> Mapping[str, SteppedGraph]:
        """The bodies of a node by attribute name."""
        found = self._bodies.get(index)
        if found is None:
            found = self._bodies[index] = {
                name: SteppedGraph(body, self.workshop, self) for name, body in self.file.bodies(index).items()
            }
        return found

    def _next(self, state: _State, environment: Environment) -> tuple[Step, _State]:
        found = state.find(environment)
        if found is not None:
            return found
        with self._lock:
            found = state.find(environment)  # another thread may have been here before
            if found is not None:
                return found
            step = self._plan(state, environment)
            left = tuple(index for index in state.remaining if index not in step.nodes)
            step.unread = self._unread(state, left)
            entry = (step, _State(left))
            state.steps = [*state.steps[-(MOST_VARIANTS - 1) :], entry]
            return entry

    def _unread(self, state: _State, left: Sequence[int]) -> tuple[str, ...]:
        """Values that a step was the last to read."""
        wanted = {name for index in left for name in self.file.reads[index]} | set(self.file.output_names)
        read = {name for index in state.remaining for name in self.file.reads[index]}
        return tuple(sorted(read - wanted))

    def _plan(self, state: _State, environment: Environment) -> Step:
        """The first node that is ready to run on the host, else a part."""
        step = self._host_step(state)
        if step is not None:
            return step
        part = PartStep.made(self, state.remaining, environment)
        if part.nodes:
            return part
        step = self._host_step(state)  # making the part may have shown that one must run there
        if step is not None:
            return step
        raise part.part.failure or InternalError("no node can run")

    def _host_step(self, state: _State) -> Step | None:
        later = set[str]()
        for index in state.remaining:
            if index in self.wishes.on_host and not any(name in later for name in self.file.reads[index]):
                return HostStep(self, index)
            later.update(self.file.writes(index))
        return None


@dataclass
class _State:
    """What is left to run, and the steps known that go on from there."""

    remaining: tuple[int, ...]
    steps: list[tuple[Step, _State]] = field(default_factory=list)

    def find(self, environment: Environment) -> tuple[Step, _State] | None:
        """The step known that fits the values there are, and what is left after it."""
        return next((entry for entry in self.steps if entry[0].accepts(environment)), None)


class HostStep(Step):
    """A node on the host."""

    def __init__(self, graph: SteppedGraph, index: int) -> None:
        file = graph.file
        node = file.nodes[index]
        rule = file.host_rule(index)
        assert rule is not None, "only nodes with a host rule are wished there"
        self._rule: HostRule = rule
        self._graph = graph
        self._operands = tuple(node.input)
        self._results = tuple(node.output)
        self.nodes = frozenset({index})
        self._bodies = graph.bodies(index)
        self._node = file.host_node(index, {})
        graph.workshop.host_nodes[file, index] = self._node

    def accepts(self, environment: Environment) -> bool:
        return True

    def run(self, environment: Environment) -> None:
        operands = [self._graph.value(name, environment) if name else MISSING for name in self._operands]
        bodies = {name: _Body(graph, environment) for name, graph in self._bodies.items()}
        node = replace(self._node, bodies=bodies)
        try:
            found = self._rule(node, operands)
        except GlowstoneError as error:
            raise error.with_context(node=node.name, operator=node.kind) from error.__cause__
        results = found if isinstance(found, tuple) else (found,)
        arrays = [value for value in results if isinstance(value, np.ndarray)]
        check_size(arrays, self._graph.workshop.settings.memory_limit)
        if len(results) < len(self._results):
            raise ModelError(
                "a node has more results than its operator gives",
                node=node.name,
                operator=node.kind,
                expected=len(results),
                found=len(self._results),
            )
        for name, value in zip(self._results, results, strict=False):
            if name:
                environment[name] = value


class _Body:
    """A body of a host node, in the environment of its node. See `host.HostBody`."""

    def __init__(self, graph: SteppedGraph, outer: Environment) -> None:
        self._graph = graph
        self._outer = outer

    @property
    def input_count(self) -> int:
        return len(self._graph.file.input_names)

    @property
    def output_shapes(self) -> Sequence[tuple[np.dtype[Any], tuple[int, ...]] | None]:
        return self._graph.file.output_shapes()

    def run(self, inputs: Sequence[HostValue]) -> list[HostValue]:
        named = dict(zip(self._graph.file.input_names, inputs, strict=True))
        return self._graph.run(Environment(named, self._outer))
