"""The smallest cases of faults that random graphs found: reference, interpreter and machine code give what is written.

Some were wrong in one of the three, some in all but one.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from helpers.graph_execution import compile_graph, interpret_graph
from helpers.operator_samples import side_by_side

from glowstone import ops
from glowstone.errors import ExecutionError, GlowstoneError
from glowstone.graph import ErrorSample, Sample, as_tuple
from glowstone.types import ElementType, TensorType

NAN, INFINITY = np.nan, np.inf
LARGE = 2**31 - 1
CASES = {
    "a leading axis that nearest neighbours cut": (
        Sample(ops.Resize("nearest", "align_corners", "ceil"), (np.float32([[1, 2], [3, 4]]), None, None, [1, 3])),
        np.float32([[1, 2, 2]]),
    ),
    "more is cut away at one end than there is": (
        Sample(ops.Pad(), (np.int16([5, 6, 7]), np.array([-4, 3]))),
        np.int16([0, 0]),
    ),
    "more is cut away at the other end": (
        Sample(ops.Pad(), (np.int16([5, 6, 7]), np.array([3, -4]))),
        np.int16([0, 0]),
    ),
    "the norm of a scalar": (Sample(ops.ReduceL2(None, True), (np.float32(-2.5),)), np.float32(2.5)),
    "the square of one element": (Sample(ops.ReduceSumSquare((0,), True), (np.float32([-3]),)), np.float32([9])),
    "a mean of integers whose sum is none of the type": (
        Sample(ops.ReduceMean((0,), False), (np.uint16([65535, 65535, 5]),)),
        np.uint16(43691),
    ),
    "no logarithm among the integers": (Sample(ops.ReduceLogSum((0,), False), (np.int32([-9, 2]),)), np.int32(0)),
    "a difference of integers that is none of the type": (
        Sample(ops.DequantizeLinear(), (np.int32([LARGE]), np.float32(1), np.int32(-LARGE))),
        np.float32([2.0 * LARGE]),
    ),
    "no index among the floats": (
        Sample(ops.OneHot(), (np.float32([NAN, 1]), np.array(2), np.float32([1, 5]))),
        np.float32([[5, 1], [1, 5]]),
    ),
    "large integers among more": (
        Sample(ops.Resize(), (np.int64([2**62 + 1, 3]), None, None, np.array([4]))),
        np.int64([2**62 + 1, 2**62 + 1, 3, 3]),
    ),
    "large integers moved": (
        Sample(
            ops.GridSample("nearest", "border"),
            (np.int64([[[[2**62 + 1, 3]]]]), np.float32([[[[-1, 0], [1, 0]]]])),
        ),
        np.int64([[[[2**62 + 1, 3]]]]),
    ),
    "infinity turned": (
        Sample(ops.RotaryEmbedding(), (np.float32([[[[INFINITY, 1]]]]), np.float32([[[0.5]]]), np.float32([[[0.5]]]))),
        np.float32([[[[INFINITY, INFINITY]]]]),
    ),
    "points outside of an image of no numbers": (
        Sample(
            ops.RoiAlign("average", True, (1, 1), 1),
            (np.full((1, 1, 2, 2), NAN, np.float32), np.float32([[-9, -9, -7, -7]]), np.array([0])),
        ),
        np.float32([[[[0]]]]),
    ),
    "nothing put where there is no zero": (
        Sample(ops.CenterCropPad((0,)), (np.ones(1, ml_dtypes.float8_e8m0fnu), np.array([2]))),
        np.array([1, 2.0**-127]).astype(ml_dtypes.float8_e8m0fnu),
    ),
    "products of integers that are none of the type": (
        Sample(ops.Conv((1,), (1,), (0, 0)), (np.int32([[[LARGE, 3]]]), np.int32([[[2]]]))),
        np.int32([[[-2, 6]]]),
    ),
    "padding and weights that are not finite": (
        Sample(
            ops.Conv(pads=(1, 0, 0, 1, 0, 0), strides=(1, 1, 1), dilations=(1, 1, 1)),
            (np.float32([2]).reshape(1, 1, 1, 1, 1), np.float32([1, INFINITY, 3]).reshape(1, 1, 3, 1, 1)),
        ),
        np.float32(INFINITY).reshape(1, 1, 1, 1, 1),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results(name):
    sample, expected = CASES[name]
    arrays = tuple(None if array is None else np.asarray(array) for array in sample.operands)
    graph, feeds = side_by_side([Sample(sample.operator, arrays)])
    (reference,) = as_tuple(sample.operator.reference(*arrays))
    for found in (reference, *interpret_graph(graph, feeds).values(), *compile_graph(graph).run(feeds).values()):
        assert np.asarray(found).dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


REFUSED = {
    "a sequence longer than its steps": Sample(
        ops.ReverseSequence(0, 1), (np.zeros((2, 2), np.float32), np.array([1, 9]))
    ),
    "a class that is none": Sample(ops.NegativeLogLikelihoodLoss(), (np.zeros((1, 3), np.float32), np.array([4]))),
    "a position that is none": Sample(
        ops.RotaryEmbedding(),
        (np.zeros((1, 1, 1, 2), np.float32), *[np.zeros((5, 1), np.float32)] * 2, np.array([[7]])),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_values_that_are_refused(name):
    sample = REFUSED[name]
    graph, feeds = side_by_side([sample])
    for run in (
        lambda: sample.operator.reference(*sample.operands),
        lambda: interpret_graph(graph, feeds),
        lambda: compile_graph(graph).run(feeds),
    ):
        with pytest.raises(ExecutionError):
            run()


def one_of_each(*shapes):
    return tuple(TensorType(ElementType.F32, shape) for shape in shapes)


F64 = TensorType(ElementType.F64, (2, 2))
ILL_TYPED = {
    "factors": ErrorSample(ops.Gemm(), (*one_of_each((2, 2)), F64), "different element types"),
    "a bias": ErrorSample(
        ops.Conv(), (*one_of_each((1, 1, 2, 2), (1, 1, 1, 1)), F64.with_shape((1,))), "different element types"
    ),
    "the anchor of a fused node": ErrorSample(ops.Fused(), (F64, F64, F64), "do not go together"),
    "the number of operands of a map": ErrorSample(ops.Map(ops.Map().body, 1), one_of_each((2,), (2,)), "go together"),
    "the rank of a state": ErrorSample(
        ops.LinearRecurrence(), one_of_each((1, 1, 1, 2), (1, 1, 1, 2), (1, 1, 3), (1, 1, 2, 3)), "other ranks"
    ),
    "the element type of a cell": ErrorSample(
        ops.Recurrence(),
        (F64.with_shape((4, 3, 5)), F64.with_shape((5, 5)), np.array([1, 1, 1]), F64.with_shape((3, 5))),
        "the cell's element type",
    ),
    "a shape that is no list": ErrorSample(ops.ConstantOfShape(), (np.array([[2, 2]]),), "no list of extents"),
}


@pytest.mark.parametrize("name", ILL_TYPED)
def test_operands_that_are_refused(name):
    with pytest.raises(GlowstoneError, match=ILL_TYPED[name].message):
        side_by_side([ILL_TYPED[name]])
