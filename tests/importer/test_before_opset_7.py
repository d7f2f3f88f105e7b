"""Forms that ended with opset 6 or before, against what the specification of that opset says, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper, numpy_helper

from glowstone.errors import GlowstoneError, ModelError, UnsupportedError
from glowstone.graph import evaluate_graph
from glowstone.host import host_rule
from glowstone.importer import import_model, open_model, rule_for

X = np.random.default_rng(7).uniform(-2, 2, (2, 3, 4, 4)).astype(np.float32)
PER_CHANNEL = np.array([0.5, -1.5, 2.0], np.float32)
WIDE = PER_CHANNEL[:, None, None]
PLANE = X[0, 0]
BOOLEANS = X[0, 0] > 0
VARIANCES = np.abs(X[0]) + 1
GEMM = (PLANE @ PLANE.T) * 2 + PLANE[0]
MEAN, VARIANCE = X.mean((0, 2, 3)), X.var((0, 2, 3))


def integers(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def batch_norm(mean: np.ndarray, variance: np.ndarray, scale: np.ndarray = WIDE) -> np.ndarray:
    return (X - mean) / np.sqrt(variance + 1e-5) * scale + scale


MEANS = batch_norm(MEAN[:, None, None], VARIANCE[:, None, None])
MOVED = [PER_CHANNEL * np.float32(0.75) + now * np.float32(0.25) for now in (MEAN, VARIANCE)]

CASES: list[tuple[str, int, dict[str, Any], list[np.ndarray], list[np.ndarray]]] = [
    # operator, opset, attributes, operands, results
    ("Add", 1, {"broadcast": 1, "axis": 1, "consumed_inputs": [0, 0]}, [X, PER_CHANNEL], [X + WIDE]),
    ("Add", 6, {"broadcast": 1, "axis": -3}, [X, PER_CHANNEL], [X + WIDE]),
    ("Sub", 6, {"broadcast": 1}, [X, PLANE], [X - PLANE]),
    ("Sub", 6, {"broadcast": 1, "axis": 0}, [X, X[:, :1, 0, 0]], [X - X[:, :1, :1, :1]]),
    ("Mul", 1, {"broadcast": 1}, [X, np.float32(3).reshape(())], [X * 3]),
    ("Mul", 6, {}, [X, X], [X * X]),
    ("Div", 6, {"broadcast": 1, "axis": 2}, [X, VARIANCES[0]], [X / VARIANCES[0]]),
    ("Pow", 1, {"broadcast": 1}, [VARIANCES, np.float32(2).reshape(1)], [VARIANCES**2]),
    ("And", 1, {"broadcast": 1, "axis": 0}, [BOOLEANS, BOOLEANS[0]], [BOOLEANS & BOOLEANS[0][:, None]]),
    ("Or", 1, {"broadcast": 1}, [BOOLEANS, BOOLEANS[0]], [BOOLEANS | BOOLEANS[0]]),
    ("Xor", 1, {}, [BOOLEANS, BOOLEANS], [BOOLEANS ^ BOOLEANS]),
    ("Equal", 1, {"broadcast": 1, "axis": 0}, [integers(1, 2), integers(2, 2)], [np.array([False, True])]),
    ("Greater", 1, {"broadcast": 1, "axis": 1}, [X, PER_CHANNEL], [X > WIDE]),
    ("Less", 6, {"broadcast": 1, "axis": 1}, [X, PER_CHANNEL], [X < WIDE]),
    ("Max", 1, {}, [X, X * 2], [np.maximum(X, X * 2)]),
    ("Mean", 1, {}, [X, X * 2], [X * 1.5]),
    ("Sum", 6, {}, [X, X, X], [X * 3]),
    ("Relu", 1, {"consumed_inputs": [0]}, [X], [np.maximum(X, 0)]),
    ("Clip", 1, {"min": -0.5}, [X], [np.maximum(X, -0.5)]),
    ("PRelu", 1, {}, [X, PER_CHANNEL], [np.where(X < 0, X * WIDE, X)]),
    ("PRelu", 6, {}, [X, PER_CHANNEL[:1]], [np.where(X < 0, X * 0.5, X)]),
    ("Cast", 1, {"to": "INT32"}, [X * 10], [(X * 10).astype(np.int32)]),
    ("Cast", 6, {"to": TensorProto.INT32}, [X * 10], [(X * 10).astype(np.int32)]),
    ("Concat", 1, {}, [X, X], [np.concatenate([X, X], 1)]),
    ("Concat", 1, {"axis": 3}, [X, X], [np.concatenate([X, X], 3)]),
    ("Reshape", 1, {"shape": [0, -1, 8]}, [X], [X.reshape(2, -1, 8)]),
    ("Reshape", 5, {}, [X, integers(0, -1, 8)], [X.reshape(2, -1, 8)]),
    ("Split", 1, {"axis": 2}, [X, integers(1, 3)], [X[:, :, :1], X[:, :, 1:]]),
    ("Split", 1, {"axis": 2, "split": [1, 3]}, [X], [X[:, :, :1], X[:, :, 1:]]),
    ("Split", 2, {"axis": -1}, [X], np.split(X, 2, -1)),
    ("Pad", 1, {"paddings": [0, 0, 1, 2, 0, 0, 3, 0], "value": 2.0}, [X], []),
    ("Pad", 2, {"pads": [0, 0, 1, 2, 0, 0, 3, 0], "mode": "reflect"}, [X], []),
    ("Tile", 1, {}, [X, integers(3), integers(1)], [np.tile(X, (1, 3, 1, 1))]),
    ("Tile", 6, {}, [X, integers(1, 3, 1, 2)], [np.tile(X, (1, 3, 1, 2))]),
    ("Upsample", 1, {"height_scale": 2.0, "width_scale": 3.0}, [X], [X.repeat(2, 2).repeat(3, 3)]),
    ("LpPool", 1, {"kernel_shape": [4, 4], "p": 2.0}, [X], [np.sqrt((X * X).sum((2, 3), keepdims=True))]),
    ("GlobalLpPool", 1, {"p": 1.0}, [X], [np.abs(X).sum((2, 3), keepdims=True)]),
    ("AveragePool", 1, {"kernel_shape": [4, 4], "pads": [1, 1, 1, 1], "strides": [9, 9]}, [X], []),
    ("Gemm", 6, {"broadcast": 1, "transB": 1, "alpha": 2.0}, [PLANE, PLANE, PLANE[0]], [GEMM]),
    ("Squeeze", 1, {"axes": [0]}, [X[:1]], [X[0]]),
    ("Slice", 1, {"starts": [1], "ends": [9], "axes": [2]}, [X], [X[:, :, 1:]]),
    ("TopK", 1, {"k": 2, "axis": 1}, [X], [-np.sort(-X, 1)[:, :2], np.argsort(-X, 1)[:, :2]]),
    ("Dropout", 1, {"is_test": 1}, [X], [X, np.ones_like(X)]),
    ("Dropout", 6, {"is_test": 1, "ratio": 0.9}, [X], [X]),
    (
        "BatchNormalization",
        6,
        {"is_test": 1},
        [X, *[PER_CHANNEL] * 3, VARIANCES[:, 0, 0]],
        [batch_norm(WIDE, VARIANCES[:, :1, :1])],
    ),
    ("BatchNormalization", 6, {"spatial": 0}, [X, *[X[0]] * 3, VARIANCES], [batch_norm(X[0], VARIANCES, X[0])]),
    ("BatchNormalization", 6, {"momentum": 0.75}, [X, *[PER_CHANNEL] * 4], [MEANS, *MOVED, MEAN, VARIANCE]),
    ("InstanceNormalization", 1, {}, [X[:1], PER_CHANNEL, PER_CHANNEL], []),
]
PADDED = ((0, 0), (0, 0), (1, 3), (2, 0))
LATER = {
    ("Pad", 1): [np.pad(X, PADDED, constant_values=2)],
    ("Pad", 2): [np.pad(X, PADDED, mode="reflect")],
    ("AveragePool", 1): [X[:, :, :3, :3].mean((2, 3), keepdims=True)],
    ("InstanceNormalization", 1): [
        (X[:1] - X[:1].mean((2, 3), keepdims=True)) / np.sqrt(X[:1].var((2, 3), keepdims=True) + 1e-5) * WIDE + WIDE
    ],
}
"""Results that are too long for the table."""


def model(kind: str, opset: int, attributes: dict[str, Any], operands: list[np.ndarray], count: int) -> onnx.ModelProto:
    """One node whose first operand is an input, and the others initializers."""
    names = [f"x{index}" for index in range(len(operands))]
    outputs = [helper.make_tensor_value_info(f"y{index}", TensorProto.UNDEFINED, None) for index in range(count)]
    element = helper.np_dtype_to_tensor_dtype(operands[0].dtype)
    graph = helper.make_graph(
        [helper.make_node(kind, names, [output.name for output in outputs], **attributes)],
        "old",
        [helper.make_tensor_value_info("x0", element, operands[0].shape)],
        outputs,
        [numpy_helper.from_array(array, name) for name, array in zip(names[1:], operands[1:], strict=True)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


@pytest.mark.parametrize(
    ("kind", "opset", "attributes", "operands", "results"), CASES, ids=[f"{case[0]}-{case[1]}" for case in CASES]
)
def test_old_forms(kind, opset, attributes, operands, results):
    results = results or LATER[kind, opset]
    graph = import_model(open_model(model(kind, opset, attributes, operands, len(results))))
    found = evaluate_graph(graph, {"x0": operands[0]})
    for index, expected in enumerate(results):
        assert found[f"y{index}"].shape == expected.shape
        np.testing.assert_allclose(found[f"y{index}"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "attributes", "operands", "error", "message"),
    [
        ("Add", {"broadcast": 1, "axis": 3}, [X, X[0, 0]], ModelError, "behind attribute axis"),
        ("Add", {"broadcast": 1, "axis": 1}, [X, PLANE[0]], GlowstoneError, "broadcast"),
        ("Cast", {"to": "DECIMAL"}, [X], ModelError, "no element type"),
        ("Reshape", {}, [X], ModelError, "shape is missing"),
        ("Pad", {}, [X], ModelError, "paddings is missing"),
        ("Tile", {}, [X, integers(1, 2), integers(0)], ModelError, "no single integers"),
        ("Upsample", {"height_scale": 2.0}, [X], ModelError, "two scales"),
        ("GlobalLpPool", {"p": 1.5}, [X], UnsupportedError, "attribute p"),
    ],
)
def test_what_does_not_fit(kind, attributes, operands, error, message):
    with pytest.raises(error, match=message):
        import_model(open_model(model(kind, 1, attributes, operands, 1)))


def test_files_older_than_opsets_mean_the_first():
    proto = model("Reshape", 1, {"shape": [6, 16]}, [X], 1)
    del proto.opset_import[:]
    proto.ir_version = 2
    graph = import_model(open_model(proto))
    np.testing.assert_array_equal(evaluate_graph(graph, {"x0": X})["y0"], X.reshape(6, 16))


def test_an_operator_that_is_read_at_all_is_read_in_every_opset():
    """From the first schema that the onnx package knows of it."""
    schemas = [schema for schema in defs.get_all_schemas_with_history() if schema.domain in ("", "ai.onnx.ml")]
    holes = {
        f"{schema.name}-{schema.since_version}"
        for schema in schemas
        if rule_for(schema.name, defs.onnx_opset_version(), schema.domain)
        and not rule_for(schema.name, schema.since_version, schema.domain)
        and not host_rule(schema.name, schema.domain)
    }
    assert len(schemas) > 400
    assert not holes
