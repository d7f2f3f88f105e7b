"""Resize: where the coordinates of every mode lie, in exact fractions; shapes; what is not resized."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import onnx
import pytest
from helpers.reports import check, check_nodes, normal, one_node

HALF = Fraction(1, 2)


def coordinate(index, source, target, transformation):
    """The place in the source of an element of the target, exactly."""
    scale = Fraction(source, target)
    match transformation:
        case "asymmetric":
            return index * scale
        case "align_corners":
            return Fraction(index * (source - 1), target - 1) if target > 1 else Fraction(0)
        case "pytorch_half_pixel" if target == 1:
            return Fraction(0)
    return (index + HALF) * scale - HALF


ROUNDINGS = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda place: math.ceil(place - HALF),
    "round_prefer_ceil": lambda place: math.floor(place + HALF),
}


def nearest(x, axis, target, transformation, rounding):
    """One axis resized to the nearest element."""
    source = x.shape[axis]
    places = (ROUNDINGS[rounding](coordinate(i, source, target, transformation)) for i in range(target))
    return np.take(x, [min(max(place, 0), source - 1) for place in places], axis)


def to_sizes(x, *extents, **attributes):
    """A Resize to these extents, with any float attributes."""
    return one_node("Resize", x, None, None, np.array(extents, np.int64), fixed=[3], **attributes)


@pytest.mark.parametrize("transformation", ["half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners"])
def test_nearest_elements_are_those_of_exact_coordinates(transformation):
    """onnxruntime#28310: 26 to 64 elements, where a rounded scale picked a neighbour."""
    nodes, expected = [], []
    for rounding in ROUNDINGS:
        for source, target in ((26, 64), (3, 8), (8, 3), (5, 1)):
            x = normal(1, 2, source)
            modes = {"mode": "nearest", "nearest_mode": rounding, "coordinate_transformation_mode": transformation}
            nodes.append(to_sizes(x, 1, 2, target, **modes))
            expected.append([nearest(x, 2, target, transformation, rounding)])
    check_nodes(*nodes, expected=expected)


def test_every_transformation_has_lines_of_its_own():
    """onnxruntime#17564, glow#5630: align_corners gave what asymmetric gives, or asymmetric was all there was."""
    nodes, expected = [], []
    for transformation in ("align_corners", "asymmetric", "half_pixel"):
        for source, target in ((4, 7), (5, 3), (6, 6)):
            x = normal(1, 1, 2, source)
            places = [float(coordinate(i, source, target, transformation)) for i in range(target)]
            lines = [np.interp(places, np.arange(source), row) for row in x[0, 0].astype(np.float64)]
            nodes.append(to_sizes(x, 1, 1, 2, target, mode="linear", coordinate_transformation_mode=transformation))
            expected.append([np.float32([[lines]])])
    check_nodes(*nodes, expected=expected)


def test_cubic_down_to_one_element():
    """onnxruntime#11496: bicubic, 4 x 4 to 1 x 1."""
    check_nodes(
        *(
            to_sizes(normal(1, 1, 4, 4), 1, 1, target, 9, mode="cubic", coordinate_transformation_mode=transformation)
            for transformation in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
            for target in (1, 2, 9)
        )
    )


def test_axes_that_keep_their_extent_are_copied():
    """onnxruntime#5151: rounding up moved the batch by one."""
    x = normal(3, 2, 2, 4)
    scales = np.array([1, 1, 2, 2], np.float32)
    check_nodes(
        *(
            one_node("Resize", x, None, scales, fixed=[2], mode="nearest", nearest_mode=rounding)
            for rounding in ROUNDINGS
        ),
        expected=[
            [nearest(nearest(x, 2, 4, "half_pixel", rounding), 3, 8, "half_pixel", rounding)] for rounding in ROUNDINGS
        ],
    )


@pytest.mark.parametrize("mode", ["linear", "nearest"])
@pytest.mark.parametrize("begin", [0.4, -0.25])
def test_extents_of_a_crop(mode, begin):
    """onnxruntime#10727, tvm#18133: scales are of the whole extent, in the evaluator as in ONNX's shape inference."""
    x = normal(1, 1, 6, 10)
    part = np.array([0, 0, begin, 0.5, 1, 1, 0.9, 1], np.float32)
    model, feeds = one_node(
        "Resize",
        x,
        part,
        np.array([1, 1, 1.5, 0.6], np.float32),
        fixed=[1, 2],
        mode=mode,
        coordinate_transformation_mode="tf_crop_and_resize",
        extrapolation_value=-7.0,
    )
    inferred = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape
    compiled = check(model, feeds)
    assert [dim.dim_value for dim in inferred.dim] == list(compiled(x).shape) == [1, 1, 9, 6]
