"""Copies that go, and copies that must stay, each for one reason."""

import pytest

from glowstone.lir_passes import eliminate_copies

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


def test_readers_read_the_source_of_a_copy(rewrite):
    body = f"Copy(out %t[2,3], in %x[2,3])\n{SUM}(out %z[2,3], in %t[2,3], in %t[2,3]/0,1)"
    assert rewrite(eliminate_copies, DECLARATIONS, body) == [f"{SUM}(out %z[2,3], in %x[2,3], in %x[2,3]/0,1)"]


def test_the_producer_writes_the_destination(rewrite):
    body = f"{NEG}(out %t[2,3], in %x[2,3])\nCopy(out %z[2,3], in %t[2,3])"
    assert rewrite(eliminate_copies, DECLARATIONS, body) == [f"{NEG}(out %z[2,3], in %x[2,3])"]


def test_other_readers_read_the_destination(rewrite):
    body = f"{NEG}(out %s[2,3], in %x[2,3])\nCopy(out %z[2,3], in %s[2,3])\n{NEG}(out %y[3,2], in %s[3,2])"
    assert rewrite(eliminate_copies, DECLARATIONS, body) == [
        f"{NEG}(out %z[2,3], in %x[2,3])",
        f"{NEG}(out %y[3,2], in %z[3,2])",
    ]


def test_concatenation_writes_its_parts_in_place(rewrite):
    declarations = DECLARATIONS + "activation %c: f32[2,7]\noutput %o: f32[2,7]"
    body = f"""
    Fill{{bits=0}}(out %c[2,1]+3/7,1)
    {NEG}(out %s[2,3], in %x[2,3])
    {NEG}(out %t[2,3], in %s[2,3])
    Copy(out %c[2,3]/7,1, in %s[2,3])
    Copy(out %c[2,3]+4/7,1, in %t[2,3])
    {NEG}(out %z[2,3], in %c[2,3]+4/7,1)
    {NEG}(out %o[2,7], in %c[2,7])
    Copy(out %y[3,2], in %x[3,2]/1,3)
    """
    found = rewrite(eliminate_copies, declarations, body)
    assert f"{NEG}(out %c[2,3]+4/7,1, in %s[2,3])" in found
    assert "Copy(out %c[2,3]/7,1, in %s[2,3])" in found, "the other reader of s keeps it"
    assert len(found) == 7


def test_a_transposed_copy_is_read_through_by_a_matrix_product(rewrite):
    body = """
    Copy(out %t[3,2], in %x[3,2]/1,3)
    MatMul{epilogue=None}(out %o[2,2], in %x[2,3], in %t[3,2])
    """
    declarations = "input %x: f32[2,3]\noutput %o: f32[2,2]\nactivation %t: f32[3,2]"
    assert rewrite(eliminate_copies, declarations, body) == [
        "MatMul{epilogue=None}(out %o[2,2], in %x[2,3], in %x[3,2]/1,3)"
    ]


def test_copies_of_copies_become_one(rewrite):
    body = "Copy(out %t[3,2], in %x[3,2]/1,3)\nCopy(out %u[2,3], in %t[2,3]/1,2)\nCopy(out %y[3,2], in %u[3,2]/1,3)"
    assert rewrite(eliminate_copies, DECLARATIONS, body) == ["Copy(out %y[3,2], in %x[3,2]/1,3)"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("Copy(out %z[2,3], in %x[2,3])", id="from an input to an output"),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\nCopy(out %t[2,3], in %s[2,3])\n{NEG}(out %s[2,3], in %s[2,3])\n"
            f"{SUM}(out %z[2,3], in %s[2,3], in %t[2,3])",
            id="the source is overwritten before the last reader",
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\nCopy(out %t[2,3], in %s[2,3])\n"
            "MatMul{epilogue=None}(out %s[2,3], in %x[2,2]/3,1, in %t[2,3])\n"
            f"Copy(out %z[2,3], in %s[2,3])\n{NEG}(out %y[3,2], in %s[3,2])",
            id="the reader overwrites the source",
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\nCopy(out %z[2,3], in %s[2,3])\n{NEG}(out %z[2,3], in %z[2,3])\n"
            f"{NEG}(out %y[3,2], in %s[3,2])",
            id="the destination is overwritten before the last reader of the source",
        ),
        pytest.param(
            f"Fill{{bits=0}}(out %z[2,3])\n{NEG}(out %s[2,3], in %x[2,3])\n{NEG}(out %y[3,2], in %z[3,2])\n"
            "Copy(out %z[2,3], in %s[2,3])",
            id="the destination is used between producer and copy",
        ),
        pytest.param(
            f"Copy(out %t[3,2], in %x[3,2]/1,3)\n{SUM}(out %y[3,2], in %t[3,2], in %t[3,2])",
            id="vectors would become strided",
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\nCopy(out %y[3,2], in %s[3,2]/1,3)",
            id="a strided result of an elementwise",
        ),
        pytest.param(
            "Copy(out %t[2,3], in %x[2,3]/0,1)\nSoftmax(out %z[1,2,3], in %t[1,2,3])\n".replace(
                "%x[2,3]/0,1", "%x[2,3]/1,0"
            ),
            id="the reader does not accept the strides",
        ),
        pytest.param(
            "Copy(out %t[2,2]/3,1, in %x[2,2]/3,1)\nCopy(out %t[2,1]+2/3,1, in %x[2,1]/3,1)\n"
            f"{NEG}(out %z[2,3], in %t[2,3])",
            id="the destination has two writers",
        ),
        pytest.param(
            f"{NEG}(out %s[2,3], in %x[2,3])\nFill{{bits=0}}(out %z[2,3])\nCopy(out %z[2,2]/3,1, in %s[2,2]/3,1)",
            id="only a part of the result is copied",
        ),
    ],
)
def test_a_copy_stays(rewrite, body):
    found = rewrite(eliminate_copies, DECLARATIONS, body)
    assert found == [line.strip() for line in body.strip().splitlines()]


def test_nothing_to_copy(rewrite):
    declarations = "input %e: f32[0,3]\noutput %o: f32[0,3]"
    assert rewrite(eliminate_copies, declarations, "Copy(out %o[0,3], in %e[0,3])") == []
