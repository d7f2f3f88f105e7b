"""Loop: an operator with a body; or its passes one after another, where they differ in more than data.

A loop whose number of passes is known is unrolled where its body depends on the number of the pass (a slice of it, say)
or where what it carries grows from pass to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from glowstone.errors import LimitError, ModelError, ShapeError, UnknownValueError, UnsupportedError
from glowstone.graph import Value
from glowstone.importer.imported import Counted, counted
from glowstone.importer.registry import BodyInput, OnnxBody, OnnxNode, imports
from glowstone.importer.scope import Scope
from glowstone.ops import Concat, Equal, Loop, Reshape, Shape, Unsqueeze
from glowstone.ops.constant import constant, scalar
from glowstone.ops.control import NUMBER
from glowstone.ops.operand_checks import known_integer
from glowstone.types import ElementType

MOST_UNROLLED = 1024
"""Passes of an unrolled loop."""


@imports("Loop")
def import_loop(node: OnnxNode) -> tuple[Value | Counted, ...]:
    loop = _OnnxLoop(node)
    try:
        return loop.as_operator()
    except (UnknownValueError, UnsupportedError) as error:
        message = f"the types in a loop differ from pass to pass: {error.message}"
        if loop.deciding is not None:
            raise UnknownValueError(message, value=loop.deciding) from error
        if node.scope.runs_in_steps and loop.is_dynamic:
            raise UnsupportedError(message) from error  # one pass after another, on the host
        return loop.unrolled()


class _OnnxLoop:
    """A Loop node taken apart."""

    def __init__(self, node: OnnxNode) -> None:
        self._node = node
        self._count, self._condition, *initial = (*node.operands, None, None)[: max(len(node.operands), 2)]
        self._carried = [value for value in initial if value is not None]
        self._body = node.body("body")
        self._number, self._goes_on, *self._names = input_names(self._body, 2 + len(self._carried))

    def as_operator(self) -> tuple[Value | Counted, ...]:
        """One node with a body; of its stacked rows those count of which there were passes.

        Raises:
            UnknownValueError, UnsupportedError: the types inside differ from pass to pass, or depend on data.
        """
        carried = self._carried
        dynamic = any_dynamic(self._node.operands)
        types = (NUMBER, *(value.type for value in carried))
        names = (self._number, *self._names)
        inputs = [BodyInput(name, type, dynamic) for name, type in zip(names, types, strict=True)]
        scope = self._body.build(inputs, self._begin)
        loop = Loop(scope.builder.graph, len(carried))
        *results, passes = emit_loop(self._node, loop, (self._count, self._condition, *carried), scope)
        stacked = results[len(carried) :]
        if passes.known is not None:
            return tuple(results)
        return (*results[: len(carried)], *(self._cut(rows, passes) for rows in stacked))

    def _begin(self, scope: Scope) -> None:
        """Give the body's own names for the number of the pass and the condition what they stand for."""
        number_rank, condition_rank = self._body.input_ranks[:2]
        if number_rank:  # declared as one element, not as a scalar
            one = constant(scope.builder, np.array([1]))
            scope.define(self._number, scope.builder.emit(Reshape(), scope.value(self._number), one))
        truth = np.ones((1,) * (condition_rank or 0), np.bool_)
        scope.define(self._goes_on, constant(scope.builder, truth))  # a pass begins only where it is true

    def _cut(self, rows: Value, passes: Value) -> Value | Counted:
        """Rows of the passes that there were: how many is known only when they are done."""
        node = self._node
        count = node.emit(Reshape(), passes, constant(node.builder, np.array([1])))
        buffer = node.emit(Reshape(), rows, constant(node.builder, np.array([-1])))
        return counted(node.builder, buffer, count, node.emit(Shape(), rows), 0)

    @property
    def is_dynamic(self) -> bool:
        """Whether the number of passes follows from a symbolic dimension, or is known for one call only."""
        return any(value is not None and value.dynamic for value in (self._count, self._condition))

    @property
    def deciding(self) -> Value | None:
        """What has to be known for the loop to be unrolled, and is not: the count of passes or the condition."""
        if self._count is not None and self._count.known is None:
            return self._count
        if self._condition is not None and self._condition.known is None:
            return self._condition
        return None

    def unrolled(self) -> tuple[Value, ...]:
        """The passes one after another.

        Raises:
            UnknownValueError: how many there are is not known.
            LimitError: there are very many.
        """
        count = MOST_UNROLLED + 1 if self._count is None else self._relied_on(self._count)
        states: list[Value] = self._carried
        rows: list[list[Value]] = []
        goes_on = self._condition
        while len(rows) < count and (goes_on is None or self._relied_on(goes_on)):
            if len(rows) == MOST_UNROLLED:
                raise LimitError("a loop has too many passes to unroll", expected=f"at most {MOST_UNROLLED}")
            goes_on, *outputs = self._body.inline(self._pass(len(rows), states))
            states = outputs[: len(states)]
            rows.append(outputs[len(states) :])
        if not rows:
            raise UnsupportedError("a loop without a pass, whose body cannot be built to say what its rows are")
        return (*states, *(self._stacked(stack) for stack in zip(*rows, strict=True)))

    def _relied_on(self, value: Value) -> int:
        """A known value, which the graph relies on from here on.

        Raises:
            UnknownValueError: it is not known.
        """
        if value.known is None:
            raise UnknownValueError("the number of passes of a loop depends on input data", value=value)
        number = known_integer(value, "that decides the number of passes")
        if value.dynamic:
            builder = self._node.builder
            same = builder.emit(Equal(), value, scalar(builder, value.known.reshape(()).item(), value.element))
            builder.graph.assume(same, True)
        return number

    def _pass(self, number: int, states: Sequence[Value]) -> Callable[[Scope], None]:
        """What defines the inputs of the body for one pass."""

        def define(scope: Scope) -> None:
            scope.define(self._number, scalar(scope.builder, number, ElementType.I64))
            for name, value in zip(self._names, states, strict=True):
                scope.define(name, value)
            self._begin(scope)

        return define

    def _stacked(self, rows: Sequence[Value]) -> Value:
        node = self._node
        if len({row.type for row in rows}) > 1:
            raise ShapeError("rows of a loop differ in type", expected=rows[0].type, found=rows[-1].type)
        return node.emit(Concat(0), *(node.emit(Unsqueeze((0,)), row) for row in rows))


def emit_loop(node: OnnxNode, loop: Loop, operands: Sequence[Value | None], scope: Scope) -> list[Value]:
    """The operator on its operands and what the body's scope captured."""
    return list(node.builder.emit_node(loop, *operands, *scope.captured).results)


def input_names(body: OnnxBody, count: int) -> list[str]:
    """Names of a body's inputs.

    Raises:
        ModelError: it has more or less than so many.
    """
    if len(body.input_names) != count:
        raise ModelError("a body has the wrong number of inputs", expected=count, found=len(body.input_names))
    return body.input_names


def any_dynamic(operands: Sequence[Value | None]) -> bool:
    """Whether a value follows from a symbolic dimension."""
    return any(value.dynamic for value in operands if value is not None)
