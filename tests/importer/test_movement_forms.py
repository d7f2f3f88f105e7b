"""Every form, opset by opset, of the operators that move and resample: import and evaluate against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from glowstone.errors import GlowstoneError
from glowstone.graph import evaluate_graph
from glowstone.importer import import_model, open_model

X = np.random.default_rng(23).standard_normal((1, 4, 4, 6)).astype(np.float32)


def integers(*numbers):
    return np.array(numbers, np.int64)


def floats(*numbers):
    return np.array(numbers, np.float32)


PADS = [0, 0, 1, 2, 0, 0, 3, 0]
BOXES = floats(0, 0, 3, 4, 1, 1.5, 2, 2.5).reshape(2, 4)
POINTS = np.random.default_rng(24).uniform(-1.2, 1.2, (1, 3, 2, 2)).astype(np.float32)
UPDATES = X[:, :2, :1]
ZEROS = np.zeros((1, 2, 1, 6), np.int64)
FORMS = {
    "split in equal parts": ("Split", [7, 11, 13], {"axis": 3}, [], 3),
    "split by attribute": ("Split", [7, 11], {"axis": 1, "split": [1, 3]}, [], 2),
    "split by operand": ("Split", [13, 18], {"axis": 1}, [integers(1, 3)], 2),
    "split by number": ("Split", [18], {"axis": -1, "num_outputs": 4}, [], 4),
    "pad by attributes": ("Pad", [7, 10], {"pads": PADS, "value": 1.5}, [], 1),
    "pad mirrored, by attributes": ("Pad", [7, 10], {"pads": PADS, "mode": "reflect"}, [], 1),
    "pad by operands": ("Pad", [11, 13, 18], {}, [np.array(PADS), np.array(2, np.float32)], 1),
    "pad along axes": ("Pad", [18, 19], {"mode": "edge"}, [integers(1, 2), None, integers(-2)], 1),
    "pad from the other end": ("Pad", [19], {"mode": "wrap"}, [np.array(PADS)], 1),
    "tile": ("Tile", [7, 13], {}, [integers(1, 2, 1, 3)], 1),
    "depth to space": ("DepthToSpace", [7, 11, 13], {"blocksize": 2}, [], 1),
    "depth to space by columns": ("DepthToSpace", [11, 13], {"blocksize": 2, "mode": "CRD"}, [], 1),
    "space to depth": ("SpaceToDepth", [7, 13], {"blocksize": 2}, [], 1),
    "upsample by attribute": ("Upsample", [7, 8], {"scales": [1.0, 1.0, 2.0, 3.0]}, [], 1),
    "upsample by operand": ("Upsample", [9], {"mode": "linear"}, [floats(1, 1, 2, 2)], 1),
    "resize larger": ("Resize", [10], {}, [floats(1, 1, 2, 2.5)], 1),
    "resize smaller": ("Resize", [10], {}, [floats(1, 1, 0.6, 0.4)], 1),
    "resize to sizes": ("Resize", [11, 13, 18, 19], {"mode": "linear"}, [floats(), floats(), integers(1, 4, 7, 3)], 1),
    "scatter": ("Scatter", [9, 10], {"axis": 1}, [ZEROS[:, :1], UPDATES[:, :1]], 1),
    "scatter elements": ("ScatterElements", [11, 13, 16, 18], {"axis": 2}, [ZEROS, UPDATES], 1),
    "scatter rows": ("ScatterND", [11, 13, 16, 18], {}, [integers(0)[:, None], X * 2], 1),
    "one hot": ("OneHot", [9, 11], {"axis": 1}, [np.array(3, np.float32), floats(2, 5)], 1),
    "regions without half pixels": ("RoiAlign", [10], {"output_height": 2}, [BOXES, integers(0, 0)], 1),
    "regions with half pixels": ("RoiAlign", [16], {"output_width": 2}, [BOXES, integers(0, 0)], 1),
    "largest of regions": ("MaxRoiPool", [7, 11], {"pooled_shape": [2, 2]}, [np.pad(BOXES, ((0, 0), (1, 0)))], 1),
    "sampled by old names": ("GridSample", [16], {"mode": "bilinear"}, [POINTS], 1),
    "sampled": ("GridSample", [20], {"mode": "nearest"}, [POINTS], 1),
}
CASES = [(name, opset) for name, form in FORMS.items() for opset in form[1]]


def model_of(kind, opset, attributes, operands, results):
    names = ["x", *(f"c{index}" if operand is not None else "" for index, operand in enumerate(operands))]
    outputs = [f"y{index}" for index in range(results)]
    graph = helper.make_graph(
        [helper.make_node(kind, names, outputs, **attributes)],
        "form",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, f"c{index}") for index, array in enumerate(operands) if array is not None],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(("name", "opset"), CASES)
def test_form(name, opset):
    kind, _, attributes, operands, results = FORMS[name]
    model = model_of(kind, opset, attributes, operands, results)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = evaluate_graph(import_model(open_model(model)), {"x": X})
    for mine, theirs in zip(found.values(), session.run(None, {"x": X}), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


REFUSED = {
    "pads": ("Pad", 10, {}, []),
    "num_outputs": ("Split", 18, {"num_outputs": 2}, []),
    "blocksize": ("DepthToSpace", 13, {}, []),
    "attribute mode": ("DepthToSpace", 13, {"blocksize": 2, "mode": "XYZ"}, []),
    "scales": ("Upsample", 7, {}, []),
    "coordinate_transformation_mode": (
        "RoiAlign",
        16,
        {"coordinate_transformation_mode": "other"},
        [BOXES, integers(0, 0)],
    ),
    "pooled_shape": ("MaxRoiPool", 11, {}, [np.pad(BOXES, ((0, 0), (1, 0)))]),
}


@pytest.mark.parametrize("part", REFUSED)
def test_what_is_refused_is_named(part):
    kind, opset, attributes, operands = REFUSED[part]
    with pytest.raises(GlowstoneError) as caught:
        import_model(open_model(model_of(kind, opset, attributes, operands, 1)))
    assert part in caught.value.message
    assert caught.value.operator == kind
