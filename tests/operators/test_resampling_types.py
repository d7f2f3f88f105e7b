"""Operators that resample and combine, compiled for many element types, against the onnx package in float64."""

from __future__ import annotations

import functools

import numpy as np
import onnx
import pytest
from helpers.instructions import assert_instructions_agree
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.types import ElementType

F64, F32, F16, BF16 = ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16
TOLERANCES = {F64: 1e-6, F32: 1e-5, F16: 2e-3, BF16: 2e-2}
"""Largest differences, of the largest value; coordinates are computed in float32, as the scales are."""
INTEGERS = [ElementType.I32, ElementType.U8, ElementType.I64, ElementType.I16]
SHAPE = (2, 4, 6, 5)
OPSET = 22
random = np.random.default_rng(19)
POINTS = (random.integers(-10, 11, (2, 3, 2, 2)) / 8).astype(np.float32)
"""Exact in every type."""
ROWS = np.array([[1], [0], [1]])
REDUCTIONS = ("add", "mul", "max", "min")
FLOAT_RESULTS = ("linear", "cubic", "smooth", "sampled", "sampled_cubic", "aligned", "grid")


def model_of(kind: int, results: tuple[str, ...], shrinking: float) -> onnx.ModelProto:
    """Resampling of x [2, 4, 6, 5]; regions and maps are values of x's type."""
    initializers: list[onnx.TensorProto] = []

    def constant(array: np.ndarray) -> str:
        initializers.append(numpy_helper.from_array(array, f"c{len(initializers)}"))
        return str(initializers[-1].name)

    def typed(numbers: list[object]) -> str:
        array = np.array(numbers, helper.tensor_dtype_to_np_dtype(kind))
        return constant(array)

    scales = constant(np.array([1, 1, 2, shrinking], np.float32))
    folded = [constant(np.array(numbers, np.int64)) for numbers in ([4, 4], [2, 2])]
    nodes = {
        "linear": helper.make_node("Resize", ["x", "", scales], ["linear"], mode="linear"),
        "cubic": helper.make_node("Resize", ["x", "", scales], ["cubic"], mode="cubic"),
        "smooth": helper.make_node("Resize", ["x", "", scales], ["smooth"], mode="linear", antialias=1),
        "sampled": helper.make_node("GridSample", ["x", constant(POINTS)], ["sampled"]),
        "sampled_cubic": helper.make_node("GridSample", ["x", constant(POINTS)], ["sampled_cubic"], mode="cubic"),
    }
    if "aligned" in results:
        regions = typed([[0, 0, 4, 5], [1, 2, 3, 3]])
        images = constant(np.array([1, 0]))
        aligned = helper.make_node(
            "RoiAlign", ["x", regions, images], ["aligned"], output_height=2, output_width=2, sampling_ratio=2
        )
        maps = typed([[[1, 0.5, 0], [0.25, -1, 0.5]]])
        size = constant(np.array([1, 1, 2, 4], np.int64))
        nodes |= {"aligned": aligned, "grid": helper.make_node("AffineGrid", [maps, size], ["grid"])}
    for name in REDUCTIONS:
        nodes[name] = helper.make_node("ScatterND", ["x", constant(ROWS), "x3"], [name], reduction=name)
    prepared = [
        helper.make_node("Gather", ["x", constant(np.array([0, 1, 0]))], ["x3"]),
        helper.make_node("Reshape", ["x", constant(np.array([2, 4, 30]))], ["flat"]),
        helper.make_node("Slice", ["flat", *(constant(np.array([n])) for n in (0, 9, 2))], ["columns"]),
        helper.make_node("Col2Im", ["columns", *folded], ["image"]),
    ]
    chosen = [*prepared, *(nodes[name] for name in results if name != "image")]
    graph = helper.make_graph(
        chosen,
        "resampling",
        [helper.make_tensor_value_info("x", kind, SHAPE)],
        [helper.make_tensor_value_info(name, kind, None) for name in results],
        initializers,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


@functools.cache
def images(integers: bool) -> np.ndarray:
    numbers = np.random.default_rng(18).integers(0, 3, SHAPE)
    return numbers.astype(np.float64) if integers else numbers / 4 + 0.5


def check(element: ElementType, results: tuple[str, ...], tolerance: float, integers: bool) -> None:
    x = images(integers)
    shrinking = 0.5 if integers else 0.6  # with the first, weights and sums are exact
    wide = model_of(TensorProto.DOUBLE, results, shrinking)
    expected = ReferenceEvaluator(wide).run(None, {"x": x})
    model = glowstone.compile(model_of(helper.np_dtype_to_tensor_dtype(element.dtype), results, shrinking))
    found = model.run({"x": x.astype(element.dtype)})
    for name, array in zip(results, expected, strict=True):
        mine = found[name]
        assert mine.dtype == element.dtype
        wanted = np.trunc(array) if integers else np.asarray(array)
        limit = tolerance * np.abs(wanted).max()
        np.testing.assert_allclose(mine.astype(np.float64), wanted, rtol=0, atol=limit, err_msg=name)


@pytest.mark.parametrize("element", list(TOLERANCES), ids=str)
def test_floats(element):
    check(element, (*FLOAT_RESULTS, *REDUCTIONS, "image"), TOLERANCES[element], integers=False)


@pytest.mark.parametrize("element", INTEGERS, ids=str)
def test_integers(element):
    check(element, ("linear", *REDUCTIONS, "image"), 0, integers=True)


@pytest.mark.parametrize("element", [F32, F16], ids=str)
def test_instructions_mean_the_same_to_the_interpreter(element):
    results = (*FLOAT_RESULTS, *REDUCTIONS, "image")
    model = glowstone.compile(model_of(helper.np_dtype_to_tensor_dtype(element.dtype), results, 0.6))
    assert_instructions_agree(model, {"x": images(False).astype(element.dtype)})
