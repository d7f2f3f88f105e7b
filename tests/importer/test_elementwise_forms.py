"""Operators that are elementwise or made from few numbers, in the forms of old opsets and at other extents."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from glowstone.errors import UnsupportedError
from glowstone.graph import evaluate_graph, rebuild
from glowstone.importer import import_model, open_model

SYMBOLS = ["a", "b", "c"]


def model(node, opset, symbols=SYMBOLS, constants=()):
    names = dict.fromkeys(name for name in node.input if name in "xy" and name)
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, symbols) for name in names]
    results = [helper.make_empty_tensor_value_info(name) for name in node.output]
    graph = helper.make_graph([node], "one", ports, results, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


FORMS = [
    (7, helper.make_node("Dropout", ["x"], ["r"], ratio=0.5)),
    (10, helper.make_node("Dropout", ["x"], ["r", "mask"])),
    (13, helper.make_node("Dropout", ["x"], ["r", "mask"])),
    (11, helper.make_node("LogSoftmax", ["x"], ["r"], axis=2)),
    (13, helper.make_node("LogSoftmax", ["x"], ["r"], axis=0)),
    (13, helper.make_node("Hardmax", ["x"], ["r"], axis=1)),
    (7, helper.make_node("Mean", ["x", "y", "x"], ["r"])),
    (13, helper.make_node("Mean", ["x"], ["r"])),
    (13, helper.make_node("Min", ["x", "y"], ["r"])),
    (13, helper.make_node("Size", ["x"], ["r"])),
    (14, helper.make_node("Trilu", ["x"], ["r"], upper=0)),
    (15, helper.make_node("CastLike", ["x", "integer"], ["r"])),
]


@pytest.mark.parametrize("extents", [(2, 3, 4), (2, 2, 1), (3, 5, 2)], ids=str)
@pytest.mark.parametrize(("opset", "node"), FORMS, ids=lambda value: getattr(value, "op_type", str(value)))
def test_forms_of_each_opset_at_any_extents(opset, node, extents):
    """Imported at one shape, rebuilt for another."""
    integer = helper.make_tensor("integer", TensorProto.INT64, [1], [0])
    proto = model(node, opset, constants=[integer] if "integer" in node.input else ())
    first = import_model(open_model(proto), dict.fromkeys(set(node.input) & {"x", "y"}, (3, 3, 3)))
    random = np.random.default_rng(1)
    arrays = {name: random.uniform(-3, 3, extents).astype(np.float32) for name in ("x", "y")}
    feeds = {value.name: arrays[value.name] for value in first.inputs}
    found = evaluate_graph(rebuild(first, dict.fromkeys(feeds, extents)), feeds)
    expected = ReferenceEvaluator(proto).run(None, feeds)
    for result, array in zip(found.values(), expected, strict=True):
        assert result.shape == np.shape(array)
        np.testing.assert_allclose(result, array, rtol=1e-5, atol=1e-6)


def test_logarithm_of_softmax_over_all_axes_from_one_on():
    """The form up to opset 12, which the onnx package has no reference for."""
    proto = model(helper.make_node("LogSoftmax", ["x"], ["r"]), 11)
    x = np.random.default_rng(2).uniform(-3, 3, (2, 3, 4)).astype(np.float32)
    graph = rebuild(import_model(open_model(proto), {"x": (5, 4, 3)}), {"x": x.shape})
    (found,) = evaluate_graph(graph, {"x": x}).values()
    powers = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(found, np.log(powers / powers.sum(axis=(1, 2), keepdims=True)), rtol=1e-5)


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        (helper.make_node("Gelu", ["x"], ["r"], approximate="fast"), 20),
        (helper.make_node("Cast", ["x"], ["r"], to=TensorProto.COMPLEX64), 13),
    ],
    ids=["Gelu", "Cast"],
)
def test_values_of_attributes_that_are_not_known(node, opset):
    with pytest.raises(UnsupportedError, match="not supported"):
        import_model(open_model(model(node, opset, [2, 3, 4])))
