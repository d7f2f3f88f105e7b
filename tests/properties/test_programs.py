"""Random low-level programs: every pass keeps the meaning, plans are sound, text reads back, poison changes nothing.

The generator computes what each program must give with plain NumPy as it goes, apart from the low-level representation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glowstone.backends.interpreter import Interpreter
from glowstone.lir import (
    Buffer,
    BufferKind,
    Copy,
    Elementwise,
    Fill,
    Gather,
    Instruction,
    MatMul,
    Operation,
    Program,
    Reduce,
    View,
)
from glowstone.lir.lifetimes import place_lifetimes
from glowstone.lir.parser import parse_program
from glowstone.lir.printer import print_program
from glowstone.lir.verifier import verify_program
from glowstone.lir_passes import (
    LIR_PASSES,
    eliminate_copies,
    eliminate_dead_stores,
    share_buffers,
    shorten_lifetimes,
    stack_elementwise,
)
from glowstone.memory import plan_memory
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.support.pass_manager import PassManager
from glowstone.types import ElementType

PASSES = [eliminate_copies, eliminate_dead_stores, share_buffers, shorten_lifetimes, stack_elementwise]
F32 = ElementType.F32
Array = np.ndarray[Any, np.dtype[Any]]
EXAMPLES = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@dataclass
class Sample:
    """A program under construction and what it must compute."""

    program: Program = field(default_factory=Program)
    inputs: dict[str, Array] = field(default_factory=dict)
    expected: dict[str, Array] = field(default_factory=dict)
    values: list[tuple[View, Array]] = field(default_factory=list)
    count: int = 0

    def buffer(self, kind: BufferKind, shape: tuple[int, ...], element: ElementType = F32) -> Buffer:
        self.count += 1
        return Buffer(f"b{self.count}", kind, element, shape)

    def emit(self, operation: Operation, *operands: View) -> None:
        self.program.body.append(Instruction(operation, operands, (), (f"n{len(self.program.body)}",)))

    def result(self, operation: Operation, array: Array, *operands: View) -> None:
        """Emit into a new buffer; `array` is what it must hold."""
        out = self.buffer(BufferKind.ACTIVATION, array.shape).view()
        self.emit(operation, out, *operands)
        self.values.append((out, array.astype(np.float32)))

    def add_input(self, shape: tuple[int, ...], seed: int) -> None:
        buffer = self.buffer(BufferKind.INPUT, shape)
        array = np.random.default_rng(seed).integers(-3, 4, shape).astype(np.float32)
        self.program.inputs.append(buffer)
        self.inputs[buffer.name] = array
        self.values.append((buffer.view(), array))

    def add_output(self, view: View, array: Array) -> None:
        buffer = self.buffer(BufferKind.OUTPUT, view.shape)
        self.program.outputs.append(buffer)
        self.emit(Copy(), buffer.view(), view)
        self.expected[buffer.name] = array


def identity_like(draw: st.DrawFn, view: View, array: Array) -> tuple[View, Array]:
    """The same value seen through a transpose, a slice, or another shape."""
    choice = draw(st.sampled_from(["same", "transpose", "slice", "reshape"]))
    if choice == "transpose" and view.rank:
        permutation = tuple(draw(st.permutations(range(view.rank))))
        return view.transpose(permutation), array.transpose(permutation)
    if choice == "slice" and view.size:
        starts = tuple(draw(st.integers(0, extent - 1)) for extent in view.shape)
        steps = tuple(draw(st.integers(1, 2)) for _ in view.shape)
        shape = tuple(-(-(e - s) // k) for e, s, k in zip(view.shape, starts, steps, strict=True))
        index = tuple(slice(s, None, k) for s, k in zip(starts, steps, strict=True))
        return view.slice(starts, shape, steps), array[index]
    if choice == "reshape":
        for shape in [(view.size,), (1, view.size, 1), (view.size // 2, 2)]:
            other = view.reshape(shape) if math.prod(shape) == view.size else None
            if other is not None and draw(st.booleans()):
                return other, array.reshape(shape)
    return view, array


def add_elementwise(draw: st.DrawFn, sample: Sample) -> None:
    view, array = identity_like(draw, *draw(st.sampled_from(sample.values)))
    same = [(v, a) for v, a in sample.values if v.shape == view.shape]
    other, other_array = draw(st.sampled_from(same)) if same else (view, array)
    x, y = Input(F32, 0), Input(F32, 1)
    choices: list[tuple[Expression, Array]] = [
        (apply("max", x, Literal(F32, 0.0)), np.maximum(array, 0)),
        (apply("add", x, y), array + other_array),
        (apply("mul", apply("sub", x, y), Literal(F32, 0.5)), (array - other_array) * np.float32(0.5)),
        (apply("add", x, Literal(F32, 1.0)), array + np.float32(1)),
    ]
    expression, value = draw(st.sampled_from(choices))
    if draw(st.integers(0, 4)):
        sample.result(Elementwise((expression,), 2), value, view, other)
        return
    second = sample.buffer(BufferKind.ACTIVATION, view.shape).view()
    first = sample.buffer(BufferKind.ACTIVATION, view.shape).view()
    sample.emit(Elementwise((expression, apply("neg", x)), 2), first, second, view, other)
    sample.values += [(first, value.astype(np.float32)), (second, -array)]


def add_copy(draw: st.DrawFn, sample: Sample) -> None:
    view, array = identity_like(draw, *draw(st.sampled_from(sample.values)))
    if view.rank and draw(st.booleans()) and view.shape[0] == 1:
        view, array = view.broadcast((3, *view.shape[1:])), np.repeat(array, 3, 0)
    sample.result(Copy(), array, view)


def add_concat(draw: st.DrawFn, sample: Sample) -> None:
    """Two parts copied into one buffer, with a gap filled in between."""
    view, array = draw(st.sampled_from([value for value in sample.values if value[0].rank]))
    axis = draw(st.integers(0, view.rank - 1))
    extent, gap = view.shape[axis], draw(st.integers(0, 1))
    shape = (*view.shape[:axis], 2 * extent + gap, *view.shape[axis + 1 :])
    whole = sample.buffer(BufferKind.ACTIVATION, shape).view()
    starts = [0] * view.rank
    if gap:
        sample.emit(Fill(0), whole)
    sample.emit(Copy(), whole.slice(tuple(starts), view.shape), view)
    starts[axis] = extent + gap
    double = sample.buffer(BufferKind.ACTIVATION, view.shape).view()
    sample.emit(Elementwise((apply("add", Input(F32, 0), Input(F32, 0)),), 1), double, view)
    sample.emit(Copy(), whole.slice(tuple(starts), view.shape), double)
    zeros = np.zeros((*view.shape[:axis], gap, *view.shape[axis + 1 :]), np.float32)
    sample.values.append((whole, np.concatenate([array, zeros, array + array], axis)))


def overwrite(draw: st.DrawFn, sample: Sample) -> None:
    """A buffer written a second time, in place or with another value: hazards for everything that moves."""
    whole = [(v, a) for v, a in sample.values if v.buffer.kind is BufferKind.ACTIVATION and v == v.buffer.view()]
    if not whole:
        return
    view, array = draw(st.sampled_from(whole))
    others = [(v, a) for v, a in sample.values if v.shape == view.shape and v.buffer is not view.buffer]
    if others and draw(st.booleans()):
        source, array = draw(st.sampled_from(others))
        sample.emit(Copy(), view, source)
    else:
        sample.emit(Elementwise((apply("add", Input(F32, 0), Literal(F32, 2.0)),), 1), view, view)
        array = array + np.float32(2)
    sample.values = [value for value in sample.values if value[0].buffer is not view.buffer]
    sample.values.append((view, array))


def add_anchor(draw: st.DrawFn, sample: Sample) -> None:
    """A matrix product, a maximum or a gather: not data-parallel."""
    view, array = draw(st.sampled_from(sample.values))
    flat = view.reshape((1, view.size)) if view.is_contiguous and view.size else None
    if flat is None:
        return
    row = array.reshape(1, -1)
    kind = draw(st.sampled_from(["product", "maximum", "gather"]))
    if kind == "product":
        column = draw(st.sampled_from([flat, flat.slice((0, 0), (1, 1))]))
        sample.result(MatMul(), row.T @ row[:, : column.shape[1]], flat.transpose((1, 0)), column)
    elif kind == "maximum":
        cube = View(flat.buffer, flat.offset, (1, flat.size, 1), (flat.size, 1, 1))
        sample.result(Reduce("max"), row.max(axis=1, keepdims=True), cube)
    else:
        indices = sample.buffer(BufferKind.CONSTANT, (2,), ElementType.I64)
        indices.data = np.array([-1, 0])
        cube = View(flat.buffer, flat.offset, (1, flat.size, 1), (flat.size, 1, 1))
        sample.result(Gather(), row[0, [-1, 0]].reshape(1, 2, 1), cube, indices.view())


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    sample = Sample()
    for seed in range(draw(st.integers(1, 2))):
        shape = draw(st.sampled_from([(2, 3), (1, 4), (2, 2, 3), (4,), (1, 3, 2), (0, 2)]))
        sample.add_input(shape, seed)
    steps = st.sampled_from([add_elementwise, add_elementwise, add_copy, add_copy, add_concat, overwrite, add_anchor])
    for step in draw(st.lists(steps, min_size=1, max_size=10)):
        step(draw, sample)
        if any(view.size > 400 for view, _ in sample.values):
            break
    for view, array in draw(st.lists(st.sampled_from(sample.values), min_size=1, max_size=3)):
        sample.add_output(view, array)
    place_lifetimes(sample.program)
    return sample


def check(program: Program, sample: Sample) -> None:
    """The program is valid and computes what the sample expects, bit for bit, with poisoned memory."""
    verify_program(program)
    found = Interpreter(program).run(sample.inputs)
    assert found.keys() == sample.expected.keys()
    for name, array in sample.expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=print_program(program))


@EXAMPLES
@given(samples())
def test_the_interpreter_gives_what_numpy_gives(sample):
    check(sample.program, sample)


@pytest.mark.parametrize("function", PASSES, ids=lambda function: function.__name__)
@EXAMPLES
@given(sample=samples())
def test_each_pass_keeps_the_meaning_and_tells_the_truth(function, sample):
    before = print_program(sample.program)
    changed = function(sample.program)
    assert changed is (print_program(sample.program) != before)
    check(sample.program, sample)
    function(sample.program)
    check(sample.program, sample)


@EXAMPLES
@given(samples(), st.lists(st.sampled_from(PASSES), max_size=6))
def test_passes_in_any_order_keep_the_meaning(sample, passes):
    manager = PassManager("any order", verify=verify_program, print=print_program, checked=True)
    manager.run(sample.program, passes)
    check(sample.program, sample)


@EXAMPLES
@given(samples())
def test_the_pipeline_keeps_the_meaning_and_needs_no_more_memory(sample):
    eliminate_dead_stores(sample.program)
    instructions = len(list(sample.program.instructions()))
    manager = PassManager("low-level", verify=verify_program, print=print_program, checked=True)
    manager.run(sample.program, LIR_PASSES)
    check(sample.program, sample)
    assert len(list(sample.program.instructions())) <= instructions


@EXAMPLES
@given(samples())
def test_live_buffers_never_overlap(sample):
    """Element by element: no byte belongs to two live buffers (the planner's own checker is not used)."""
    plan = plan_memory(sample.program)
    owner: dict[int, str] = {}
    largest = 0
    for statement in sample.program.body:
        if isinstance(statement, Instruction):
            continue
        buffer = statement.buffer
        start = plan.offsets[buffer]
        if type(statement).__name__ == "Alloc":
            for byte in range(start, start + buffer.bytes):
                assert byte not in owner, (buffer.name, owner[byte])
                owner[byte] = buffer.name
            largest = max(largest, len(owner))
        else:
            for byte in range(start, start + buffer.bytes):
                del owner[byte]
    assert largest <= plan.bound <= plan.arena_bytes


@EXAMPLES
@given(samples())
def test_text_reads_back(sample):
    text = print_program(sample.program)
    again = parse_program(text)
    assert print_program(again) == text
    check(again, sample)


@EXAMPLES
@given(samples())
def test_poison_changes_nothing(sample):
    checked = Interpreter(sample.program, checked=True).run(sample.inputs)
    plain = Interpreter(sample.program, checked=False).run(sample.inputs)
    for name, array in plain.items():
        np.testing.assert_array_equal(checked[name], array)
