"""Operators that move, pick and resample, compiled with symbolic extents: machine code at several shapes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone

random = np.random.default_rng(31)
IMAGES = ["n", 4, "h", "w"]
IMAGE_SHAPES = [(1, 4, 6, 4), (2, 4, 2, 8), (1, 4, 5, 3)]


def integers(*numbers):
    return np.array(numbers, np.int64)


def floats(*numbers):
    return np.array(numbers, np.float32)


def points(*shape):
    return random.uniform(-1.2, 1.2, shape).astype(np.float32)


RESIZE = {"scales": floats(1, 1, 2, 1.5)}
CASES = {
    "Split": (("Split", ["x"], {"axis": 2, "num_outputs": 2}), {}, IMAGES, [(1, 4, 6, 4), (2, 4, 7, 1)]),
    "Tile": (("Tile", ["x", "r"], {}), {"r": integers(1, 2, 1, 3)}, IMAGES, IMAGE_SHAPES),
    "Pad": (("Pad", ["x", "p"], {}), {"p": integers(0, 1, -1, 2, 1, 0, 2, 0)}, IMAGES, IMAGE_SHAPES),
    "Pad reflect": (
        ("Pad", ["x", "p"], {"mode": "reflect"}),
        {"p": integers(0, 1, 1, 2, 0, 0, 1, 0)},
        IMAGES,
        IMAGE_SHAPES,
    ),
    "DepthToSpace": (("DepthToSpace", ["x"], {"blocksize": 2}), {}, IMAGES, IMAGE_SHAPES),
    "SpaceToDepth": (("SpaceToDepth", ["x"], {"blocksize": 2}), {}, IMAGES, IMAGE_SHAPES[:2]),
    "Resize": (("Resize", ["x", "", "scales"], {}), RESIZE, IMAGES, IMAGE_SHAPES),
    "Resize linear": (("Resize", ["x", "", "scales"], {"mode": "linear"}), RESIZE, IMAGES, IMAGE_SHAPES),
    "Resize cubic": (("Resize", ["x", "", "scales"], {"mode": "cubic"}), RESIZE, IMAGES, IMAGE_SHAPES),
    "GridSample": (
        ("GridSample", ["x", "g"], {"padding_mode": "reflection"}),
        {"g": points(1, 3, 5, 2)},
        [1, 4, "h", "w"],
        [(1, 4, 6, 4), (1, 4, 2, 8)],
    ),
    "RoiAlign": (
        ("RoiAlign", ["x", "b", "i"], {"output_height": 2, "output_width": 3}),
        {"b": floats(0, 0, 3, 4, 1, 1.5, 2, 2.5).reshape(2, 4), "i": integers(0, 0)},
        IMAGES,
        IMAGE_SHAPES,
    ),
    "MaxRoiPool": (
        ("MaxRoiPool", ["x", "b"], {"pooled_shape": [2, 3]}),
        {"b": floats(0, 0, 0, 3, 4, 0, 1, 1.6, 2, 2.7).reshape(2, 5)},
        IMAGES,
        IMAGE_SHAPES,
    ),
    "GatherElements": (
        ("GatherElements", ["x", "i"], {"axis": 3}),
        {"i": np.array([0, -1, 1, 0]).reshape(1, 4, 1, 1)},
        IMAGES,
        IMAGE_SHAPES,
    ),
    "GatherND": (("GatherND", ["x", "i"], {}), {"i": np.array([[0, 2], [0, -1]])}, IMAGES, IMAGE_SHAPES),
    "ScatterElements": (
        ("ScatterElements", ["x", "i", "u"], {"axis": 2, "reduction": "add"}),
        {"i": np.array([0, 1, 0]).reshape(1, 1, 3, 1), "u": points(1, 1, 3, 1)},
        IMAGES,
        IMAGE_SHAPES,
    ),
    "ScatterND": (
        ("ScatterND", ["x", "i", "u"], {"reduction": "max"}),
        {"i": np.array([[0, 2, 1, 1], [0, -1, 0, 0]]), "u": points(2)},
        IMAGES,
        IMAGE_SHAPES,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_template_serves_all_shapes(name):
    (kind, operands, attributes), parameters, dimensions, shapes = CASES[name]
    outputs = ["y", "z"] if kind == "Split" else ["y"]
    graph = helper.make_graph(
        [helper.make_node(kind, operands, outputs, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dimensions)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None) for output in outputs],
        [numpy_helper.from_array(array, key) for key, array in parameters.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=9)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    model = glowstone.compile(proto, shapes={"x": shapes[0]})
    for shape in shapes:
        x = random.standard_normal(shape).astype(np.float32)
        found, expected = model.run({"x": x}), session.run(None, {"x": x})
        for output, array in zip(outputs, expected, strict=True):
            np.testing.assert_allclose(found[output], array, rtol=1e-4, atol=1e-5)
