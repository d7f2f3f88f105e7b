"""Joins data-parallel instructions, so that what passes between them stays in registers.

A producer is joined into its consumer, at the consumer's place, when the consumer alone reads the result and reads all
of it once. Shapes may differ by what views express (reshape, transpose of contiguous inner axes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from glowstone.lir import BufferKind, Copy, Elementwise, Instruction, Operation, Program, View
from glowstone.lir.overlap import is_injective, overlaps, rebase, same_elements
from glowstone.lir.strides import has_vector_stride
from glowstone.lir_passes.access_index import AccessIndex
from glowstone.scalar import Expression, Input, inputs_of, substitute, tree_size

MAX_OPERANDS = 8
"""Of a joined instruction: more pointers than this do not stay in registers."""

MAX_NODES = 96
"""Of all expressions of a joined instruction, shared parts counted each time."""

IDENTITY_INPUT = 0


@dataclass(frozen=True)
class _Body:
    """A data-parallel instruction taken apart: outputs with their expressions, and inputs."""

    outputs: tuple[View, ...]
    expressions: tuple[Expression, ...]
    inputs: tuple[View, ...]


def stack_elementwise(program: Program) -> bool:
    """Join data-parallel instructions with their only consumers; returns whether any were."""
    index = AccessIndex(program)
    for consumer in index.instructions():
        while _join_one(index, consumer):
            pass
    return index.commit()


def _join_one(index: AccessIndex, consumer: Instruction) -> bool:
    """Join the first producer that can be into the consumer."""
    if not consumer.operation.data_parallel:
        return False
    for view in consumer.inputs:
        producer = _only_producer(index, consumer, view)
        if producer is not None and _join(index, producer, consumer, view):
            return True
    return False


def _only_producer(index: AccessIndex, consumer: Instruction, view: View) -> Instruction | None:
    """The data-parallel instruction that alone writes the view's buffer, if only the consumer reads it, as one view."""
    if view.buffer.kind is not BufferKind.ACTIVATION:
        return None
    first, *others = index.uses(view.buffer)
    producer = first.instruction
    if producer is consumer or first.access.reads or not producer.operation.data_parallel:
        return None
    for use in others:
        if use.instruction is not consumer or use.access.writes or not same_elements(use.view, view):
            return None
    return producer


def _join(index: AccessIndex, producer: Instruction, consumer: Instruction, view: View) -> bool:
    upper = _moved(_body(producer), view)
    if upper is None or not _may_move(index, producer, consumer, upper, view):
        return False
    joined = _stacked(upper, _body(consumer), view)
    if len(joined.outputs) + len(joined.inputs) > MAX_OPERANDS or _nodes(joined.expressions) > MAX_NODES:
        return False
    operation = _operation(joined)
    if _clashes(joined, operation):
        return False
    names = tuple(dict.fromkeys(producer.names + consumer.names))
    index.remove(producer)
    index.replace(consumer, operation, joined.outputs + joined.inputs, names)
    return True


def _body(instruction: Instruction) -> _Body:
    operation = instruction.operation
    outputs, inputs = instruction.outputs, instruction.inputs
    if isinstance(operation, Elementwise):
        return _Body(outputs, operation.expressions, inputs)
    assert isinstance(operation, Copy), f"{operation.name} is data-parallel and has no expression"
    return _Body(outputs, (Input(inputs[0].element, IDENTITY_INPUT),), inputs)


def _operation(body: _Body) -> Operation:
    is_copy = len(body.inputs) == 1 and body.expressions == (Input(body.inputs[0].element, IDENTITY_INPUT),)
    return Copy() if is_copy else Elementwise(body.expressions, len(body.inputs))


def _moved(producer: _Body, view: View) -> _Body | None:
    """The producer over the positions of the view of its result, or None where that needs more than views.

    All of the result is read once, so every element is still computed exactly once.
    """
    result = next(output for output in producer.outputs if output.buffer is view.buffer)
    if same_elements(view, result):
        return producer
    if view.size != result.size or not is_injective(view):
        return None
    moved = []
    for operand in producer.outputs + producer.inputs:
        other = rebase(view, result, operand)
        if other is None or (has_vector_stride(operand) and not has_vector_stride(other)):
            return None
        moved.append(other)
    count = len(producer.outputs)
    return _Body(tuple(moved[:count]), producer.expressions, tuple(moved[count:]))


def _may_move(index: AccessIndex, producer: Instruction, consumer: Instruction, moved: _Body, view: View) -> bool:
    """Whether the producer's work can be done at the consumer's place: nothing between disturbs or needs it."""
    begin, end = index.position(producer) + 1, index.position(consumer)
    if any(index.is_written(source, begin, end) for source in moved.inputs):
        return False
    others = (output for output in moved.outputs if output.buffer is not view.buffer)
    return not any(index.is_used(output, begin, end + 1) for output in others)


def _stacked(upper: _Body, lower: _Body, view: View) -> _Body:
    """Both as one, the result between them as an expression; equal inputs become one."""
    place = next(number for number, output in enumerate(upper.outputs) if output.buffer is view.buffer)
    inputs: list[View] = []
    upper_inputs = [_numbered(inputs, source) for source in upper.inputs]
    upper_values = [substitute(expression, upper_inputs) for expression in upper.expressions]
    lower_inputs = [
        upper_values[place] if source.buffer is view.buffer else _numbered(inputs, source) for source in lower.inputs
    ]
    outputs = upper.outputs[:place] + upper.outputs[place + 1 :] + lower.outputs
    expressions = upper_values[:place] + upper_values[place + 1 :]
    expressions += (substitute(expression, lower_inputs) for expression in lower.expressions)
    return _without_unused(_Body(outputs, tuple(expressions), tuple(inputs)))


def _numbered(inputs: list[View], source: View) -> Input:
    """The input of this view, entered if it is new."""
    for number, known in enumerate(inputs):
        if same_elements(known, source):
            return Input(source.element, number)
    inputs.append(source)
    return Input(source.element, len(inputs) - 1)


def _without_unused(body: _Body) -> _Body:
    used = sorted({value.index for expression in body.expressions for value in inputs_of(expression)})
    values: list[Expression] = [Input(view.element, 0) for view in body.inputs]
    for number, index in enumerate(used):
        values[index] = Input(body.inputs[index].element, number)
    expressions = tuple(substitute(expression, values) for expression in body.expressions)
    return _Body(body.outputs, expressions, tuple(body.inputs[index] for index in used))


def _clashes(body: _Body, operation: Operation) -> bool:
    """Whether an output would overlap another operand in a way that the operation does not allow."""
    in_place = bool(operation.in_place)
    for number, output in enumerate(body.outputs):
        if any(overlaps(output, other) for other in body.outputs[number + 1 :]):
            return True
        for source in body.inputs:
            if overlaps(output, source) and not (in_place and same_elements(output, source)):
                return True
    return False


def _nodes(expressions: Sequence[Expression]) -> int:
    """Size of the expressions as trees."""
    return sum(map(tree_size, expressions))
