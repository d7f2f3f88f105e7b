"""If, Loop, Scan and SequenceMap whose bodies cannot be part of a compiled graph: the bodies run in steps of their own.

That is so where shapes change from pass to pass, or where values are sequences or optionals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ExecutionError, ModelError, UnsupportedError
from glowstone.host.registry import (
    Array,
    HostBody,
    HostNode,
    HostValue,
    Kind,
    array_at,
    axis_within,
    describe,
    indices_at,
    integer_at,
    operand_at,
    optional_at,
    runs_on_host,
    sequence_at,
)

ENDLESS = np.iinfo(np.int64).max
FIRST_SCAN_WITHOUT_BATCH = 9
BACKWARD = 1


def _single(value: HostValue, what: str) -> Any:
    """The number of a tensor of one element."""
    if not isinstance(value, np.ndarray) or value.size != 1:
        raise ExecutionError(f"{what} is not one element", expected="one element", found=describe(value))
    return value.reshape(()).item()


@runs_on_host("If")
def run_if(node: HostNode, operands: Sequence[HostValue]) -> tuple[HostValue, ...]:
    taken = _single(array_at(node, operands, 0), "the condition")
    return tuple(node.body("then_branch" if taken else "else_branch").run([]))


@runs_on_host("Loop")
def run_loop(node: HostNode, operands: Sequence[HostValue]) -> tuple[HostValue, ...]:
    body = node.body("body")
    condition = optional_at(operands, 1)
    count = ENDLESS if optional_at(operands, 0) is None else integer_at(node, operands, 0)
    goes_on = True if condition is None else bool(_single(condition, "the condition"))
    carried = [operand_at(node, operands, index) for index in range(2, len(operands))]
    _check_body(body, 2 + len(carried), 1 + len(carried))
    rows: list[list[HostValue]] = [[] for _ in body.output_shapes[1 + len(carried) :]]
    number = 0
    while goes_on and number < count:
        results = body.run([np.array(number, np.int64), np.array(True), *carried])
        goes_on = bool(_single(results[0], "the condition to go on"))
        carried = results[1 : 1 + len(carried)]
        for row, value in zip(rows, results[1 + len(carried) :], strict=True):
            row.append(value)
        number += 1
    declared = body.output_shapes[1 + len(carried) :]
    return (*carried, *(_stacked(row, shape) for row, shape in zip(rows, declared, strict=True)))


def _check_body(body: HostBody, inputs: int, least_outputs: int) -> None:
    if body.input_count != inputs:
        raise ModelError("a body has the wrong number of inputs", expected=inputs, found=body.input_count)
    if len(body.output_shapes) < least_outputs:
        found = len(body.output_shapes)
        raise ModelError("a body has too few outputs", expected=f"at least {least_outputs}", found=found)


def _stacked(rows: list[HostValue], declared: tuple[np.dtype[Any], tuple[int, ...]] | None, axis: int = 0) -> Array:
    """The rows of all passes; of no pass, as the body declares them.

    Raises:
        ModelError: a row is no tensor, or there is no such axis.
        ExecutionError: rows have different shapes.
    """
    if not rows:
        if declared is None:
            raise UnsupportedError("a loop has no pass, and its body declares no type for what it collects")
        dtype, shape = declared
        place = axis_within(axis, len(shape) + 1)
        return np.zeros((*shape[:place], 0, *shape[place:]), dtype)
    if not all(isinstance(row, np.ndarray) for row in rows):
        raise ModelError("what the passes of a loop collect is no tensor", expected="tensors", found=describe(rows[0]))
    place = axis_within(axis, rows[0].ndim + 1)
    try:
        return np.stack(rows, place)
    except ValueError as error:
        found = ", ".join(dict.fromkeys(map(describe, rows)))
        raise ExecutionError(
            "what the passes of a loop collect has different shapes", expected="one shape", found=found
        ) from error


@runs_on_host("Scan")
def run_scan(node: HostNode, operands: Sequence[HostValue]) -> tuple[HostValue, ...]:
    if node.opset < FIRST_SCAN_WITHOUT_BATCH:
        return _run_batched_scan(node, operands)
    count = _scanned_count(node, len(operands))
    arrays = [array_at(node, operands, index) for index in range(len(operands))]
    axes = _numbers(node, "scan_input_axes", count)
    directions = _numbers(node, "scan_input_directions", count)
    scanned = [
        _oriented(np.moveaxis(array, axis_within(axis, array.ndim), 0), direction)
        for array, axis, direction in zip(arrays[-count:], axes, directions, strict=True)
    ]
    return _scan(node, arrays[:-count], scanned)


def _scanned_count(node: HostNode, operands: int) -> int:
    count = node.attribute("num_scan_inputs", Kind.INTEGER, 0)
    if not 0 < count <= operands:
        raise ModelError("attribute num_scan_inputs does not fit", expected=f"1 to {operands}", found=count)
    return int(count)


def _scan(node: HostNode, states: list[HostValue], scanned: Sequence[Array]) -> tuple[HostValue, ...]:
    body = node.body("body")
    _check_body(body, len(states) + len(scanned), len(states))
    lengths = {array.shape[0] for array in scanned}
    if len(lengths) != 1:
        raise ExecutionError("scanned operands differ in extent", expected="one extent", found=sorted(lengths))
    declared = body.output_shapes[len(states) :]
    rows: list[list[HostValue]] = [[] for _ in declared]
    for number in range(lengths.pop()):
        results = body.run([*states, *(np.ascontiguousarray(array[number]) for array in scanned)])
        states = results[: len(states)]
        for row, value in zip(rows, results[len(states) :], strict=True):
            row.append(value)
    axes = _numbers(node, "scan_output_axes", len(rows))
    directions = _numbers(node, "scan_output_directions", len(rows))
    stacked = []
    for row, axis, direction, shape in zip(rows, axes, directions, declared, strict=True):
        stacked.append(_stacked(row[::-1] if direction == BACKWARD else row, shape, axis))
    return (*states, *stacked)


def _run_batched_scan(node: HostNode, operands: Sequence[HostValue]) -> tuple[HostValue, ...]:
    """Scan-8: all operands begin with an axis of batch, and sequences may be of different lengths."""
    lengths = None if optional_at(operands, 0) is None else indices_at(node, operands, 0).reshape(-1)
    arrays = [array_at(node, operands, index) for index in range(1, len(operands))]
    count = _scanned_count(node, len(arrays))
    directions = _numbers(node, "directions", count)
    batches = {array.shape[:1] for array in arrays} | ({lengths.shape} if lengths is not None else set())
    if len(batches) != 1 or min(array.ndim for array in arrays[-count:]) < 2:
        raise ExecutionError(
            "operands of a scan do not fit each other",
            expected="one batch, and sequences of two axes or more",
            found=", ".join(map(describe, arrays)),
        )
    found = []
    for image in range(arrays[0].shape[0]):
        length = None if lengths is None else int(lengths[image])
        scanned = [
            _oriented(array[image][:length], direction)
            for array, direction in zip(arrays[-count:], directions, strict=True)
        ]
        found.append(_scan(node, [np.ascontiguousarray(array[image]) for array in arrays[:-count]], scanned))
    return tuple(_stacked(list(results), None) for results in zip(*found, strict=True))


def _oriented(array: Array, direction: int) -> Array:
    return array[::-1] if direction == BACKWARD else array


def _numbers(node: HostNode, name: str, count: int) -> tuple[int, ...]:
    """An attribute of one number per tensor; 0 for each where it is left out."""
    numbers = node.attribute(name, Kind.INTEGERS) or (0,) * count
    if len(numbers) != count:
        raise ModelError(f"attribute {name} does not fit", expected=f"{count} numbers", found=len(numbers))
    return tuple(numbers)


@runs_on_host("SequenceMap")
def run_sequence_map(node: HostNode, operands: Sequence[HostValue]) -> tuple[HostValue, ...]:
    """The body for every item of the first sequence, with the items of the others, or the whole of other tensors."""
    body = node.body("body")
    _check_body(body, len(operands), 0)
    length = len(sequence_at(node, operands, 0))
    values = [operand_at(node, operands, index) for index in range(len(operands))]
    for value in values:
        if isinstance(value, list) and len(value) != length:
            raise ExecutionError("sequences differ in length", expected=length, found=len(value))
    found = [body.run([value[n] if isinstance(value, list) else value for value in values]) for n in range(length)]
    return tuple([results[index] for results in found] for index in range(len(body.output_shapes)))
