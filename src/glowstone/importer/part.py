"""A part of a file's graph: as many of its nodes as can be one compiled graph, given what is there already.

A node waits for a later part if it reads what only a run of this one shows: a counted result, or a value that decides a
shape and that the host does not know yet. What the host must know is noted in `Wishes`, for this part and for later
ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from glowstone.errors import GlowstoneError, UnknownValueError, UnsupportedError
from glowstone.graph import KNOWN_ELEMENTS_LIMIT, Builder, Graph, Tensor, Value
from glowstone.importer.file_graph import FileGraph
from glowstone.importer.imported import Counted, Imported, ValueSequence
from glowstone.importer.model_file import ModelFile
from glowstone.importer.nodes import import_node
from glowstone.importer.scope import Scope
from glowstone.importer.structure import node_name
from glowstone.ops import Constant
from glowstone.support.budget import budget
from glowstone.types import Dimension, ElementType, Shape, TensorType

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Given:
    """What is there of a value that a part reads: a symbol stands for a dimension that other calls may change."""

    element: ElementType
    shape: Shape
    dimensions: tuple[Dimension, ...]
    value: Array | None = None
    """Known to the host."""
    is_fixed: bool = False
    """Its value is compiled in."""


@dataclass
class Wishes:
    """What the nodes of a graph want, as far as it was found out; it only grows."""

    known: set[str] = field(default_factory=set)
    """Values that the host must know."""
    fixed: set[str] = field(default_factory=set)
    """Values that must be compiled in."""
    on_host: set[int] = field(default_factory=set)
    """Nodes that can only run on the host."""


@dataclass(frozen=True)
class PlainResult:
    """A value that is an output of the part."""

    output: int

    def value(self, outputs: Sequence[Array]) -> Any:
        return outputs[self.output]


@dataclass(frozen=True)
class CountedResult:
    """A value that is the start of an output; numbers of outputs. See `Counted`."""

    buffer: int
    count: int
    shape: int
    axis: int

    def value(self, outputs: Sequence[Array]) -> Any:
        shape = outputs[self.shape].tolist()
        shape[self.axis] = int(outputs[self.count][0])
        return outputs[self.buffer][: int(np.prod(shape, dtype=np.int64))].reshape(shape)


@dataclass(frozen=True)
class SequenceResult:
    """A sequence of values."""

    items: tuple[Result, ...]

    def value(self, outputs: Sequence[Array]) -> Any:
        return [item.value(outputs) for item in self.items]


Result: TypeAlias = PlainResult | CountedResult | SequenceResult


@dataclass(frozen=True)
class Part:
    """A graph of some nodes. Its inputs bear the names of the values they are."""

    graph: Graph
    nodes: frozenset[int]
    fixed: dict[str, Array]
    """Values that are compiled in."""
    results: dict[str, Result]
    """By name, what other nodes or the outputs need."""
    dimensions: dict[str, tuple[Dimension, ...]]
    """Of results that are plain or counted: an extent where every call has it, else ""."""
    remaining: tuple[int, ...]
    """The nodes that it was chosen from."""
    failure: GlowstoneError | None
    """Why a node waits, of the first that does."""


class _Again(Exception):  # noqa: N818 - no error: the part is imported again, with more that the host knows
    """Something that is given has become a wish."""


def import_part(
    graph: FileGraph,
    remaining: Sequence[int],
    give: Callable[[str], Given | None],
    wishes: Wishes,
    only: frozenset[int] | None = None,
) -> Part:
    """The nodes of `remaining` that can be compiled together now.

    Args:
        graph: the graph of the file.
        remaining: the nodes that did not run yet, in order.
        give: what is there of a value that is no constant; None for one that is no tensor.
        wishes: what nodes want; added to.
        only: the nodes to import, where a part is imported again; all others wait.

    Raises:
        GlowstoneError: a node is wrong or not supported.
    """
    while True:
        try:
            return _PartImport(graph, give, wishes).run(remaining, only)
        except _Again:
            continue


class _PartScope(Scope):
    """Names of a part: constants are emitted, and given values become inputs, when first read."""

    def __init__(self, graph: FileGraph, give: Callable[[str], Given | None], wishes: Wishes) -> None:
        super().__init__(Builder(Graph(graph.name)))
        self._file = graph
        self._give = give
        self._wishes = wishes
        self._constants: dict[FileGraph, Scope] = {}
        self.fixed: dict[str, Array] = {}
        self.inputs: dict[str, Value] = {}

    @property
    def runs_in_steps(self) -> bool:
        return True

    def find(self, name: str) -> Imported:
        if not self.has(name):
            self.define(name, self._constant(name) if self._file.is_constant(name) else self._given(name))
        return super().find(name)

    def _constant(self, name: str) -> Value:
        owner = self._file.owner(name)
        scope = self._constants.setdefault(owner, Scope(self.builder))
        names = self.builder.names
        value = owner.emit_constant(name, scope)
        self.builder.names = names
        return value

    def _given(self, name: str) -> Value:
        given = self._give(name)
        assert given is not None, f"{name} is no tensor"
        if given.is_fixed:
            assert given.value is not None
            self.fixed[name] = given.value
            return self.builder.emit(Constant(Tensor(given.value, given.element)))
        value = self.builder.graph.add_input(name, TensorType(given.element, given.shape), given.dimensions)
        if given.value is not None:
            value.known, value.dynamic = given.value, True
        self.inputs[name] = value
        return value


class _PartImport:
    """One attempt at a part."""

    def __init__(self, graph: FileGraph, give: Callable[[str], Given | None], wishes: Wishes) -> None:
        self._file = graph
        self._give = give
        self._wishes = wishes
        self._scope = _PartScope(graph, give, wishes)
        self._done: list[int] = []
        self._waiting: list[int] = []
        self._later: set[str] = set()
        """Names that no node of this part can read."""
        self._failure: GlowstoneError | None = None

    def run(self, remaining: Sequence[int], only: frozenset[int] | None) -> Part:
        budget().begin_nodes()
        for index in remaining:
            is_left_out = only is not None and index not in only
            if is_left_out or self._must_wait(index) or not self._import(index):
                self._waiting.append(index)
                self._later.update(self._file.writes(index))
        return self._part(tuple(remaining))

    def _must_wait(self, index: int) -> bool:
        names = self._file.reads[index]
        if index in self._wishes.on_host or any(name in self._later for name in names):
            return True
        if not self._file.is_imported(index):
            self._wishes.on_host.add(index)
            return True
        for name in names:
            if self._file.is_text(name) or not (self._is_here(name) or self._give(name) is not None):
                self._check_host_takes(index, name)
                self._wishes.on_host.add(index)
                return True
        return False

    def _check_host_takes(self, index: int, name: str) -> None:
        """Raise UnsupportedError for an operand that is no tensor of numbers where the operator takes no other."""
        if not self._file.runs_on_host(index):
            node = self._file.nodes[index]
            raise UnsupportedError(
                f"operand {name!r} is no tensor of numbers",
                node=node_name(node, index),
                operator=node.op_type,
                expected="a tensor of numbers: the operator takes no texts, sequences or maps",
            )

    def _is_here(self, name: str) -> bool:
        return self._scope.has(name) or self._file.is_constant(name)

    def _import(self, index: int) -> bool:
        """Emit a node; False where it must wait."""
        try:
            import_node(self._file.model, self._scope, self._file.nodes[index], index)
        except UnknownValueError as error:
            self._failure = self._failure or error
            if not self._wish(index, error):
                self._move_to_host(index, error)
            return False
        except UnsupportedError as error:
            self._move_to_host(index, error)
            return False
        self._done.append(index)
        for name in self._file.writes(index):
            if isinstance(self._scope.find(name), Counted):
                self._later.add(name)
        return True

    def _move_to_host(self, index: int, error: GlowstoneError) -> None:
        if not self._file.moves_to_host(index):
            node = self._file.nodes[index]
            raise error.with_context(node=node_name(node, index), operator=node.op_type)
        self._wishes.on_host.add(index)

    def _wish(self, index: int, error: UnknownValueError) -> bool:
        """Note which operands of a node the host must know; False where that is not what the node lacks."""
        names = list(self._decisive(index, error))
        node = self._file.nodes[index]
        takes_branch = node.op_type == "If" and names == [node.input[0]]  # what is read depends on which
        wanted = self._wishes.fixed if error.is_fixed or takes_branch else self._wishes.known
        if not names or all(name in wanted and name in self._scope.inputs for name in names):
            return False
        wanted.update(names)
        if any(name in self._scope.inputs for name in names):
            raise _Again
        return True

    def _decisive(self, index: int, error: UnknownValueError) -> Iterable[str]:
        """The operands that a value follows from and that the host does not know."""
        operands: dict[Value, str] = {}
        for name in self._file.reads[index]:
            operand = self._scope.find(name) if self._is_here(name) else None
            if isinstance(operand, Value):
                operands[operand] = name
        stack = [error.value] if isinstance(error.value, Value) else []
        seen: set[Value] = set()
        while stack:
            current = stack.pop()
            if current in operands and _is_undecided(current, error.is_fixed):
                if current.type.size > KNOWN_ELEMENTS_LIMIT:
                    return
                yield operands[current]
            elif current not in seen and current.node is not None and _is_undecided(current, error.is_fixed):
                seen.add(current)
                stack.extend(current.node.present_operands())

    # The part

    def _part(self, remaining: tuple[int, ...]) -> Part:
        graph = self._scope.builder.graph
        read = {name for index in self._waiting for name in self._file.reads[index]} | set(self._file.output_names)
        results: dict[str, Result] = {}
        dimensions: dict[str, tuple[Dimension, ...]] = {}
        for index in self._done:
            for name in self._file.writes(index):
                if name in read:
                    value = self._scope.find(name)
                    results[name] = _add_result(graph, name, value)
                    dimensions.update({name: found} if (found := _dimensions(value)) is not None else {})
                    if isinstance(value, Value) and value.known is not None:
                        self._wishes.known.add(name)
        graph.drop_dead_uses()
        _drop_unused_inputs(graph)
        return Part(graph, frozenset(self._done), self._scope.fixed, results, dimensions, remaining, self._failure)


def _drop_unused_inputs(graph: Graph) -> None:
    """Forget inputs that only nodes which wait have read."""
    used = [number for number, value in enumerate(graph.inputs) if value.uses or graph.is_output(value)]
    graph.inputs[:] = [graph.inputs[number] for number in used]
    graph.dimensions[:] = [graph.dimensions[number] for number in used]


def _is_undecided(value: Value, is_fixed: bool) -> bool:
    """Whether the host does not know a value, or not for every call where it must be fixed."""
    return value.known is None or (is_fixed and value.dynamic)


def _add_result(graph: Graph, name: str, value: Imported) -> Result:
    if isinstance(value, ValueSequence):
        return SequenceResult(tuple(_add_result(graph, f"{name}.{n}", item) for n, item in enumerate(value.items)))
    if isinstance(value, Value):
        graph.add_output(name, value)
        return PlainResult(len(graph.outputs) - 1)
    first = len(graph.outputs)
    for suffix, part in (("buffer", value.buffer), ("count", value.count), ("shape", value.shape)):
        graph.add_output(f"{name}.{suffix}", part)
    return CountedResult(first, first + 1, first + 2, value.axis)


def _dimensions(value: Imported) -> tuple[Dimension, ...] | None:
    if isinstance(value, ValueSequence):
        return None
    if isinstance(value, Value):
        return ("",) * value.rank if value.dynamic else value.shape
    assert value.shape.known is not None
    extents = value.shape.known.tolist()
    return tuple("" if axis == value.axis or value.buffer.dynamic else int(n) for axis, n in enumerate(extents))


def deciding_inputs(model: ModelFile, inputs: Mapping[str, Array]) -> frozenset[str]:
    """The inputs whose values decide shapes.

    Raises:
        UnsupportedError: the model cannot be one graph even where these are known.
        GlowstoneError: a node is wrong or not supported.
    """
    graph, wishes = FileGraph(model, model.proto.graph), Wishes()
    nodes = graph.live_nodes()

    def give(name: str) -> Given | None:
        value = inputs.get(name)
        if value is None or value.dtype.kind in "OUS":
            return None
        is_fixed = name in wishes.fixed
        is_known = is_fixed or name in wishes.known
        element = ElementType.from_dtype(value.dtype)
        return Given(element, value.shape, value.shape, value if is_known else None, is_fixed)

    part = import_part(graph, nodes, give, wishes)
    if part.nodes != frozenset(nodes):
        raise UnsupportedError(
            "the model runs in several parts, for shapes depend on data", expected="a model of one graph"
        ) from part.failure
    return frozenset(wishes.known | wishes.fixed)
