"""Control flow: bodies between control instructions.

A body's instructions stand in the program itself, between borders that name every buffer living across them. What a
loop carries has one buffer from before the first pass to after the last; rows are read and written in place, through
windows that move along them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from glowstone.graph import Graph, Value
from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import (
    Access,
    Branch,
    Buffer,
    BufferKind,
    Copy,
    Elementwise,
    Fill,
    Instruction,
    Join,
    LoopBegin,
    LoopEnd,
    Otherwise,
    View,
)
from glowstone.lir.control_flow import crossing
from glowstone.ops import If, Loop
from glowstone.ops.control import NUMBER
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.types import ElementType, TensorType

UNLIMITED = np.iinfo(np.int64).max
_NUMBER = Input(ElementType.I64, 0)


@generates(If)
def generate_if(generator: Generator, application: Application) -> None:
    """Both branches write the same results."""
    operator, (condition, *captured) = application.operator, application.operands
    assert isinstance(operator, If)
    assert condition is not None
    arguments = [generator.view(value) for value in captured if value is not None]
    values = application.node.results
    if condition.known is not None:
        for value, view in zip(values, generator.body(operator.body(bool(condition.known)), arguments), strict=True):
            generator.bind(value, view)
        return
    test = generator.view(condition)
    results = [generator.result(value) for value in values]
    begin = _position(generator)
    _branch(generator, operator.then_body, arguments, results)
    middle = _position(generator)
    _branch(generator, operator.else_body, arguments, results)
    end = _position(generator)
    held = _held(generator, begin, results)
    views, accesses = tuple(view for view, _ in held), tuple(access for _, access in held)
    generator.insert(end, Join(accesses), *views)
    generator.insert(middle, Otherwise(accesses), *views)
    generator.insert(begin, Branch(accesses), test, *views)


def _branch(generator: Generator, body: Graph, arguments: Sequence[View], results: Sequence[View]) -> None:
    for result, view in zip(results, generator.body(body, arguments), strict=True):
        _copy(generator, result, view)


@generates(Loop)
def generate_loop(generator: Generator, application: Application) -> None:
    """Carried values are initialized, used and overwritten in place; zero where rows may stay unwritten."""
    operator = application.operator
    assert isinstance(operator, Loop)
    _LoopRule(generator, operator, application).generate()


class _LoopRule:
    """The generation of one loop."""

    def __init__(self, generator: Generator, operator: Loop, application: Application) -> None:
        self._generator = generator
        self._operator = operator
        self._count, self._condition = (*application.operands, None, None)[:2]
        self._carried, self._scanned, self._captured = operator.split(application.operands)
        *values, self._passes = application.node.results
        self._results, self._stacked = values[: operator.carried], values[operator.carried :]
        self._windows: list[tuple[View, View, Access]] = []
        """Window, the rows it moves along, and how those are used."""

    def generate(self) -> None:
        generator = self._generator
        if self._passes.known is not None and not self._passes.known:
            self._leave_out()
            return
        head = [self._limit()]
        if self._condition is not None and self._condition.known is None:
            head.append(generator.view(self._condition))
        number = self._first_number()
        states = [generator.result(value) for value in self._results]
        for state, value in zip(states, self._carried, strict=True):
            _copy(generator, state, generator.view(value))
        rows = [self._first_rows(value) for value in self._stacked]
        begin = _position(generator)
        goes_on = self._pass(number, states, rows)
        end = _position(generator)
        used = [*states, *rows, *([number] if number is not None else [])]
        held = _held(generator, begin, used, tuple(window.buffer for window, _, _ in self._windows))
        self._close(begin, end, head, goes_on, held)

    def _leave_out(self) -> None:
        """There is no pass at all."""
        for result, value in zip(self._results, self._carried, strict=True):
            self._generator.bind(result, self._generator.view(value))
        for value in self._stacked:
            self._first_rows(value)

    def _limit(self) -> View:
        """The most passes, as an element in memory."""
        generator, count = self._generator, self._count
        extent = self._scanned[0].shape[0] if self._scanned else None
        if count is not None and count.known is None:
            if extent is None:
                return generator.view(count)
            limit = generator.new(count.type)
            generator.emit(Elementwise((apply("min", _NUMBER, _integer(extent)),), 1), limit, generator.view(count))
            return limit
        limits = [entry for entry in (extent, None if count is None else _known_count(count)) if entry is not None]
        return generator.plan_constant(np.array(min(limits, default=UNLIMITED), np.int64))

    def _first_number(self) -> View | None:
        """The number of the pass, where anything asks for it."""
        generator, value = self._generator, self._operator.body.inputs[0]
        is_counted = self._passes.known is None
        if not (is_counted or value.uses or self._operator.body.is_output(value)):
            return None
        number = generator.result(self._passes) if is_counted else generator.new(NUMBER)
        generator.emit(Fill(0), number)
        return number

    def _first_rows(self, value: Value) -> View:
        """Where rows are stacked: zero from the start, unless every one of them will be written."""
        view, passes = self._generator.result(value), self._passes.known
        if view.size and (passes is None or int(passes.reshape(())) < view.shape[0]):
            self._generator.emit(Fill(0), view)
        return view

    def _pass(self, number: View | None, states: Sequence[View], rows: Sequence[View]) -> View | None:
        """Everything that a pass does; returns its condition to go on where that is not always true."""
        generator, operator = self._generator, self._operator
        scanned = [self._row(generator.view(value), Access.IN) for value in self._scanned]
        captured = [generator.view(value) for value in self._captured]
        shown = number if number is not None else generator.new(NUMBER)
        goes_on, *outputs = generator.body(operator.body, [shown, *states, *scanned, *captured])
        for stack, view in zip(rows, outputs[operator.carried :], strict=True):
            _copy(generator, self._row(stack, Access.INOUT), view)
        moving = {state.buffer for state in states} | ({number.buffer} if number is not None else set())
        known = operator.goes_on.known
        test = None if known is not None and known.all() else _kept(generator, goes_on, moving)
        after = [
            view if view == state else _kept(generator, view, moving)
            for state, view in zip(states, outputs[: operator.carried], strict=True)
        ]
        for state, view in zip(states, after, strict=True):
            _copy(generator, state, view)
        if number is not None:
            generator.emit(Elementwise((apply("add", _NUMBER, _integer(1)),), 1), number, number)
        return test

    def _row(self, rows: View, access: Access) -> View:
        """The row of the pass."""
        if not rows.size:
            return View(rows.buffer, rows.offset, rows.shape[1:], rows.strides[1:])
        window = self._generator.window(rows)
        self._windows.append((window, rows, access))
        return window

    def _close(
        self, begin: int, end: int, head: Sequence[View], goes_on: View | None, held: Sequence[tuple[View, Access]]
    ) -> None:
        """Put the borders around the pass."""
        generator, windows = self._generator, self._windows
        moves = [rows.strides[0] for _, rows, _ in windows]
        pairs = [view for window, rows, _ in windows for view in (window, rows)]
        views, accesses = tuple(view for view, _ in held), tuple(access for _, access in held)
        rows = tuple(rows for _, rows, _ in windows)
        row_accesses = tuple(access for _, _, access in windows)
        tests = () if goes_on is None else (goes_on,)
        generator.insert(end, LoopEnd(goes_on is not None, row_accesses + accesses), *tests, *rows, *views)
        operation = LoopBegin(len(head) > 1, row_accesses, accesses)
        generator.insert(begin, operation, *head, *pairs, *views, integers=moves)


def _known_count(count: Value) -> int:
    assert count.known is not None
    return int(count.known.reshape(()))


def _integer(number: int) -> Expression:
    return Literal(ElementType.I64, number)


def _position(generator: Generator) -> int:
    """Where the next instruction will stand."""
    return len(generator.program.body)


def _copy(generator: Generator, out: View, source: View) -> None:
    """Copy, unless there is nothing to copy or it is there already."""
    if out.size and out != source:
        generator.emit(Copy(), out, source)


def _kept(generator: Generator, view: View, moving: set[Buffer]) -> View:
    """The view, or a copy of it where its buffer is overwritten at the end of the pass."""
    if view.buffer not in moving:
        return view
    copy = generator.new(TensorType(view.element, view.shape))
    _copy(generator, copy, view)
    return copy


def _held(
    generator: Generator, begin: int, results: Iterable[View], windows: tuple[Buffer, ...] = ()
) -> list[tuple[View, Access]]:
    """Whole buffers that live across the borders of the region from a position to the end, with how it uses them:
    those of `results`, which are used behind it, but not its own `windows`.
    """
    body = generator.program.body
    before = [entry for entry in body[:begin] if isinstance(entry, Instruction)]
    inside = [entry for entry in body[begin:] if isinstance(entry, Instruction)]
    own = {*windows, *(view.buffer for entry in inside for view in _windows(entry))}
    used = {view.buffer for entry in inside for view in entry.operands if view.buffer.kind is BufferKind.WINDOW}
    behind = {view.buffer for view in results} | (used - own)
    return [(buffer.view(), access) for buffer, access in crossing(inside, before, behind).items()]


def _windows(instruction: Instruction) -> Sequence[View]:
    """The windows that begin with an instruction."""
    operation = instruction.operation
    if not isinstance(operation, LoopBegin):
        return ()
    return instruction.operands[operation.first_window :: 2][: len(operation.windows)]
