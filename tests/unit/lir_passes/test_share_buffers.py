"""In-place results: which buffers are merged."""

import pytest

from glowstone.lir_passes import share_buffers

DECLARATIONS = """
input %x: f32[2,3]
output %z: f32[2,3]
output %o: f32[3,2]
activation %s: f32[2,3]
activation %t: f32[2,3]
activation %u: f32[2,3]
activation %w: f32[2,4]
"""
NEG = "Elementwise{expressions=(neg(x0:f32)), arity=1}"
SUM = "Elementwise{expressions=(add(x0:f32, x1:f32)), arity=2}"


def test_a_chain_uses_one_buffer_and_ends_in_the_output(rewrite):
    body = f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %t[2,3], in %s[2,3])\n{NEG}(out %z[2,3], in %t[2,3])"
    assert rewrite(share_buffers, DECLARATIONS, body) == [
        f"{NEG}(out %z[2,3], in %x[2,3])",
        f"{NEG}(out %z[2,3], in %z[2,3])",
        f"{NEG}(out %z[2,3], in %z[2,3])",
    ]


def test_the_second_operand_serves_where_the_first_lives_on(rewrite):
    body = (
        f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %t[2,3], in %s[2,3])\n{SUM}(out %u[2,3], in %s[2,3], in %t[2,3])\n"
        f"MatMul{{epilogue=None}}(out %o[2,2], in %s[2,3], in %u[3,2]/1,3)"
    )
    found = rewrite(
        share_buffers, DECLARATIONS.replace("%o: f32[3,2]", "%o: f32[2,2]").replace("output %z", "activation %z"), body
    )
    assert found[2] == f"{SUM}(out %t[2,3], in %s[2,3], in %t[2,3])"


def test_both_operands_the_same_view(rewrite):
    body = f"{NEG}(out %s[2,3], in %x[2,3])\n{SUM}(out %z[2,3], in %s[2,3], in %s[2,3])"
    assert rewrite(share_buffers, DECLARATIONS, body)[1] == f"{SUM}(out %z[2,3], in %z[2,3], in %z[2,3])"


def test_the_residual_of_a_product_is_replaced(rewrite):
    product = "MatMul{epilogue=add(x0:f32, x1:f32)}"
    names = ("input %x", "output %z", "activation %s", "activation %t")
    declarations = "\n".join(f"{name}: f32[2,2]" for name in names)
    body = f"""{NEG}(out %s[2,2], in %x[2,2])
    {product}(out %t[2,2], in %x[2,2], in %x[2,2], in %s[2,2])
    {NEG}(out %z[2,2], in %t[2,2])"""
    expected = f"{product}(out %z[2,2], in %x[2,2], in %x[2,2], in %z[2,2])"
    assert rewrite(share_buffers, declarations, body)[1] == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{NEG}(out %z[2,3], in %x[2,3])", id="inputs are not overwritten"),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %z[2,3], in %s[2,3])\nCopy(out %o[3,2], in %s[3,2])",
            id="the operand lives on",
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\n{SUM}(out %z[2,3], in %s[2,3], in %s[2,3]/0,1)",
            id="the operand is read another way too",
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\nFill{{bits=0}}(out %z[2,1]/3,1)\n{NEG}(out %z[2,3], in %s[2,3])",
            id="the result's buffer was in use before",
        ),
        pytest.param(
            f"{NEG}(out %w[2,3]/4,1, in %x[2,3])\n{NEG}(out %z[2,3], in %w[2,3]/4,1)", id="buffers of another size"
        ),
        pytest.param(f"{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %o[3,2], in %s[3,2]/1,3)", id="views that differ"),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\nCopy(out %z[2,3], in %s[2,3])", id="an operation that is never in place"
        ),
    ],
)
def test_buffers_stay_apart(rewrite, body):
    found = rewrite(share_buffers, DECLARATIONS, body)
    assert found == body.splitlines()


def test_an_anchor_operand_is_not_overwritten_by_its_result(rewrite):
    """The epilogue's extra operand is also the left matrix: in place would change what is still to be read."""
    product = "MatMul{epilogue=add(x0:f32, x1:f32)}"
    declarations = "input %x: f32[2,2]\noutput %z: f32[2,2]\nactivation %s: f32[2,2]\n"
    body = f"{NEG}(out %s[2,2], in %x[2,2])\n{product}(out %z[2,2], in %s[2,2], in %x[2,2], in %s[2,2])"
    assert rewrite(share_buffers, declarations, body) == body.splitlines()


def test_blocked_and_plain_buffers_stay_apart(rewrite):
    declarations = (
        "input %x: f32[1,1,1,1,8]\noutput %z: f32[8]\nactivation %s: f32[1,1,1,1,8] channels 8\nactivation %t: f32[8]\n"
    )
    body = f"{NEG}(out %s[8], in %x[8])\n{NEG}(out %t[8], in %s[8])\nCopy(out %z[8], in %t[8])"
    assert rewrite(share_buffers, declarations, body) == body.splitlines()


def test_blocked_buffers_of_other_shapes_stay_apart(rewrite):
    """Their padding lanes are at other places."""
    declarations = (
        "output %z: f32[8]\nactivation %s: f32[1,1,1,2,4] channels 3\nactivation %t: f32[1,2,1,1,4] channels 3\n"
    )
    body = f"Fill{{bits=0}}(out %s[8])\n{NEG}(out %t[8], in %s[8])\nCopy(out %z[8], in %t[8])"
    assert rewrite(share_buffers, declarations, body) == body.splitlines()
