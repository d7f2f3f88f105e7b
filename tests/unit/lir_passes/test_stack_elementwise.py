"""Joining of data-parallel instructions."""

import pytest

from glowstone.lir_passes import stack_elementwise
from glowstone.lir_passes.stack_elementwise import MAX_NODES, MAX_OPERANDS

DECLARATIONS = """
input %x: f32[2,3]
output %y: f32[3,2]
output %z: f32[2,3]
activation %s: f32[2,3]
activation %t: f32[2,3]
activation %u: f32[2,3]
"""
NEG = "Elementwise{expressions=(neg(x0:f32)), arity=1}"
SUM = "Elementwise{expressions=(add(x0:f32, x1:f32)), arity=2}"


def test_a_chain_becomes_one_and_keeps_its_names(rewrite):
    body = f'{NEG}(out %s[2,3], in %x[2,3]) "a" "b"\n{SUM}(out %z[2,3], in %s[2,3], in %x[2,3]) "b" "c"'
    assert rewrite(stack_elementwise, DECLARATIONS, body) == [
        'Elementwise{expressions=(add(neg(x0:f32), x0:f32)), arity=1}(out %z[2,3], in %x[2,3]) "a" "b" "c"'
    ]


def test_both_operands_may_be_the_same_result(rewrite):
    body = f"{NEG}(out %s[2,3], in %x[2,3])\n{SUM}(out %z[2,3], in %s[2,3], in %s[2,3])"
    assert rewrite(stack_elementwise, DECLARATIONS, body) == [
        "Elementwise{expressions=(add(neg(x0:f32), neg(x0:f32))), arity=1}(out %z[2,3], in %x[2,3])"
    ]


def test_shapes_may_differ_by_views(rewrite):
    body = f"{SUM}(out %s[2,3], in %x[2,3], in %x[2,3]/0,1)\n{NEG}(out %z[1,2,3], in %s[1,2,3])"
    assert rewrite(stack_elementwise, DECLARATIONS, body) == [
        "Elementwise{expressions=(neg(add(x0:f32, x1:f32))), arity=2}(out %z[1,2,3], in %x[1,2,3], in %x[1,2,3]/3,0,1)"
    ]


def test_other_outputs_of_the_producer_come_along(rewrite):
    two = "Elementwise{expressions=(neg(x0:f32), abs(x0:f32)), arity=1}"
    body = (
        f"{two}(out %s[2,3], out %t[2,3], in %x[2,3])\n{NEG}(out %z[2,3], in %s[2,3])\n"
        "Softmax(out %u[1,2,3], in %t[1,2,3])\nCopy(out %y[3,2], in %u[3,2]/1,3)"
    )
    assert rewrite(stack_elementwise, DECLARATIONS, body)[0] == (
        "Elementwise{expressions=(abs(x0:f32), neg(neg(x0:f32))), arity=1}(out %t[2,3], out %z[2,3], in %x[2,3])"
    )


def test_an_input_that_no_expression_reads_is_dropped(rewrite):
    ignore = "Elementwise{expressions=(neg(x1:f32)), arity=2}"
    body = f"{NEG}(out %s[2,3], in %x[2,3])\n{ignore}(out %z[2,3], in %s[2,3], in %x[2,3]/0,1)"
    assert rewrite(stack_elementwise, DECLARATIONS, body) == [
        "Elementwise{expressions=(neg(x0:f32)), arity=1}(out %z[2,3], in %x[2,3]/0,1)"
    ]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "Fill{bits=0}(out %s[2,3])\nCopy(out %t[2,3], in %s[2,3])\nCopy(out %s[2,3], in %t[2,3])\n"
            "Softmax(out %z[1,2,3], in %s[1,2,3])",
            id="there and back would be a copy in place",
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %z[2,3], in %s[2,3])\n{NEG}(out %y[3,2], in %s[3,2])",
            id="two readers",
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\n{SUM}(out %z[2,3], in %s[2,3], in %s[2,3]/0,1)", id="read in two ways"
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %z[2,3], in %s[2,3]/0,1)", id="would be computed repeatedly"
        ),
        pytest.param(f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %z[2,2]/3,1, in %s[2,2]/3,1)", id="read in part"),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %y[3,2], in %s[3,2]/1,3)", id="vectors would become strided"
        ),
        pytest.param(
            f"Fill{{bits=0}}(out %t[2,3])\n{NEG}(out %s[2,3], in %t[2,3])\nFill{{bits=7}}(out %t[2,3])\n"
            f"{SUM}(out %z[2,3], in %s[2,3], in %t[2,3])",
            id="an input is overwritten in between",
        ),
        pytest.param(
            f"Fill{{bits=0}}(out %t[2,3])\n{NEG}(out %s[2,3], in %t[2,3]/0,1)\n{NEG}(out %t[2,3], in %s[2,3])\n"
            f"Softmax(out %z[1,2,3], in %t[1,2,3])",
            id="the result would overlap an input in another view",
        ),
        pytest.param(
            "Elementwise{expressions=(neg(x0:f32), abs(x0:f32)), arity=1}(out %s[2,3], out %t[2,3], in %x[2,3])\n"
            "Softmax(out %z[1,2,3], in %t[1,2,3])\nCopy(out %y[3,2], in %s[3,2])",
            id="another output is read in between",
        ),
    ],
)
def test_instructions_stay_apart(rewrite, body):
    declarations = DECLARATIONS
    assert rewrite(stack_elementwise, declarations, body) == body.splitlines()


def test_operands_are_bounded(rewrite):
    count = MAX_OPERANDS + 2
    declarations = "output %z: f32[3]\n" + "".join(
        f"input %x{i}: f32[3]\nactivation %t{i}: f32[3]\n" for i in range(count)
    )
    lines = [f"{SUM}(out %t1[3], in %x0[3], in %x1[3])"]
    lines += (f"{SUM}(out %t{i}[3], in %t{i - 1}[3], in %x{i}[3])" for i in range(2, count))
    lines.append(f"{NEG}(out %z[3], in %t{count - 1}[3])")
    found = rewrite(stack_elementwise, declarations, "\n".join(lines))
    assert len(found) == 2
    assert max(line.count("in %") + line.count("out %") for line in found) == MAX_OPERANDS


def test_expressions_are_bounded(rewrite):
    """Every step doubles the tree; without a bound the last would have 2^12 leaves."""
    declarations = "input %x: f32[3]\noutput %z: f32[3]\n" + "".join(f"activation %t{i}: f32[3]\n" for i in range(12))
    lines = [f"{NEG}(out %t0[3], in %x[3])"]
    lines += (f"{SUM}(out %t{i}[3], in %t{i - 1}[3], in %t{i - 1}[3])" for i in range(1, 12))
    lines.append(f"{NEG}(out %z[3], in %t11[3])")
    found = rewrite(stack_elementwise, declarations, "\n".join(lines))
    assert 1 < len(found) < 6
    assert all(line.count("x0:f32") <= MAX_NODES for line in found)
