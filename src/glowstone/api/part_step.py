"""A compiled part of a graph as a step: made from what is there, and planned for every call's shapes and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from glowstone.api.engine import MOST_PLANS, Engine, Port, Signature, Values
from glowstone.api.environment import Environment, HostValue
from glowstone.api.maker import Maker
from glowstone.api.workshop import Step
from glowstone.errors import GlowstoneError, LimitError, ShapeError
from glowstone.graph import Graph
from glowstone.importer import Given, Part, import_part
from glowstone.support.budget import limited
from glowstone.types import Dimension, ElementType, Shape

if TYPE_CHECKING:
    from glowstone.api.steps import SteppedGraph
    from glowstone.runtime.executable import Executable

Array = np.ndarray[Any, np.dtype[Any]]

NOMINAL_EXTENT = 64
"""Of a dimension that data decide, where a part is compiled: the same whatever the first call was."""


class PartStep(Step):
    """A compiled part. Every call with other shapes or deciding values is another plan of the same template."""

    def __init__(self, graph: SteppedGraph, part: Part, engine: Engine) -> None:
        self.part = part
        self.nodes = part.nodes
        self._workshop = graph.workshop
        self._engine = engine
        self._inputs = [(name, element.dtype, dimensions) for name, element, dimensions in engine.signature.inputs]

    @staticmethod
    def made(graph: SteppedGraph, remaining: Sequence[int], environment: Environment) -> PartStep:
        """The nodes that can be compiled together now; compiled where there are any.

        At first data-dependent extents are nominal; where that does not fit the model, those of this call.
        """
        with limited(graph.workshop.settings.options):
            return PartStep._made(graph, remaining, environment)

    @staticmethod
    def _made(graph: SteppedGraph, remaining: Sequence[int], environment: Environment) -> PartStep:
        failure: GlowstoneError | None = None
        for is_nominal in (True, False):
            givers = _Giver(graph, environment, is_nominal)
            try:
                part = import_part(graph.file, remaining, givers.give, graph.wishes)
                engine = _engine(graph, part)
                step = PartStep(graph, part, engine)
                if part.nodes and part.graph.outputs:
                    step._executable(step._arrays(environment))
                graph.dimensions.update(part.dimensions)
                if part.nodes:
                    graph.workshop.add_engine(engine)
                return step
            except LimitError:
                raise
            except GlowstoneError as error:
                failure = error
        assert failure is not None
        raise failure

    def accepts(self, environment: Environment) -> bool:
        for name, dtype, dimensions in self._inputs:
            value = environment[name]
            if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != len(dimensions):
                return False
            if any(not isinstance(d, str) and d != extent for d, extent in zip(dimensions, value.shape, strict=True)):
                return False
        return all(_is_same(value, environment[name]) for name, value in self.part.fixed.items())

    def run(self, environment: Environment) -> None:
        outputs: list[Array] = []
        if self.part.graph.outputs:
            arrays = self._arrays(environment)
            executable = self._executable(arrays)
            outputs = [np.empty(argument.shape, argument.dtype) for argument in executable.outputs]
            workshop = self._workshop
            check_size(outputs, workshop.settings.memory_limit)
            executable.run(workshop.code, workshop.threads, workshop.arenas, [*arrays, *outputs])
        for name, result in self.part.results.items():
            environment[name] = result.value(outputs)

    def _arrays(self, environment: Environment) -> list[Array]:
        return [np.asarray(environment[name], order="C") for name, _, _ in self._inputs]

    def _executable(self, arrays: Sequence[Array]) -> Executable:
        values = tuple(arrays[number].tobytes() for number in self._engine.deciding)
        return self._engine.executable(tuple(array.shape for array in arrays), None, values)


class _Giver:
    """What a part may read from an environment."""

    def __init__(self, graph: SteppedGraph, environment: Environment, is_nominal: bool) -> None:
        self._graph = graph
        self._environment = environment
        self._is_nominal = is_nominal

    def give(self, name: str) -> Given | None:
        value = self._environment[name]
        if not isinstance(value, np.ndarray):
            return None
        try:
            element = ElementType.from_dtype(value.dtype)
        except KeyError:
            return None
        is_fixed = name in self._graph.wishes.fixed
        is_known = is_fixed or name in self._graph.wishes.known
        dimensions = self._dimensions(name, value.shape)
        shape = value.shape if is_known or not self._is_nominal else self._nominal(name, dimensions, value.shape)
        if is_known:
            dimensions = value.shape
        return Given(element, shape, dimensions, np.array(value) if is_known else None, is_fixed)

    def _dimensions(self, name: str, shape: Shape) -> tuple[Dimension, ...]:
        """The extents that every call has, as far as is known; symbols for all others."""
        known = self._graph.known_dimensions(name)
        if len(known) != len(shape):
            known = ("",) * len(shape)
        return tuple(
            extent if extent == found else f"{name}.{axis}"
            for axis, (extent, found) in enumerate(zip(known, shape, strict=True))
        )

    def _nominal(self, name: str, dimensions: tuple[Dimension, ...], shape: Shape) -> Shape:
        if self._graph.outer is None and name in self._graph.file.input_names:
            return self._graph.workshop.reference_shapes.get(name, shape)
        return tuple(NOMINAL_EXTENT if isinstance(extent, str) else extent for extent in dimensions)


def _engine(graph: SteppedGraph, part: Part) -> Engine:
    """Serves the part at any shape."""
    inputs: list[Port] = [
        (value.name, value.element, dimensions)
        for value, dimensions in zip(part.graph.inputs, part.graph.dimensions, strict=True)
    ]
    deciding = tuple(number for number, value in enumerate(part.graph.inputs) if value.known is not None)
    values: Values = tuple(np.asarray(part.graph.inputs[number].known).tobytes() for number in deciding)
    outputs: list[Port] = [
        (name, value.element, value.shape)
        for name, value in zip(part.graph.output_names, part.graph.outputs, strict=True)
    ]
    workshop = graph.workshop
    return Engine(
        Signature(tuple(inputs), tuple(outputs)),
        tuple(value.shape for value in part.graph.inputs),
        workshop.library,
        lambda engine: Maker(engine, partial(_import_again, graph, part), workshop.settings),
        deciding,
        values,
        MOST_PLANS,
    )


def _import_again(graph: SteppedGraph, part: Part, shapes: Mapping[str, Shape], known: Mapping[str, Array]) -> Graph:
    """The part at other shapes, with other values of inputs that decide them."""
    declared = dict(zip((value.name for value in part.graph.inputs), part.graph.dimensions, strict=True))
    elements = {value.name: value.element for value in part.graph.inputs}
    if all(
        value.shape == shapes[value.name] and (value.known is None or _is_same(value.known, known[value.name]))
        for value in part.graph.inputs
    ):
        return part.graph

    def give(name: str) -> Given | None:
        if name in part.fixed:
            value = part.fixed[name]
            return Given(ElementType.from_dtype(value.dtype), value.shape, value.shape, value, is_fixed=True)
        if name not in elements:
            raise ShapeError("a part of the model reads other values at these shapes", found=name)
        return Given(elements[name], shapes[name], declared[name], known.get(name))

    again = import_part(graph.file, part.remaining, give, graph.wishes, part.nodes)
    if again.nodes != part.nodes or again.results != part.results:
        raise again.failure or ShapeError("a part of the model is cut in another place at these shapes")
    return again.graph


def check_size(outputs: Sequence[Array], limit: int | None) -> None:
    """Raise LimitError where results of the largest possible size are larger than planned memory may be."""
    size = sum(array.nbytes for array in outputs)
    if limit is not None and size > limit:
        raise LimitError("results of a part need too much memory", expected=f"at most {limit} bytes", found=size)


def _is_same(known: Array, value: HostValue) -> bool:
    return (
        isinstance(value, np.ndarray)
        and (value.dtype, value.shape) == (known.dtype, known.shape)
        and value.tobytes() == known.tobytes()
    )
