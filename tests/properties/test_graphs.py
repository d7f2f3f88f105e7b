"""Random typed graphs: they print and parse, every pass keeps their meaning, and templates hold for other shapes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers.graph_text import assert_same_results, random_array, run_checked
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glowstone import ops
from glowstone.errors import GlowstoneError
from glowstone.graph import (
    Builder,
    Graph,
    Operator,
    Value,
    evaluate_graph,
    named_tensors,
    parse_graph,
    print_graph,
    rebuild,
    verify_graph,
)
from glowstone.graph_passes import CANONICAL, LOWERED
from glowstone.lowering import decompose
from glowstone.ops.constant import constant
from glowstone.types import ElementType, TensorType

F32, I64, BOOL = ElementType.F32, ElementType.I64, ElementType.BOOL
EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LARGEST_SIZE = 2000
TOLERANCE = 1e-4
UNARY = (
    ops.Relu(),
    ops.Neg(),
    ops.Abs(),
    ops.Tanh(),
    ops.Sigmoid(),
    ops.LeakyRelu(),
    ops.Identity(),
    ops.HardSigmoid(),
)
BINARY = (ops.Add(), ops.Sub(), ops.Mul(), ops.Maximum(), ops.Minimum())
REDUCTIONS = (ops.ReduceSum, ops.ReduceMean, ops.ReduceMax)


class GraphMaker:
    """Draws a graph node by node; operands are values made before. All floats stay small."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.graph = Graph("random")
        self.builder = Builder(self.graph)
        self.values: list[Value] = []

    def draw(self, strategy: st.SearchStrategy[object]) -> object:
        return self.data.draw(strategy)

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def pick(self, rule: Callable[[Value], bool] = lambda value: value.element is F32) -> Value:
        return self.draw(st.sampled_from([value for value in self.values if rule(value)]))

    def inputs(self) -> None:
        for index in range(self.number(1, 2)):
            shape = tuple(self.number(1, 4) for _ in range(self.number(1, 3)))
            symbols = [self.draw(st.booleans()) for _ in shape]
            dimensions = tuple(
                f"s{index}_{axis}" if symbol else extent
                for axis, (extent, symbol) in enumerate(zip(shape, symbols, strict=True))
            )
            self.values.append(self.graph.add_input(f"x{index}", TensorType(F32, shape), dimensions))

    def array(self, *shape: int) -> np.ndarray:
        random = np.random.default_rng(self.number(0, 99))
        return random.uniform(-1, 1, shape).astype(np.float32)

    def constant_like(self, x: Value) -> Value:
        """A constant that broadcasts to x: along some axes of x from the last one forward."""
        rank = self.number(0, x.rank)
        extents = [self.draw(st.sampled_from([1, extent])) for extent in x.shape[x.rank - rank :]]
        return constant(self.builder, self.array(*extents))

    def node(self) -> None:
        makers = (self.unary, self.binary, self.transpose, self.reshape, self.reduce, self.matmul, self.normalize,
                  self.concat, self.slice, self.expand, self.squeeze, self.select, self.fold)  # fmt: skip
        before = len(self.values)
        try:
            self.values.append(self.draw(st.sampled_from(makers))())
        except GlowstoneError:
            return  # operands that do not fit; nothing was made
        if self.values[-1].type.size > LARGEST_SIZE:
            del self.values[before:]

    def unary(self) -> Value:
        return self.builder.emit(self.draw(st.sampled_from(UNARY)), self.pick())

    def binary(self) -> Value:
        x = self.pick()
        other = self.pick() if self.draw(st.booleans()) else self.constant_like(x)
        operands = [x, other] if self.draw(st.booleans()) else [other, x]
        return self.builder.emit(self.draw(st.sampled_from(BINARY)), *operands)

    def transpose(self) -> Value:
        x = self.pick()
        return self.builder.emit(ops.Transpose(tuple(self.draw(st.permutations(range(x.rank))))), x)

    def shape_of(self, x: Value) -> Value:
        """The extents of x, computed from x as exporters do, or as constants."""
        if self.draw(st.booleans()):
            return self.builder.emit(ops.Shape(), x)
        return constant(self.builder, np.array(x.shape, np.int64))

    def reshape(self) -> Value:
        x = self.pick()
        if self.draw(st.booleans()):
            like = self.pick(lambda value: value.type.size == x.type.size and value.element is F32)
            return self.builder.emit(ops.Reshape(), x, self.shape_of(like))
        extents = self.draw(st.sampled_from([[-1], [1, -1], [-1, 1], [0, -1], [-1, 2], [2, -1, 1]]))
        return self.builder.emit(ops.Reshape(), x, constant(self.builder, np.array(extents, np.int64)))

    def reduce(self) -> Value:
        x = self.pick(lambda value: value.element is F32 and value.rank > 0)
        axes = self.draw(st.sets(st.integers(0, x.rank - 1), min_size=1))
        kind = self.draw(st.sampled_from(REDUCTIONS))
        return self.builder.emit(kind(tuple(sorted(axes)), self.draw(st.booleans())), x)

    def matmul(self) -> Value:
        x = self.pick(lambda value: value.element is F32 and value.rank > 0)
        return self.builder.emit(ops.MatMul(), x, constant(self.builder, self.array(x.shape[-1], self.number(1, 3))))

    def normalize(self) -> Value:
        """A layer normalization in primitives, or a softmax."""
        emit = self.builder.emit
        x = self.pick(lambda value: value.element is F32 and value.rank > 0)
        if self.draw(st.booleans()):
            return emit(ops.Softmax(self.number(0, x.rank - 1)), x)
        mean = ops.ReduceMean((-1,), True)
        centred = emit(ops.Sub(), x, emit(mean, x))
        epsilon = constant(self.builder, np.full((1,) * self.number(0, 4), 0.1, np.float32))
        variance = emit(ops.Add(), emit(mean, emit(ops.Mul(), centred, centred)), epsilon)
        return emit(ops.Div(), centred, emit(ops.Sqrt(), variance))

    def concat(self) -> Value:
        x = self.pick(lambda value: value.element is F32 and value.rank > 0)
        return self.builder.emit(ops.Concat(self.number(-x.rank, x.rank - 1)), x, self.pick(), x)

    def slice(self) -> Value:
        x = self.pick(lambda value: value.element is F32 and value.rank > 0)
        axis = self.number(0, x.rank - 1)
        numbers = (self.number(-3, 3), self.number(-9, 9), axis, self.draw(st.sampled_from([1, 2, -1])))
        host = [constant(self.builder, np.array([number], np.int64)) for number in numbers]
        return self.builder.emit(ops.Slice(), x, *host)

    def expand(self) -> Value:
        return self.builder.emit(ops.Expand(), self.pick(), self.shape_of(self.pick()))

    def squeeze(self) -> Value:
        x = self.pick()
        axis = self.number(0, x.rank)
        kinds: tuple[Operator, ...] = (ops.Unsqueeze((axis,)), ops.Flatten(axis), ops.Squeeze((axis,)))
        return self.builder.emit(self.draw(st.sampled_from(kinds)), x)

    def select(self) -> Value:
        x, y = self.pick(), self.pick()
        condition = self.builder.emit(ops.Less(), x, y)
        return self.builder.emit(ops.Where(), condition, y, x)

    def fold(self) -> Value:
        """Something that does not depend on data: an extent as a float, or arithmetic on constants."""
        x = self.pick(lambda value: value.element is F32 and value.rank > 0)
        if self.draw(st.booleans()):
            return self.builder.emit(ops.Neg(), self.constant_like(x))
        index = constant(self.builder, np.array(self.number(0, x.rank - 1), np.int64))
        extent = self.builder.emit(ops.Gather(), self.shape_of(x), index)
        return self.builder.emit(ops.Cast(F32), extent)


def random_graph(data: st.DataObject) -> Graph:
    maker = GraphMaker(data)
    maker.inputs()
    for _ in range(maker.number(1, 12)):
        maker.node()
    chosen = data.draw(st.lists(st.sampled_from(maker.values), min_size=1, max_size=3))
    for index, value in enumerate([maker.values[-1], *chosen]):
        maker.graph.add_output(f"y{index}", value)
    maker.graph.drop_dead_uses()
    return maker.graph


def inputs_of(graph: Graph, shapes: dict[str, tuple[int, ...]] | None = None) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    return {
        value.name: random_array(value.type.with_shape((shapes or {}).get(value.name, value.shape)), random)
        for value in graph.inputs
    }


def lower(graph: Graph) -> bool:
    return decompose(graph, lambda node: False)


@EXAMPLES
@given(st.data())
def test_graphs_print_and_parse(data):
    graph = random_graph(data)
    verify_graph(graph)
    text = print_graph(graph)
    parsed = parse_graph(text, named_tensors(graph))
    assert print_graph(parsed) == text
    assert print_graph(rebuild(graph)) == text
    inputs = inputs_of(graph)
    found, expected = evaluate_graph(parsed, inputs), evaluate_graph(graph, inputs)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


PASSES = sorted({*CANONICAL, *LOWERED, lower}, key=lambda function: function.__name__)


@pytest.mark.parametrize("function", PASSES, ids=lambda function: function.__name__)
@EXAMPLES
@given(data=st.data())
def test_each_pass_keeps_the_meaning(function, data):
    graph = random_graph(data)
    inputs = inputs_of(graph)
    expected = evaluate_graph(graph, inputs)
    run_checked(graph, function)
    assert_same_results(evaluate_graph(graph, inputs), expected, TOLERANCE)
    assert not run_checked(graph, function)


@EXAMPLES
@given(st.data())
def test_templates_hold_for_other_shapes(data):
    source = random_graph(data)
    template = rebuild(source)
    run_checked(template, *CANONICAL, lower, *LOWERED)
    shapes = {
        value.name: tuple(
            data.draw(st.integers(0, 6)) if isinstance(dimension, str) else dimension for dimension in dimensions
        )
        for value, dimensions in zip(source.inputs, source.dimensions, strict=True)
    }
    try:
        other = rebuild(source, shapes)
    except GlowstoneError:
        return  # the model itself does not allow these shapes
    try:
        graph = rebuild(template, shapes)
    except GlowstoneError:
        return  # a guard: the whole pipeline runs again at these shapes
    inputs = inputs_of(source, shapes)
    assert_same_results(evaluate_graph(graph, inputs), evaluate_graph(other, inputs), TOLERANCE)
