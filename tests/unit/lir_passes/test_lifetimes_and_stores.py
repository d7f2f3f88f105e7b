"""Dead stores, lifetimes, and the pipeline as a whole."""

import pytest

from glowstone.lir import Program
from glowstone.lir.parser import parse_program
from glowstone.lir.printer import print_program, print_statement
from glowstone.lir.verifier import verify_program
from glowstone.lir_passes import LIR_PASSES, eliminate_dead_stores, shorten_lifetimes
from glowstone.support.pass_manager import PassManager

DECLARATIONS = """
input %x: f32[2,3]
output %z: f32[2,3]
activation %s: f32[2,3]
activation %t: f32[2,3]
"""
NEG = "Elementwise{expressions=(neg(x0:f32)), arity=1}"
LAST = f"{NEG}(out %z[2,3], in %x[2,3])"


def test_chains_of_dead_stores_go(rewrite):
    body = f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %t[2,3], in %s[2,3])\n{LAST}"
    assert rewrite(eliminate_dead_stores, DECLARATIONS, body) == [LAST]


def test_what_is_overwritten_unread_goes(rewrite):
    body = f"Fill{{bits=0}}(out %z[2,3])\n{LAST}"
    assert rewrite(eliminate_dead_stores, DECLARATIONS, body) == [LAST]


def test_a_dead_output_of_several_goes_alone(rewrite):
    two = "Elementwise{expressions=(neg(x0:f32), abs(x0:f32)), arity=1}"
    body = f"{two}(out %s[2,3], out %z[2,3], in %x[2,3])"
    assert rewrite(eliminate_dead_stores, DECLARATIONS, body) == [
        "Elementwise{expressions=(abs(x0:f32)), arity=1}(out %z[2,3], in %x[2,3])"
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"Fill{{bits=0}}(out %z[2,3])\n{NEG}(out %z[2,2]/3,1, in %x[2,2]/3,1)", id="overwritten in part"),
        pytest.param(
            f"Fill{{bits=0}}(out %s[2,3])\n{NEG}(out %s[2,3], in %s[2,3])\n{NEG}(out %z[2,3], in %s[2,3])",
            id="read by what overwrites it",
        ),
        pytest.param(
            f"Fill{{bits=0}}(out %s[2,3])\n{NEG}(out %z[2,3], in %x[2,3])\n{NEG}(out %z[1,1], in %s[1,1]+5)",
            id="read in part",
        ),
    ],
)
def test_stores_that_are_needed_stay(rewrite, body):
    assert rewrite(eliminate_dead_stores, DECLARATIONS, body) == body.splitlines()


def program_of(body: str) -> Program:
    return parse_program(f"glowstone.lir 1\n{DECLARATIONS}{{\n{body}\n}}")


def lines(program: Program) -> list[str]:
    return [print_statement(statement).split("(")[0].split("{")[0] for statement in program.body]


USES = f"{NEG}(out %s[2,3], in %x[2,3])\n{LAST}\n{NEG}(out %t[2,3], in %s[2,3])\n{NEG}(out %z[2,3], in %t[2,3])"
TIGHT = ["alloc %s", "Elementwise", "Elementwise", "alloc %t", "Elementwise", "dealloc %s", "Elementwise", "dealloc %t"]


@pytest.mark.parametrize(
    "body", [USES, f"alloc %t\nalloc %s\n{USES}\ndealloc %s\ndealloc %t", f"{USES}\nalloc %s\ndealloc %s"]
)
def test_lifetimes_are_placed_tightly_once(body):
    program = program_of(body)
    assert shorten_lifetimes(program) is True
    assert lines(program) == TIGHT
    verify_program(program)
    assert shorten_lifetimes(program) is False


def test_marks_of_unused_buffers_go():
    program = program_of(f"alloc %s\ndealloc %s\n{LAST}")
    assert shorten_lifetimes(program) is True
    assert lines(program) == ["Elementwise"]


ATTENTION = """
input %x: f32[2,6]
output %z: f32[2,6]
constant %w: f32[6,18] = splat 0000003f
activation %qkv: f32[2,18]
activation %q: f32[3,2,2]
activation %k: f32[3,2,2]
activation %v: f32[3,2,2]
activation %s: f32[3,2,2]
activation %p: f32[3,2,2]
activation %c: f32[3,2,2]
activation %r: f32[2,6]
activation %b: f32[2,6]
"""
ATTENTION_BODY = f"""
MatMul{{epilogue=None}}(out %qkv[2,18], in %x[2,6], in %w[6,18])
Copy(out %q[3,2,2], in %qkv[3,2,2]/2,18,1)
Copy(out %k[3,2,2], in %qkv[3,2,2]+6/2,1,18)
Copy(out %v[3,2,2], in %qkv[3,2,2]+12/2,18,1)
MatMul{{epilogue=None}}(out %s[3,2,2], in %q[3,2,2], in %k[3,2,2])
Softmax(out %p[6,2,1], in %s[6,2,1])
MatMul{{epilogue=None}}(out %c[3,2,2], in %p[3,2,2], in %v[3,2,2])
Copy(out %r[2,3,2], in %c[2,3,2]/2,4,1)
{NEG}(out %b[2,6], in %r[2,6])
Elementwise{{expressions=(add(x0:f32, x1:f32)), arity=2}}(out %z[2,6], in %b[2,6], in %x[2,6])
"""


def test_the_pipeline_leaves_no_copy_in_an_attention_layer(rewrite):
    def pipeline(program: Program) -> bool:
        manager = PassManager("low-level", verify=verify_program, print=print_program, checked=True)
        return manager.run(program, LIR_PASSES)

    found = rewrite(pipeline, ATTENTION, ATTENTION_BODY)
    assert [line.split("{")[0].split("(")[0] for line in found] == [
        "MatMul",
        "MatMul",
        "Softmax",
        "MatMul",
        "Elementwise",
    ]
    assert found[1].endswith("in %qkv[3,2,2]/2,18,1, in %qkv[3,2,2]+6/2,1,18)")
    assert found[2] == "Softmax(out %s[6,2,1], in %s[6,2,1])"
    assert found[4].startswith(
        "Elementwise{expressions=(add(neg(x0:f32), x1:f32)), arity=2}(out %z[2,6], in %z[2,6], in %x[2,6])"
    )
