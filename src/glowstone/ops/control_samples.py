"""Bodies of the samples of control flow: small graphs made for the types of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.graph import Builder, Graph, Tensor, Value
from glowstone.graph.operator import Array
from glowstone.ops.arithmetic import Add, Mul, Sub
from glowstone.ops.constant import Constant
from glowstone.ops.logic import Less
from glowstone.ops.reduction import ReduceMax
from glowstone.ops.shape import Concat
from glowstone.types import ElementType, TensorType


def doubling_body(x: Array, step: Any) -> Graph:
    """(x, step) to 2 x; the step is not used."""
    graph, builder, (value, _) = _begin(x=x, step=step)
    graph.add_output("y", builder.emit(Add(), value, value))
    return graph


def negating_body(x: Array, step: Any) -> Graph:
    """(x, step) to step - x."""
    graph, builder, (value, other) = _begin(x=x, step=step)
    graph.add_output("y", builder.emit(Sub(), other, value))
    return graph


def step_body(x: Array) -> Graph:
    """(x, step) to step alone: another type than that of x."""
    graph, _, (_, other) = _begin(x=x, step=np.float32(0))
    graph.add_output("y", other)
    return graph


def running_sum_body(start: Array, row: Array) -> Graph:
    """(number, sum, row) to (true, sum + row, sum + row)."""
    graph, builder, (_, total, value) = _begin(number=np.int64(0), total=start, row=row)
    after = builder.emit(Add(), total, value)
    graph.add_output("goes_on", _constant(builder, np.array(True)))
    graph.add_output("sum", after)
    graph.add_output("sums", after)
    return graph


def halving_body(x: Array, limit: Any) -> Graph:
    """(number, x, limit) to (the first element is above the limit, x / 2)."""
    graph, builder, (_, value, bound) = _begin(number=np.int64(0), x=x, limit=limit)
    half = builder.emit(Mul(), value, _constant(builder, np.float32(0.5)))
    total = half
    for axis in range(half.rank):
        total = builder.emit(ReduceMax((axis,), True), total)
    graph.add_output("goes_on", builder.emit(Less(), bound, total))
    graph.add_output("half", half)
    return graph


def growing_body(x: Array) -> Graph:
    """(number, x) to (true, x twice)."""
    graph, builder, (_, value) = _begin(number=np.int64(0), x=x)
    graph.add_output("goes_on", _constant(builder, np.array(True)))
    graph.add_output("y", builder.emit(Concat(0), value, value))
    return graph


def _begin(**inputs: Any) -> tuple[Graph, Builder, list[Value]]:
    graph = Graph("body")
    values = []
    for name, array in inputs.items():
        element = ElementType.from_dtype(np.asarray(array).dtype)
        values.append(graph.add_input(name, TensorType(element, np.shape(array))))
    return graph, Builder(graph), values


def _constant(builder: Builder, array: Any) -> Value:
    return builder.emit(Constant(Tensor(np.asarray(array))))
