"""Random typed graphs over every operator and element type, made from the operators' own declarations.

A node's attributes and the shapes of its operands come from a sample of its operator; its element types are drawn from
what the operands are declared to take; its operands are values made before, brought to type and shape where need be.
`infer` decides what fits, so an operator that is added enters by itself.
"""

from __future__ import annotations

import math
import random as random_numbers
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from glowstone import ops
from glowstone.errors import GlowstoneError
from glowstone.graph import Builder, Graph, Node, Operator, Sample, Value
from glowstone.ops.constant import constant
from glowstone.scalar import convert
from glowstone.types import ElementType, TensorType
from helpers.operator_samples import OWN, rule_of, samples_of

Array = np.ndarray
LARGEST_SIZE = 3000
"""Elements of a value."""
MOST_TRIALS = 6
SPECIALS = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 30000.0)
FINITE = {
    *("w", "scale", "mean", "variance", "window"),
    *("ConvTranspose x", "DeformConv x", "DFT x", "STFT x"),
}
"""Operands that are made of finite numbers. Machine code multiplies padding, which is 0, by the weights of windows,
pads weights of transposed convolutions likewise, combines the parameters of normalizations in another order, and
multiplies by the sines of a transformation, some of them 0. What a deformable convolution weighs with 0 a rounding
decides."""
POSITIONS = {"regions"}
"""Operands of floats that say where to look: a sample's own are taken, as for integers that do."""
ATTRIBUTES_STATE_TYPES = {"Map", "Fused", "If", "Loop", "Scan", "BitCast"}
"""Operators whose expressions, bodies or result types are of the element types that the samples have."""
INDICES = frozenset({ElementType.I64, ElementType.I32})


@dataclass(frozen=True)
class Use:
    """An element type in an operand of an operator."""

    operator: str
    operand: str
    element: ElementType

    def __str__(self) -> str:
        return f"{self.operator}({self.operand}: {self.element})"


def declared_uses(names: Iterable[str] = OWN) -> list[Use]:
    """All that the operators say they take."""
    found = []
    for name in names:
        for rule in OWN[name].operands:
            found += [Use(name, rule.name, element) for element in sorted(rule.elements or ElementType, key=str)]
    return found


def is_stated_otherwise(use: Use) -> bool:
    """Whether the operator's attributes state other element types in all of its samples."""
    if use.operator not in ATTRIBUTES_STATE_TYPES:
        return False
    return not any(
        array is not None
        and rule_of(sample.operator, index).name == use.operand
        and ElementType.from_dtype(np.asarray(array).dtype) is use.element
        for sample in samples_of(use.operator)
        for index, array in enumerate(sample.operands)
    )


def uses_of(graph: Graph) -> Iterator[Use]:
    """What the nodes of a graph use."""
    for node in graph.nodes:
        for index, value in enumerate(node.operands):
            if value is not None:
                yield Use(node.operator.name, rule_of(node.operator, index).name, value.element)


def random_numbers_like(
    random: random_numbers.Random, element: ElementType, shape: tuple[int, ...], specials: bool
) -> Array:
    """Floats around 0, small integers and a few limits; NaN and infinities where `specials`."""
    if element.is_narrow:
        return convert(random_numbers_like(random, element.wide, shape, specials), element)
    generator = np.random.default_rng(random.randint(0, 9999))
    count = math.prod(shape)
    if element is ElementType.BOOL:
        return generator.integers(0, 2, shape) == 1
    if element.is_float:
        values = np.asarray(generator.normal(0, 1.5, count))
        picked: Sequence[float] = SPECIALS
    else:
        limits = np.iinfo(element.dtype)
        values = generator.integers(max(limits.min, -9), 10, count).astype(element.dtype)
        picked = (int(limits.min), int(limits.max), 0, 1)
    if specials and count:
        places = generator.integers(0, count, min(count, 1 + count // 8))
        chosen = generator.integers(0, len(picked), len(places))
        values[places] = np.array([picked[index] for index in chosen]).astype(values.dtype)
    return values.reshape(shape).astype(element.dtype)


def _retyped(array: Array, element: ElementType) -> Array:
    """The array in another element type, by way of wide ones: NumPy has no conversions between narrow types."""
    wide = array.astype(ElementType.from_dtype(array.dtype).wide.dtype)
    with np.errstate(all="ignore"):
        return wide.astype(element.wide.dtype).astype(element.dtype)


class GraphWriter:
    """Writes a graph node by node. `feeds` are arrays for its inputs."""

    def __init__(self, random: random_numbers.Random, names: Sequence[str] = tuple(OWN)) -> None:
        self.random = random
        self.names = list(names)
        self.graph = Graph("random")
        self.builder = Builder(self.graph)
        self.values: list[Value] = []
        self.feeds: dict[str, Array] = {}
        self.symbolic = self._chance(30)
        self.special = self._chance(50)

    def node(self, wanted: Use | None = None) -> Node | None:
        """A node of a wanted or of any operator; None where no trial succeeds."""
        for _ in range(MOST_TRIALS):
            name = wanted.operator if wanted else self.random.choice(self.names)
            sample = self.random.choice(samples_of(name))
            for arrays in self._typed(sample, wanted):
                made = self._emit(sample.operator, arrays)
                if made is not None:
                    self.values += made.results
                    return made
        return None

    def finish(self) -> Graph:
        """The graph, with all that nothing reads as outputs and one more value."""
        computed = [value for value in self.values if value.node is not None] or self.values
        self.graph.outputs = list(computed)
        self.graph.drop_dead_uses()
        ends = [value for value in computed if not value.uses]
        self.graph.outputs = []
        for index, value in enumerate(dict.fromkeys([*ends[-6:], self.random.choice(computed)])):
            self.graph.add_output(f"y{index}", value)
        self.graph.drop_dead_uses()
        self._drop_dead_inputs()
        return self.graph

    def _drop_dead_inputs(self) -> None:
        graph = self.graph
        kept = [
            (value, dimensions)
            for value, dimensions in zip(graph.inputs, graph.dimensions, strict=True)
            if value.uses or value in graph.outputs
        ]
        graph.inputs = [value for value, _ in kept]
        graph.dimensions = [dimensions for _, dimensions in kept]
        self.feeds = {value.name: self.feeds[value.name] for value in graph.inputs}

    def _typed(self, sample: Sample, wanted: Use | None) -> Iterator[list[Array | None]]:
        """The sample's operands in other element types: a wanted one, or any that the declaration has."""
        arrays = [None if array is None else np.asarray(array) for array in sample.operands]
        places = [index for index, array in enumerate(arrays) if array is not None]
        if wanted is not None:
            places = [index for index in places if rule_of(sample.operator, index).name == wanted.operand]
        if not places:
            if wanted is None:
                yield arrays
            return
        place = self.random.choice(places)
        element = wanted.element if wanted else self._element(sample, place)
        old = arrays[place].dtype
        for linked in (True, False):
            yield [
                _retyped(array, element)
                if array is not None
                and (index == place or (linked and array.dtype == old and self._takes(sample, index, element)))
                else array
                for index, array in enumerate(arrays)
            ]

    def _element(self, sample: Sample, place: int) -> ElementType:
        rule = rule_of(sample.operator, place)
        if self._chance(40):
            return ElementType.from_dtype(np.asarray(sample.operands[place]).dtype)
        return self.random.choice(sorted(rule.elements or ElementType, key=str))

    def _takes(self, sample: Sample, index: int, element: ElementType) -> bool:
        rule = rule_of(sample.operator, index)
        return rule.elements is None or element in rule.elements

    def _emit(self, operator: Operator, arrays: list[Array | None]) -> Node | None:
        """The operator on values, or None where they do not fit it."""
        for loose in (True, False):
            try:
                operands = [
                    None if array is None else self._operand(operator, index, array, loose)
                    for index, array in enumerate(arrays)
                ]
                node = self.builder.emit_node(operator, *operands)
            except GlowstoneError:
                continue
            if all(value.type.size <= LARGEST_SIZE for value in node.results):
                return node
        return None

    def _operand(self, operator: Operator, index: int, array: Array, loose: bool) -> Value:
        """A value for an operand: made before where one fits, else with the sample's type and shape.

        `loose`: another shape than the sample's may do.
        """
        rule = rule_of(operator, index)
        element = ElementType.from_dtype(array.dtype)
        if rule.host:
            return constant(self.builder, array)
        if self._is_position(operator, index):
            return self._fresh(array)
        if FINITE & {rule.name, f"{operator.name} {rule.name}"}:
            return self._fresh(random_numbers_like(self.random, element, array.shape, False))
        fitting = [value for value in self.values if value.element is element]
        same = [value for value in fitting if value.shape == array.shape]
        if same and self._chance(70):
            return self.random.choice(same)
        if loose and fitting and (index == 0 or isinstance(operator, ops.Elementwise)):
            return self.random.choice(fitting)
        usable = [value for value in self.values if value.type.size]
        if usable and self._chance(30):
            return self._adapted(self.random.choice(usable[-6:]), element, array.shape)
        return self._fresh(random_numbers_like(self.random, element, array.shape, self._is_special()))

    def _is_position(self, operator: Operator, index: int) -> bool:
        """Whether the operand holds positions, counts or classes, of which not every number is allowed."""
        rule = rule_of(operator, index)
        of_integers = rule.elements is not None and rule.elements <= INDICES
        return rule.name in POSITIONS or (of_integers and not isinstance(operator, ops.Elementwise))

    def _chance(self, percent: int) -> bool:
        return self.random.randint(0, 99) < percent

    def _is_special(self) -> bool:
        return self.special and self._chance(40)

    def _fresh(self, array: Array) -> Value:
        """An input, or now and then a constant."""
        if self._chance(20):
            value = constant(self.builder, array)
        else:
            name = f"x{len(self.graph.inputs)}"
            dimensions = tuple(
                f"{name}_{axis}" if self.symbolic and self._chance(50) else extent
                for axis, extent in enumerate(array.shape)
            )
            type = TensorType(ElementType.from_dtype(array.dtype), array.shape)
            value = self.graph.add_input(name, type, dimensions)
            self.feeds[name] = array
        self.values.append(value)
        return value

    def _adapted(self, value: Value, element: ElementType, shape: tuple[int, ...]) -> Value:
        """The value's elements in another type and shape, cut or repeated."""
        emit, builder = self.builder.emit, self.builder
        if value.element is not element:
            value = emit(ops.Cast(element), value)
        if value.shape == shape:
            return value
        size = math.prod(shape)
        if value.type.size != size:
            repeats = -(-size // value.type.size)
            row = emit(ops.Reshape(), value, constant(builder, np.array([1, -1], np.int64)))
            if repeats > 1:
                row = emit(ops.Expand(), row, constant(builder, np.array([repeats, value.type.size], np.int64)))
            flat = emit(ops.Reshape(), row, constant(builder, np.array([-1], np.int64)))
            limits = (constant(builder, np.array([limit], np.int64)) for limit in (0, size, 0))
            value = emit(ops.Slice(), flat, *limits)
        return emit(ops.Reshape(True), value, constant(builder, np.array(shape, np.int64)))


def random_graph(
    random: random_numbers.Random, wanted: Sequence[Use] = (), names: Sequence[str] = tuple(OWN)
) -> tuple[Graph, dict[str, Array]]:
    """A graph of a few nodes, some for what is wanted, and arrays for its inputs."""
    writer = GraphWriter(random, names)
    for _ in range(random.randint(1, 5)):
        writer.node(random.choice(wanted) if wanted and random.randint(0, 99) < 70 else None)
    if not writer.values:
        writer.node(Use("Identity", "x", ElementType.F32))
    return writer.finish(), writer.feeds
