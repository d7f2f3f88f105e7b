"""Control flow: operators with bodies, which are graphs of their own.

A body sees nothing but its inputs: what it uses from around it is passed as *captured* operands. Bodies are built anew
for the types of the operands (`specialized`), and what is known of a captured operand is known inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from glowstone.errors import GlowstoneError, ModelError, ShapeError, UnknownValueError, UnsupportedError
from glowstone.graph import ErrorSample, Graph, Operand, Operator, Sample, Value, evaluate_graph, operator
from glowstone.graph.builder import rebuild_body
from glowstone.graph.operator import Array
from glowstone.ops.control_samples import (
    doubling_body,
    growing_body,
    halving_body,
    negating_body,
    running_sum_body,
    step_body,
)
from glowstone.ops.element_sets import BOOLS, SHAPES
from glowstone.types import ElementType, TensorType

NUMBER = TensorType(ElementType.I64, ())
"""The type of a number of passes."""


@operator
class If(Operator):
    """The results of one of two bodies. Both take all captured operands and give the same types. ONNX If-25."""

    operands = (Operand("condition", BOOLS), Operand("captured", variadic=True))
    then_body: Graph
    else_body: Graph

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.then_body, self.else_body)

    def body(self, condition: bool) -> Graph:
        """The branch that is taken."""
        return self.then_body if condition else self.else_body

    def specialized(self, operands: Sequence[Value | None]) -> If:
        condition, *captured = _present(operands)
        try:
            return If(rebuild_body(self.then_body, captured), rebuild_body(self.else_body, captured))
        except GlowstoneError as error:
            raise untaken(condition) from error

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        condition, *captured = operands
        _check_single(condition, "condition")
        for body in self.bodies:
            _check_types("captured operands", captured, body.inputs)
        then_types, else_types = (tuple(value.type for value in body.outputs) for body in self.bodies)
        if then_types != else_types:
            raise untaken(condition)
        return then_types

    def known(self, *operands: Value | None) -> tuple[Array | None, ...] | None:
        condition = operands[0]
        if condition is None or condition.known is None:
            return None
        return tuple(value.known for value in self.body(bool(condition.known)).outputs)

    def reference(self, condition: Array, *captured: Array) -> tuple[Array, ...]:
        return _evaluate(self.body(bool(condition)), captured)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.array([[-1.5, 2.0, 0.25]], np.float32)
        step = np.array(0.5, np.float32)
        either = cls(doubling_body(x, step), negating_body(x, step))
        return [
            Sample(either, (np.array(True), x, step)),
            Sample(either, (np.array([False]), x, step)),
            Sample(cls(doubling_body(x[:, :0], step), negating_body(x[:, :0], step)), (np.array(True), x[:, :0], step)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, step = np.zeros((1, 3), np.float32), np.array(0.5, np.float32)
        either = cls(doubling_body(x, step), negating_body(x, step))
        different = cls(doubling_body(x, step), step_body(x))
        return [
            ErrorSample(either, (np.zeros(2, np.bool_), x, step), "no single element"),
            ErrorSample(different, (TensorType(ElementType.BOOL, ()), x, step), "depend on a condition"),
        ]


@operator
class Loop(Operator):
    """Repeats a body. ONNX Loop-25 and, in its core, Scan-25.

    Operands: the most passes there may be, a condition to begin at all (either may be left out), then `carried` values
    that go from pass to pass, `scanned` tensors of which pass i reads row i, and captured values. The body takes the
    number of the pass, carried values, rows and captured values; it gives the condition to go on, the carried values,
    and rows of further results. Results: the carried values in the end, the rows of all passes, stacked, and the number
    of passes. There are rows for as many passes as rows are scanned, else for the count; those behind the last pass
    are zero.
    """

    operands = (
        Operand("count", SHAPES, optional=True),
        Operand("condition", BOOLS, optional=True),
        Operand("values", variadic=True),
    )
    body: Graph
    carried: int = 0
    scanned: int = 0

    @property
    def bodies(self) -> tuple[Graph, ...]:
        return (self.body,)

    def split(self, operands: Sequence[Value | None]) -> tuple[list[Value], list[Value], list[Value]]:
        """Carried, scanned and captured operands."""
        values = _present(operands[2:])
        rest = self.carried + self.scanned
        return values[: self.carried], values[self.carried : rest], values[rest:]

    @property
    def goes_on(self) -> Value:
        """The body's condition to go on."""
        return self.body.outputs[0]

    @property
    def carried_outputs(self) -> list[Value]:
        return self.body.outputs[1 : 1 + self.carried]

    @property
    def rows(self) -> list[Value]:
        """What a pass adds to the stacked results."""
        return self.body.outputs[1 + self.carried :]

    def specialized(self, operands: Sequence[Value | None]) -> Loop:
        carried, scanned, captured = self.split(operands)
        if len(carried) < self.carried or len(scanned) < self.scanned:
            raise ModelError("a loop has too few operands", expected=self.carried + self.scanned)
        if not all(value.rank for value in scanned):
            raise ShapeError("a scanned operand has no axis", expected="rank 1 or more", found=0)
        dynamic = any(value.dynamic for value in _present(operands))
        varying = [NUMBER, *(value.type for value in carried), *(_row(value.type) for value in scanned)]
        arguments = [Value(type) for type in varying]
        for argument in arguments:
            argument.dynamic = dynamic
        return replace(self, body=rebuild_body(self.body, [*arguments, *captured]))

    def infer(self, *operands: Value | None) -> tuple[TensorType, ...]:
        carried, scanned, captured = self.split(operands)
        for name, value in zip(("count", "condition"), operands[:2], strict=False):
            if value is not None:
                _check_single(value, name)
        _check_types("captured operands", captured, self.body.inputs[1 + self.carried + self.scanned :])
        _check_single(self.goes_on, "condition to go on")
        if self.goes_on.element is not ElementType.BOOL:
            raise ModelError("a condition to go on is not of type bool", found=self.goes_on.element)
        for before, after in zip(carried, self.carried_outputs, strict=True):
            if before.type != after.type:
                raise UnsupportedError(
                    "a value changes its type from pass to pass of a loop", expected=before.type, found=after.type
                )
        extent = self._extent(operands, scanned) if self.rows or scanned else 0
        rows = (row.type.with_shape((extent, *row.shape)) for row in self.rows)
        return (*(value.type for value in carried), *rows, NUMBER)

    def _extent(self, operands: Sequence[Value | None], scanned: Sequence[Value]) -> int:
        """How many passes there are rows for."""
        extents = {value.shape[0] for value in scanned}
        if len(extents) > 1:
            raise ShapeError("scanned operands have different extents", expected="one extent", found=sorted(extents))
        if extents:
            return extents.pop()
        limit = self._limit(operands, scanned)
        if limit is None:
            deciding = self.goes_on if operands[0] is None else operands[0]
            raise UnknownValueError("the number of passes of a loop depends on input data", value=deciding)
        return limit

    @staticmethod
    def _limit(operands: Sequence[Value | None], scanned: Sequence[Value]) -> int | None:
        """The most passes, as far as it is known."""
        limits = [value.shape[0] for value in scanned]
        count = operands[0]
        if count is not None and count.known is not None:
            limits.append(max(int(count.known.reshape(())), 0))
        return min(limits, default=None)

    def known(self, *operands: Value | None) -> tuple[Array | None, ...] | None:
        """The number of passes, where no condition of the body decides it; all of a loop that does not begin."""
        count, condition = (*operands, None, None)[:2]
        carried, scanned, _ = self.split(operands)
        passes = self._limit(operands, scanned)
        if condition is not None and condition.known is not None and not condition.known.all():
            passes = 0
        is_counted = count is None or count.known is not None
        begins = condition is None or condition.known is not None
        always_goes_on = self.goes_on.known is not None and bool(self.goes_on.known.all())
        if passes is None or (passes and not (is_counted and begins and always_goes_on)):
            return None
        results: list[Array | None] = [None] * (self.carried + len(self.rows))
        if not passes:
            results[: self.carried] = [value.known for value in carried]
        return (*results, np.array(passes, np.int64))

    def reference(self, *operands: Array | None) -> tuple[Array, ...]:
        count, condition, *values = (*operands, None)[: max(len(operands), 2)]
        carried = list(values[: self.carried])
        scanned = [array for array in values[self.carried : self.carried + self.scanned] if array is not None]
        captured = values[self.carried + self.scanned :]
        limits = [] if count is None else [max(int(np.reshape(count, ())), 0)]
        extent = len(scanned[0]) if scanned else min(limits, default=0)
        limits += map(len, scanned)
        stacks = [np.zeros((extent, *row.shape), row.element.dtype) for row in self.rows]
        goes_on = condition is None or bool(condition)
        passes = 0
        while goes_on and all(passes < limit for limit in limits):
            rows = (array[passes] for array in scanned)
            test, *results = _evaluate(self.body, (np.array(passes), *carried, *rows, *captured))
            goes_on, carried = bool(test), list(results[: self.carried])
            for stack, row in zip(stacks, results[self.carried :], strict=True):
                stack[passes] = row
            passes += 1
        return (*carried, *stacks, np.array(passes, np.int64))  # type: ignore[arg-type]

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        x = np.array([[1.5, -2.0], [0.25, 4.0], [3.0, 1.0]], np.float32)
        start, limit = np.zeros(2, np.float32), np.array(4.0, np.float32)
        running = cls(running_sum_body(start, x[0]), carried=1, scanned=1)
        return [
            Sample(running, (None, None, start, x)),
            Sample(running, (np.array(2), np.array(True), start, x)),
            Sample(running, (None, np.array([False]), start, x)),
            Sample(running, (None, None, start, x[:0])),
            Sample(cls(halving_body(x, limit), carried=1), (np.array([50]), None, x * 20, limit)),
            Sample(cls(halving_body(x, limit), carried=1), (None, np.array(True), x * 20, limit)),
            Sample(cls(halving_body(x, limit), carried=1), (np.array(-3), None, x, limit)),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        x, limit = np.zeros((3, 2), np.float32), np.array(4.0, np.float32)
        running = cls(running_sum_body(x[0], x[0]), carried=1, scanned=1)
        collecting = cls(running_sum_body(x[0], x[0]), carried=1)
        number, start = TensorType(ElementType.I64, ()), TensorType(ElementType.F32, (2,))
        return [
            ErrorSample(cls(growing_body(x), carried=1), (number, None, x), "changes its type"),
            ErrorSample(collecting, (number, None, start, start), "depends on input data"),
            ErrorSample(running, (None, None, start, limit), "no axis"),
            ErrorSample(cls(halving_body(x, limit), carried=1), (np.zeros(2, np.int64), None, x, limit), "no single"),
        ]


def untaken(condition: Value) -> UnknownValueError:
    """The error where only one branch, or each in its own way, can have the shapes of the operands."""
    return UnknownValueError("the shapes of a branch depend on a condition that depends on input data", value=condition)


def _present(operands: Sequence[Value | None]) -> list[Value]:
    return [operand for operand in operands if operand is not None]


def _row(type: TensorType) -> TensorType:
    return type.with_shape(type.shape[1:])


def _check_single(value: Value, name: str) -> None:
    if value.type.size != 1:
        raise ShapeError(f"operand {name} is no single element", expected="one element", found=list(value.shape))


def _check_types(what: str, operands: Sequence[Value], inputs: Sequence[Value]) -> None:
    expected, found = [value.type for value in inputs], [value.type for value in operands]
    if expected != found:
        raise ModelError(f"{what} do not fit the inputs of a body", expected=expected, found=found)


def _evaluate(body: Graph, arrays: Sequence[Any]) -> tuple[Array, ...]:
    names = [value.name for value in body.inputs]
    results = evaluate_graph(body, dict(zip(names, arrays, strict=True)))
    return tuple(results[name] for name in body.output_names)
