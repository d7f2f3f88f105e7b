"""Printing and parsing of programs: round trips of every kind of field, and errors with line and column."""

import dataclasses

import numpy as np
import pytest

from glowstone.backends.cpu.operations import BlockedConvolution, StemConvolution
from glowstone.lir import (
    OPERATIONS,
    Buffer,
    BufferKind,
    Convolution,
    Cumulative,
    Elementwise,
    Fill,
    Instruction,
    LayerNorm,
    Pool,
    Program,
    Recurrence,
    Reduce,
    TopK,
    View,
)
from glowstone.lir.parser import parse_program
from glowstone.lir.printer import LIR_TEXT_VERSION, print_program
from glowstone.scalar import Input, Literal, apply, cast
from glowstone.types import ElementType

F32 = ElementType.F32
X = Input(F32, 0)
EPILOGUE = apply("max", apply("add", X, Input(F32, 1)), Literal(F32, -0.0))


def one(operation, shapes, integers=(), names=(), kind=BufferKind.ACTIVATION):
    """A program of one instruction; it need not be valid to be printed."""
    operands = tuple(Buffer(f"b{i}", kind, F32, shape).view() for i, shape in enumerate(shapes))
    return Program([], [], [Instruction(operation, operands, integers, names)])


@pytest.mark.parametrize(
    "program",
    [
        one(Fill(7), [(3,)]),
        one(LayerNorm(1e-05), [(2, 3)] * 4),
        one(LayerNorm(float("inf")), [(2, 3)] * 4),
        one(Reduce("mean", EPILOGUE), [(2, 3)] * 3),
        one(Reduce('od"d\\', None), [(2, 3)] * 2),
        one(TopK(False), [(1, 2, 3)] * 3),
        one(Cumulative("sum", True, False), [(1, 2, 3)] * 2),
        one(Recurrence(1, (apply("tanh", X),), 0, apply("neg", X), True), [(1,)] * 6),
        one(Recurrence(2, (X, EPILOGUE), 1), [(1,)] * 9),
        one(Pool("max", (3, 3), (1, 2), (1, 1), True), [(1,)] * 2, (1, 1, 0, 0)),
        one(Convolution((2,), (1,), 4), [(1, 1, 1)] * 3, (-1,)),
        one(BlockedConvolution((1, 1), (1, 1), 1, 2, EPILOGUE), [(1,) * 5] * 4, (0, 0, 17), ("conv/1", 'q"uote\n')),
        one(StemConvolution((2, 2), (1, 1), (7, 7), 3, 1), [(1,) * 5] * 3, (3, 3, 64)),
        one(
            Elementwise((cast(apply("less", X, Literal(F32, float("nan"))), ElementType.I64), X), 1),
            [(), (), ()],
        ),
    ],
    ids=lambda program: program.body[0].operation.name,
)
def test_fields_of_every_type_read_back_equal(program):
    text = print_program(program)
    again = parse_program(text)
    before, after = program.body[0], again.body[0]
    assert after.operation == before.operation
    assert (after.integers, after.names) == (before.integers, before.names)
    assert print_program(again) == text


def test_every_operation_has_printable_field_types():
    """A tuple that stands for any value of the field's type can be printed for all operations there are."""
    from glowstone.text import field_types

    for kind in OPERATIONS.values():
        assert list(field_types(kind)) == [field.name for field in dataclasses.fields(kind)]


def test_buffers_keep_kind_type_channels_and_small_data():
    weights = Buffer("w, x/1:0", BufferKind.CONSTANT, F32, (3,), data=np.array([1, 2, 3], np.float32))
    splat = Buffer("%s", BufferKind.PLAN_CONSTANT, ElementType.I64, (2, 40), data=np.full((2, 40), -5))
    large = Buffer("large", BufferKind.CONSTANT, F32, (1000,), data=np.arange(1000, dtype=np.float32))
    empty = Buffer("empty", BufferKind.CONSTANT, F32, (0, 2), data=np.zeros((0, 2), np.float32))
    blocked = Buffer("blocked", BufferKind.MUTABLE, F32, (1, 2, 3, 3, 8), channels=12)
    body = [Instruction(Fill(0), (buffer.view(),)) for buffer in (weights, splat, large, empty, blocked)]
    again = {buffer.name: buffer for buffer in parse_program(print_program(Program([], [], body))).buffers()}
    for buffer in (weights, splat, large, empty, blocked):
        other = again[buffer.name]
        assert (other.kind, other.element, other.shape, other.channels) == (
            buffer.kind,
            buffer.element,
            buffer.shape,
            buffer.channels,
        )
    for buffer in (weights, splat, empty):
        np.testing.assert_array_equal(again[buffer.name].data, buffer.data)
    assert again["large"].data is None


def test_buffers_of_one_name_are_told_apart():
    same = [Buffer(name, BufferKind.ACTIVATION, F32, (size,)) for size, name in enumerate(["t", "t", "t.2", "t"], 1)]
    program = Program([], [], [Instruction(Fill(0), (buffer.view(),)) for buffer in same])
    found = parse_program(print_program(program)).buffers()
    assert [(buffer.name, buffer.size) for buffer in found] == [("t", 1), ("t.3", 2), ("t.2", 3), ("t.4", 4)]


def test_views_keep_offset_and_strides():
    buffer = Buffer("b", BufferKind.ACTIVATION, F32, (4, 6))
    views = [
        buffer.view(),
        buffer.view().slice((1, 2), (2, 3)),
        View(buffer, 3, (), ()),
        View(buffer, 5, (2, 1), (0, 9)),
    ]
    program = Program([], [], [Instruction(Fill(0), (view,)) for view in views])
    found = [instruction.operands[0] for instruction in parse_program(print_program(program)).instructions()]
    assert [(v.offset, v.shape, v.strides) for v in found] == [(v.offset, v.shape, v.strides) for v in views]


GOOD = f"""glowstone.lir {LIR_TEXT_VERSION}
# a comment
input %x: f32[4]
activation %t: f32[4]
{{
  alloc %t
  Pool{{mode="max", window=(3), strides=(1), dilations=(1), count_include_pad=False, blocked=False}}(
    out %t[4], in %x[4]) <1>
  dealloc %t
}}
"""


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("lir 1", "lir 2", "line 1, column 15", "version 2"),
        ("glowstone.lir", "something", "line 1, column 1", "expected 'glowstone.lir'"),
        ("input", "inputs", "line 3, column 1", "inputs"),
        ("f32[4]\nact", "f99[4]\nact", "line 3, column 11", "f99"),
        ("%t: f32[4]", "%x: f32[4]", "line 4, column 13", "second buffer"),
        ("alloc %t\n  Pool", "alloc %q\n  Pool", "line 6, column 10", "no buffer of name q"),
        ("Pool{", "Poll{", "line 7, column 3", "unknown operation Poll"),
        ('"max"', "max", "line 7, column 13", "expected a string"),
        ("window=", "widow=", "line 7, column 20", "expected 'window'"),
        ("count_include_pad=False", "count_include_pad=no", "line 7, column 78", "not a bool"),
        ("out %t", "in %t", "line 8, column 5", "is out, not in"),
        ("<1>", "<1", "line 9, column 3", "expected '>'"),
        ("in %x[4]", "in %x[4]/1,1", "line 8, column 25", "2 strides for 1 axes"),
    ],
)
def test_errors_name_line_and_column(old, new, place, words):
    parse_program(GOOD)
    assert GOOD.count(old) == 1
    with pytest.raises(ValueError, match=r"^line") as caught:
        parse_program(GOOD.replace(old, new))
    assert str(caught.value).startswith(place + ":")
    assert words in str(caught.value)


def test_errors_inside_scalar_expressions_are_placed():
    text = print_program(one(Elementwise((EPILOGUE,), 2), [(2,)] * 3)).replace("add(", "plus(")
    with pytest.raises(ValueError, match=r"line 6, column 28: .*plus"):
        parse_program(text)
