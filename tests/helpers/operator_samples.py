"""The samples of every operator, and graphs made of samples side by side."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

import glowstone.ops  # noqa: F401  enters the operators in the registry
from glowstone.graph import OPERATORS, Builder, ErrorSample, Graph, Operand, Operator, Sample, Value
from glowstone.ops.constant import constant
from glowstone.types import ElementType, TensorType

OWN: dict[str, type[Operator]] = {
    name: kind for name, kind in OPERATORS.items() if kind.__module__.startswith("glowstone.ops.")
}
"""The operators that every backend knows, by name."""


@functools.cache
def samples_of(name: str) -> tuple[Sample, ...]:
    """The samples of an operator, made once."""
    return tuple(OWN[name].samples())


def rule_of(operator: Operator | type[Operator], index: int) -> Operand:
    """The declaration of an operand; the last one stands for all of a variadic operator."""
    return operator.operands[min(index, len(operator.operands) - 1)]


def side_by_side(samples: Sequence[Sample | ErrorSample]) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph with one node for each sample, and the arrays to feed. Operands that decide shapes are constants."""
    graph = Graph("samples")
    builder = Builder(graph)
    feeds: dict[str, np.ndarray] = {}
    for sample in samples:
        operands = [_operand(builder, sample.operator, *entry, feeds) for entry in enumerate(sample.operands)]
        for value in builder.emit_node(sample.operator, *operands).results:
            graph.add_output(f"y{len(graph.outputs)}", value)
    return graph, feeds


def _operand(
    builder: Builder,
    operator: Operator,
    index: int,
    given: np.ndarray | TensorType | None,
    feeds: dict[str, np.ndarray],
) -> Value | None:
    graph = builder.graph
    name = f"x{len(graph.inputs)}"
    if given is None:
        return None
    if isinstance(given, TensorType):
        return graph.add_input(name, given)
    array = np.asarray(given)
    if operator.operands and rule_of(operator, index).host:
        return constant(builder, array)
    feeds[name] = array
    return graph.add_input(name, TensorType(ElementType.from_dtype(array.dtype), array.shape))
