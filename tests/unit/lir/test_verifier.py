"""Every rule of the verifier, each by a program that breaks it alone."""

import pytest

from glowstone.lir.parser import parse_program
from glowstone.lir.verifier import VerificationError, verify_program

GOOD = """glowstone.lir 1
input %x: f32[2,4]
output %y: f32[2,4]
constant %c: f32[2,4] = splat 00000000
activation %t: f32[2,4]
activation %u: f32[2,4]
{
  alloc %t
  Copy(out %t[2,4], in %x[2,4]) "first"
  Elementwise{expressions=(neg(x0:f32)), arity=1}(out %t[2,4], in %t[2,4])
  alloc %u
  Copy(out %u[2,4], in %t[2,4])
  Copy(out %y[2,4], in %u[2,4])
  dealloc %t
  dealloc %u
}
"""


def test_a_valid_program_passes():
    verify_program(parse_program(GOOD))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  dealloc %u\n", "", "without dealloc"),
        ("  alloc %u\n", "  alloc %u\n  alloc %u\n", "second alloc"),
        ("  dealloc %u\n", "  dealloc %u\n  dealloc %u\n", "not live"),
        ("  dealloc %u\n", "  dealloc %u\n  alloc %u\n  dealloc %u\n", "second alloc"),
        ("  alloc %u\n", "  alloc %x\n", "alloc of input"),
        ("  alloc %u\n", "", "outside its alloc"),
        ("  dealloc %t\n  dealloc %u\n", "  dealloc %t\n  dealloc %u\n  Copy(out %y[2,4], in %u[2,4])\n", "outside"),
        ("  Copy(out %t[2,4], in %x[2,4])", "  Copy(out %t[2,2]/4,1, in %x[2,2]/4,1)", None),
        ("in %t[2,4])\n  Copy(out %y", "in %c[2,4])\n  Copy(out %c", "writes constant"),
        ("  Copy(out %u[2,4], in %t[2,4])\n", "", "before anything is written"),
        ("  Copy(out %u[2,4], in %t[2,4])\n", "  Copy(out %u[1,4], in %t[1,4])\n", None),
        (
            "  Copy(out %u[2,4], in %t[2,4])\n  Copy(out %y[2,4], in %u[2,4])",
            "  Copy(out %u[1,4], in %t[1,4])\n  Copy(out %y[1,4]+4, in %u[1,4]+4)",
            "before anything is written",
        ),
        ("in %t[2,4])\n  alloc", "in %t[2,4]/1,2)\n  alloc", "overlaps input"),
        ("Copy(out %u[2,4], in %t[2,4])", "Copy(out %t[2,4], in %t[2,4])", "may not be in place"),
        ("Copy(out %u[2,4], in %t[2,4])", "Copy(out %u[2,4]/0,1, in %t[2,4])", "names an element twice"),
        ("Copy(out %u[2,4], in %t[2,4])", "Copy(out %u[2,4]+1, in %t[2,4])", "leaves its buffer"),
        ("Copy(out %u[2,4], in %t[2,4])", "Copy(out %u[2,4], in %t[2,3])", "shapes differ"),
        ("  Copy(out %y[2,4], in %u[2,4])\n", "", "never written"),
        (
            "Copy(out %u[2,4], in %t[2,4])",
            "Elementwise{expressions=(x0:f32, x0:f32), arity=1}(out %u[2,4], out %u[2,4], in %t[2,4])",
            "outputs 0 and 1 overlap",
        ),
        (
            "Copy(out %u[2,4], in %t[2,4])",
            "Softmax(out %u[1,4,2]/8,2,1, in %t[1,4,2]/8,1,4)",
            "does not accept the strides of operand 1",
        ),
    ],
)
def test_one_broken_rule(old, new, words):
    assert GOOD.count(old) == 1
    program = parse_program(GOOD.replace(old, new))
    if words is None:
        verify_program(program)
        return
    with pytest.raises(VerificationError, match=words):
        verify_program(program)


def test_the_error_names_the_statement_and_its_origin():
    text = GOOD.replace("Copy(out %t[2,4], in %x[2,4])", "Copy(out %t[2,4], in %x[2,3])")
    with pytest.raises(VerificationError) as caught:
        verify_program(parse_program(text))
    assert caught.value.node == "statement 1, Copy (first)"


def test_arguments_are_listed():
    program = parse_program(GOOD)
    program.inputs.clear()
    with pytest.raises(VerificationError, match="does not list"):
        verify_program(program)
