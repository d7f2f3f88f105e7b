"""The interpreter: results against NumPy, checks that find what they are for, and control records."""

import numpy as np
import pytest

from glowstone.backends.cpu.operations import BlockedConvolution
from glowstone.backends.interpreter import Interpreter, InterpreterLibrary, InterpreterPlanner, run_table
from glowstone.errors import ExecutionError, InputError, InternalError
from glowstone.lir import Buffer, BufferKind, Copy, Elementwise, Fill, Instruction, MatMul, Program
from glowstone.lir.lifetimes import place_lifetimes
from glowstone.lir.parser import parse_program
from glowstone.lir.table import TableEntry, encode
from glowstone.memory import MemoryPlan
from glowstone.scalar import Input, apply
from glowstone.table import FIRST_ARGUMENT_BASE, Address, Record
from glowstone.types import ElementType

F32, I64 = ElementType.F32, ElementType.I64

HEADER = "glowstone.lir 1\ninput %x: f32[2,4]\noutput %y: f32[2,4]\n"


def run(body: str, declarations: str = "", **options: bool) -> np.ndarray:
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    program = parse_program(f"{HEADER}{declarations}{{\n{body}\n}}")
    place_lifetimes(program)
    return Interpreter(program, **options).run({"x": x})["y"]


def test_views_offsets_and_strides_reach_the_operations():
    found = run("Fill{bits=0}(out %y[2,4])\n Copy(out %y[2,2]+1/4,1, in %x[2,2]+2/1,4)")
    np.testing.assert_array_equal(found, [[0, 2, 6, 0], [0, 3, 7, 0]])


def test_a_product_with_constants():
    w = Buffer("w", BufferKind.CONSTANT, F32, (4, 3), data=np.arange(12, dtype=np.float32).reshape(4, 3))
    x, y = Buffer("x", BufferKind.INPUT, F32, (2, 4)), Buffer("y", BufferKind.OUTPUT, F32, (2, 3))
    program = Program([x], [y], [Instruction(MatMul(), (y.view(), x.view(), w.view()))])
    array = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_allclose(Interpreter(program).run({"x": array})["y"], array @ w.data, rtol=1e-6)


def test_memory_never_written_shows_as_nan():
    body = "Copy(out %t[2,2]/4,1, in %x[2,2]/4,1)\n Copy(out %y[2,4], in %t[2,4])"
    found = run(body, "activation %t: f32[2,4]\n")
    np.testing.assert_array_equal(np.isnan(found), [[False, False, True, True]] * 2)
    found = run(body, "activation %t: f32[2,4]\n", checked=False)
    assert not np.isnan(found).any()


def test_outputs_never_written_show_as_nan():
    np.testing.assert_array_equal(np.isnan(run("Fill{bits=0}(out %y[1,4])")), [[False] * 4, [True] * 4])


def test_dead_buffers_are_poisoned_after_their_last_use():
    """A use behind the dealloc, which no verifier has seen here, reads poison and not the old value."""
    program = parse_program(
        f"{HEADER}activation %t: f32[2,4]\nactivation %u: f32[2,4]\n{{\nalloc %t\nCopy(out %t[2,4], in %x[2,4])\n"
        "dealloc %t\nCopy(out %y[2,4], in %t[2,4])\n}"
    )
    x = np.ones((2, 4), np.float32)
    assert np.isnan(Interpreter(program).run({"x": x})["y"]).all()
    np.testing.assert_array_equal(Interpreter(program, checked=False).run({"x": x})["y"], x)


BLOCKED = "activation %t: f32[1,1,1,1,8] channels 3\n"


def test_padding_lanes_must_be_zero_after_a_write():
    with pytest.raises(InternalError, match="padding lanes of t") as caught:
        run("Fill{bits=1065353216}(out %t[1,1,1,1,8])", BLOCKED)
    assert caught.value.found == 1.0
    assert caught.value.operator == "instruction 0, Fill"


def test_padding_lanes_must_be_zero_before_a_read():
    with pytest.raises(InternalError, match="padding lanes of t") as caught:
        run("Copy(out %t[3], in %x[3])\n Copy(out %y[8], in %t[8])", BLOCKED)
    assert caught.value.operator == "instruction 1, Copy"


def test_lanes_that_are_no_padding_may_hold_anything():
    body = "Fill{bits=0}(out %t[8])\n Copy(out %t[3], in %x[3]+1)\n Copy(out %y[8], in %t[8])"
    np.testing.assert_array_equal(run(body, BLOCKED), [[1, 2, 3, 0], [0, 0, 0, 0]])


def test_a_blocked_convolution_keeps_its_padding_lanes():
    """17 channels out in blocks of 8, an epilogue that does not keep zero."""
    draw = np.random.default_rng(0)
    weights = np.zeros((3, 1, 1, 1, 8, 1, 8), np.float32)
    weights.reshape(3, 8, 8)[:2] = draw.normal(size=(2, 8, 8))
    weights.reshape(3, 8, 8)[2, :, :1] = draw.normal(size=(8, 1))
    w = Buffer("w", BufferKind.CONSTANT, F32, weights.shape, data=weights)
    x = Buffer("x", BufferKind.INPUT, F32, (1, 1, 2, 2, 8))
    t = Buffer("t", BufferKind.ACTIVATION, F32, (1, 3, 2, 2, 8), channels=17)
    y = Buffer("y", BufferKind.OUTPUT, F32, t.shape)
    operation = BlockedConvolution((1, 1), (1, 1), 1, 1, apply("exp", Input(F32, 0)))
    body = [
        Instruction(operation, (t.view(), x.view(), w.view()), (0, 0, 17)),
        Instruction(Copy(), (y.view(), t.view())),
    ]
    program = Program([x], [y], body)
    place_lifetimes(program)
    array = draw.normal(size=x.shape).astype(np.float32)
    found = Interpreter(program).run({"x": array})["y"]
    expected = np.exp(np.einsum("nihwl,oilm->nohwm", array, weights.reshape(3, 1, 8, 8)))
    np.testing.assert_allclose(found[:, :2], expected[:, :2], rtol=1e-5)
    np.testing.assert_allclose(found[:, 2, ..., 0], expected[:, 2, ..., 0], rtol=1e-5)
    assert (found[:, 2, ..., 1:] == 0).all()


def test_the_callback_sees_memory_after_every_instruction():
    program = parse_program(
        f"{HEADER}activation %t: f32[2,4]\n{{\nalloc %t\n"
        "Elementwise{expressions=(neg(x0:f32)), arity=1}(out %t[2,4], in %x[2,4])\n"
        "Elementwise{expressions=(abs(x0:f32)), arity=1}(out %y[2,4], in %t[2,4])\ndealloc %t\n}"
    )
    seen = []

    def after(number, instruction, show):
        seen.append((number, instruction.operation, show(instruction.operands[0]).copy()))

    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    Interpreter(program).run({"x": x}, after=after)
    assert [number for number, _, _ in seen] == [0, 1]
    np.testing.assert_array_equal(seen[0][2], -x)
    np.testing.assert_array_equal(seen[1][2], x)


def test_a_bad_index_names_the_node():
    body = (
        'Fill{bits=9}(out %i[1])\nGather(out %t[1,1,4], in %x[1,2,4], in %i[1]) "lookup"\nCopy(out %y[2,4], in %x[2,4])'
    )
    with pytest.raises(ExecutionError) as caught:
        run(body, "activation %i: i64[1]\nactivation %t: f32[1,1,4]\n")
    assert caught.value.node == "lookup"
    assert caught.value.found == 9


def test_inputs_are_checked():
    program = parse_program(HEADER + "{\n Copy(out %y[2,4], in %x[2,4])\n}")
    with pytest.raises(InputError, match="missing"):
        Interpreter(program).run({})
    with pytest.raises(InputError, match=r"float64\[2, 4\]"):
        Interpreter(program).run({"x": np.zeros((2, 4))})


def test_constants_are_read_only_and_bases_are_not_left():
    with pytest.raises(ValueError, match="read-only"):
        run("Copy(out %c[4], in %x[4])", "constant %c: f32[4] = splat 00000000\n")
    with pytest.raises(InternalError, match="leaves its base"):
        run("Copy(out %y[9], in %x[9])")


def test_a_wrong_plan_is_found():
    program = parse_program(
        HEADER + "activation %t: f32[4]\nactivation %u: f32[4]\n{\nalloc %t\nalloc %u\ndealloc %t\ndealloc %u\n}"
    )
    buffers = [buffer for buffer in program.buffers() if buffer.kind is BufferKind.ACTIVATION]
    with pytest.raises(InternalError, match="overlap"):
        Interpreter(program, MemoryPlan(dict.fromkeys(buffers, 0), 64, 64))


def test_bf16_is_moved_bit_for_bit_and_computed_on():
    x, y = (
        Buffer(name, kind, ElementType.BF16, (3,)) for name, kind in [("x", BufferKind.INPUT), ("y", BufferKind.OUTPUT)]
    )
    numbers = np.array([0x3F80, 0x7FC1, 1], np.uint16).view(ElementType.BF16.dtype)
    program = Program([x], [y], [Instruction(Copy(), (y.view(), x.view()))])
    found = Interpreter(program).run({"x": numbers})["y"]
    np.testing.assert_array_equal(found.view(np.uint16), numbers.view(np.uint16))
    add = Elementwise((apply("add", Input(ElementType.BF16, 0), Input(ElementType.BF16, 0)),), 1)
    program = Program([x], [y], [Instruction(add, (y.view(), x.view()))])
    found = Interpreter(program).run({"x": numbers})["y"]
    np.testing.assert_array_equal(found.astype(np.float32), 2 * numbers.astype(np.float32))


def test_equal_calls_share_a_kernel_whatever_their_extents():
    planner, library = InterpreterPlanner(), InterpreterLibrary()
    small, large = (Buffer("b", BufferKind.ACTIVATION, F32, shape).view() for shape in ((2, 3), (4, 5)))
    cube = Buffer("c", BufferKind.ACTIVATION, F32, (1, 2, 3)).view()
    instructions = [Instruction(Fill(0), (view,)) for view in (small, large, cube)]
    instructions.append(Instruction(Fill(1), (small,)))
    calls = [planner.plan(instruction) for instruction in instructions]
    assert library.index_of([call.key for call in calls]) == [0, 0, 1, 2]
    assert [call.units for call in calls] == [1] * 4


class TestControl:
    """Tables made of hand-written control records around encoded calls. Bases: 3 is x, 4 is y, 5 and 6 are slots."""

    COUNT = FIRST_ARGUMENT_BASE + 4

    def calls(self, *instructions: tuple[Instruction, dict[Buffer, Address]]):
        """One list of words per call, and the keys."""
        planner, library = InterpreterPlanner(), InterpreterLibrary()
        records = []
        for instruction, addresses in instructions:
            call = planner.plan(instruction)
            kernel = library.index_of([call.key])[0]
            records.append([int(word) for word in encode([TableEntry(instruction, call, kernel)], addresses)[:-2]])
        return records, library.keys

    def loop_table(self):
        """y[i] = -x[i] for `count` elements, one per pass."""
        x, y = Buffer("x", BufferKind.INPUT, F32, (1,)), Buffer("y", BufferKind.OUTPUT, F32, (1,))
        negate = Instruction(Elementwise((apply("neg", Input(F32, 0)),), 1), (y.view(), x.view()))
        (call,), keys = self.calls((negate, {x: Address(5, 0), y: Address(6, 0)}))
        loop = [Record.LOOP, 11, self.COUNT, 8, 2, 5, 3, 4, 6, 4, 4]
        return np.array([*loop, *call, Record.NEXT, 3, 0, Record.END, 2], np.int64), keys

    @pytest.mark.parametrize("count", [0, 1, 5])
    def test_a_loop_moves_its_slots(self, count):
        words, keys = self.loop_table()
        x, y = np.arange(1, 6, dtype=np.float32), np.zeros(5, np.float32)
        empty = np.empty(0, np.uint8)
        counts = np.array([99, count]).view(np.uint8)
        bases = [empty, empty, empty, x.view(np.uint8), y.view(np.uint8), empty, empty, counts]
        run_table(words, keys, bases)
        np.testing.assert_array_equal(y, [-1, -2, -3, -4, -5][:count] + [0] * (5 - count))

    @pytest.mark.parametrize("condition", [False, True])
    def test_a_branch_skips_where_its_condition_is_false(self, condition):
        y = Buffer("y", BufferKind.OUTPUT, I64, (1,))
        writes = [(Instruction(Fill(bits), (y.view(),)), {y: Address(4, 0)}) for bits in (7, 8)]
        (then, otherwise), keys = self.calls(*writes)
        after_then = 5 + len(then) + 3
        end = after_then + len(otherwise)
        branch, jump = [Record.BRANCH, 5, 3, 0, after_then], [Record.JUMP, 3, end]
        words = np.array([*branch, *then, *jump, *otherwise, Record.END, 2], np.int64)
        result = np.zeros(1, np.int64)
        empty = np.empty(0, np.uint8)
        run_table(words, keys, [empty, empty, empty, np.array([condition]).view(np.uint8), result.view(np.uint8)])
        assert result[0] == (7 if condition else 8)

    def test_an_unknown_record_is_an_error(self):
        with pytest.raises(InternalError, match="unknown kind 42 at word 0"):
            run_table(np.array([42, 2]), [], [])
