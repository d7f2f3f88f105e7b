"""Scan: a loop over the rows of tensors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowstone.errors import ModelError, ShapeError
from glowstone.graph import Builder, Graph, Value
from glowstone.importer.registry import BodyInput, OnnxNode, imports
from glowstone.importer.rules.loop import any_dynamic, emit_loop, input_names
from glowstone.importer.scope import Scope
from glowstone.ops import Loop, Slice, Transpose
from glowstone.ops.constant import constant
from glowstone.ops.control import NUMBER
from glowstone.types import normalize_axis

BACKWARD = 1
"""A direction of Scan; forward is 0."""


@imports("Scan", since=9)
def import_scan(node: OnnxNode) -> tuple[Value, ...]:
    count = node.integer("num_scan_inputs", 0)
    if not 0 < count <= len(node.operands):
        raise _misfit("num_scan_inputs", f"1 to {len(node.operands)}", count)
    operands = [node.operand(index) for index in range(len(node.operands))]
    states = operands[:-count]
    scanned = [
        _oriented(node, value, axis, direction, to_front=True)
        for value, axis, direction in zip(
            operands[-count:],
            _numbers(node, "scan_input_axes", count),
            _numbers(node, "scan_input_directions", count),
            strict=True,
        )
    ]
    scope = _scan_body(node, states, scanned, node.scope)
    loop = Loop(scope.builder.graph, len(states), count)
    results = emit_loop(node, loop, (None, None, *states, *scanned), scope)[:-1]
    stacked = results[len(states) :]
    oriented = [
        _oriented(node, value, axis, direction, to_front=False)
        for value, axis, direction in zip(
            stacked,
            _numbers(node, "scan_output_axes", len(stacked)),
            _numbers(node, "scan_output_directions", len(stacked)),
            strict=True,
        )
    ]
    return (*results[: len(states)], *oriented)


@imports("Scan", since=8)
def import_batched_scan(node: OnnxNode) -> tuple[Value, ...]:
    """Scan-8: all operands begin with an axis of batch; a loop over that, around one over the sequence."""
    lengths, *rest = node.operands
    operands = [node.operand(index) for index in range(1, len(node.operands))]
    count = node.integer("num_scan_inputs", 0)
    if not 0 < count <= len(rest):
        raise _misfit("num_scan_inputs", f"1 to {len(rest)}", count)
    directions = _numbers(node, "directions", count)
    state_count = len(rest) - count
    rows = operands if lengths is None else [*operands, lengths]
    if not all(value.rank for value in rows):
        raise ShapeError("an operand has no axis of batch")
    graph = Graph("batch")
    scope = Scope(Builder(graph, node.builder.names), node.scope)
    scope.add_input("number", NUMBER, False)
    inner_node = OnnxNode(scope, node.kind, node.name, (), node.attributes, node.opset)
    inner = [
        scope.add_input(f"row_{index}", value.type.with_shape(value.shape[1:]), value.dynamic)
        for index, value in enumerate(rows)
    ]
    states, scanned = inner[:state_count], inner[state_count : len(operands)]
    scanned = [
        _oriented(inner_node, value, 0, direction, to_front=True)
        for value, direction in zip(scanned, directions, strict=True)
    ]
    body = _scan_body(node, states, scanned, scope)
    loop = Loop(body.builder.graph, state_count, count)
    length = None if lengths is None else inner[-1]
    graph.add_output("goes_on", constant(scope.builder, np.array(True)))
    for index, value in enumerate(emit_loop(inner_node, loop, (length, None, *states, *scanned), body)[:-1]):
        graph.add_output(f"result_{index}", value)
    return tuple(emit_loop(node, Loop(graph, 0, len(rows)), (None, None, *rows), scope)[:-1])


def _scan_body(node: OnnxNode, states: Sequence[Value], scanned: Sequence[Value], scope: Scope) -> Scope:
    """The body of a Scan as that of a loop: with a number of the pass, and always going on."""
    body = node.body("body")
    names = input_names(body, len(states) + len(scanned))
    if not all(value.rank for value in scanned):
        raise ShapeError("a scanned operand has no axis")
    types = [value.type for value in states]
    types += (value.type.with_shape(value.shape[1:]) for value in scanned)
    dynamic = any_dynamic((*states, *scanned))
    inputs = [BodyInput(_unused_name(names), NUMBER, dynamic)]
    inputs += (BodyInput(name, type, dynamic) for name, type in zip(names, types, strict=True))

    def begin(inner: Scope) -> None:
        inner.builder.graph.add_output("goes_on", constant(inner.builder, np.array(True)))

    return body.build(inputs, begin, scope)


def _unused_name(names: Sequence[str]) -> str:
    return "number" + "_" * sum(name.startswith("number") for name in names)


def _numbers(node: OnnxNode, name: str, count: int) -> tuple[int, ...]:
    """An attribute of one number per tensor; 0 for each where it is left out."""
    numbers = node.integer_list(name) or (0,) * count
    if len(numbers) != count:
        raise _misfit(name, f"{count} numbers", numbers)
    return numbers


def _oriented(node: OnnxNode, value: Value, axis: int, direction: int, *, to_front: bool) -> Value:
    """A tensor with its scanned axis moved to the front, or from there; passes that run backward are reversed."""
    if direction not in (0, BACKWARD):
        raise ModelError("a direction of Scan is neither forward nor backward", expected="0 or 1", found=direction)
    rank = value.rank
    axis = normalize_axis(axis, rank)
    order = [axis, *(other for other in range(rank) if other != axis)]
    permutation = tuple(order if to_front else (order.index(place) for place in range(rank)))
    if axis:
        value = node.emit(Transpose(permutation), value)
    if direction == BACKWARD:
        place, last = 0 if to_front else axis, np.iinfo(np.int64).min
        numbers = ([-1], [last], [place], [-1])
        value = node.emit(Slice(), value, *(constant(node.builder, np.array(entry)) for entry in numbers))
    return value


def _misfit(attribute: str, expected: str, found: object) -> ModelError:
    return ModelError(f"attribute {attribute} does not fit the operands", expected=expected, found=found)
