"""Operators that are decomposed: one compiled model with symbolic extents, run at several shapes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import glowstone

random = np.random.default_rng(101)
OPSET = 27
EXTENTS = [
    {"n": 1, "h": 4, "w": 5, "s": 3, "t": 5, "p": 2},
    {"n": 2, "h": 7, "w": 3, "s": 1, "t": 6, "p": 4},
    {"n": 3, "h": 4, "w": 4, "s": 6, "t": 6, "p": 1},
]


@dataclass(frozen=True)
class Case:
    """A node; shapes of its inputs, text for symbolic extents; their types where not float32; and weights."""

    kind: str
    inputs: dict[str, tuple[str | int, ...]]
    outputs: int = 1
    weights: dict[str, np.ndarray] = field(default_factory=dict)
    attributes: dict[str, object] = field(default_factory=dict)
    types: dict[str, type] = field(default_factory=dict)
    order: tuple[str, ...] = ()


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


QKV = {"q": ("n", 4, "s", 8), "k": ("n", 2, "t", 8), "v": ("n", 2, "t", 6)}
CASES = [
    Case("Conv", {"x": ("n", 3, "w")}, weights={"k": normal(5, 3, 3), "b": normal(5)}, attributes={"pads": [1, 1]}),
    Case(
        "ConvTranspose",
        {"x": ("n", 3, "h", "w")},
        weights={"k": normal(3, 4, 3, 3), "b": normal(4)},
        attributes={"strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 0]},
    ),
    Case(
        "ConvTranspose",
        {"x": ("n", 3, "h", "w")},
        weights={"k": normal(3, 2, 3, 2)},
        attributes={"strides": [2, 2], "auto_pad": "SAME_UPPER"},
    ),
    Case("Attention", QKV),
    Case("Attention", QKV | {"mask": ("s", "t")}, types={"mask": np.bool_}),
    Case("Attention", QKV | {"mask": ("n", 1, "s", "t")}, attributes={"is_causal": 1, "softcap": 3.0}),
    Case(
        "Attention",
        QKV | {"past_key": ("n", 2, "p", 8), "past_value": ("n", 2, "p", 6)},
        outputs=3,
        attributes={"is_causal": 1},
        order=("q", "k", "v", "", "past_key", "past_value"),
    ),
    Case(
        "RotaryEmbedding",
        {"x": ("n", 4, "s", 8), "places": ("n", "s")},
        weights={"cosines": normal(9, 4), "sines": normal(9, 4)},
        types={"places": np.int64},
        order=("x", "cosines", "sines", "places"),
    ),
    Case("Einsum", {"a": ("n", "h", "s"), "b": ("n", "t", "s")}, attributes={"equation": "nhs,nts->thn"}),
    Case("Einsum", {"a": ("n", "s", "s")}, attributes={"equation": "nss->sn"}),
    Case(
        "DequantizeLinear",
        {"x": ("n", 8, "w"), "scale": ("n", 4, "w")},
        attributes={"axis": 1, "block_size": 2},
        types={"x": np.int8},
    ),
    Case("CausalConvWithState", {"x": ("n", 3, "w")}, outputs=2, weights={"k": normal(3, 1, 4)}),
    Case(
        "LinearAttention",
        {"q": ("n", "s", 16), "k": ("n", "s", 8), "v": ("n", "s", 6)},
        outputs=2,
        attributes={"q_num_heads": 4, "kv_num_heads": 2, "update_rule": "linear"},
    ),
]


def model_of(case: Case):
    names = case.order or (*case.inputs, *case.weights)
    outputs = [f"y{number}" for number in range(case.outputs)]
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(element_of(case, name))), shape)
        for name, shape in case.inputs.items()
    ]
    graph = helper.make_graph(
        [helper.make_node(case.kind, names, outputs, **case.attributes)],
        "one",
        ports,
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in case.weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])


def element_of(case: Case, name: str) -> type:
    return case.types.get(name, np.float32)


def feeds_of(case: Case, extents: dict[str, int]) -> dict[str, np.ndarray]:
    feeds = {}
    for name, dimensions in case.inputs.items():
        shape = tuple(extents[extent] if isinstance(extent, str) else extent for extent in dimensions)
        element = element_of(case, name)
        if element is np.float32:
            feeds[name] = normal(*shape)
        elif element is np.bool_:
            feeds[name] = random.uniform(size=shape) > 0.5
        else:
            feeds[name] = random.integers(0, 9, shape).astype(element)
    return feeds


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind)
def test_every_shape_of_one_model(case):
    proto = model_of(case)
    model = glowstone.compile(proto)
    evaluator = ReferenceEvaluator(proto)
    for extents in EXTENTS:
        feeds = feeds_of(case, extents)
        for found, expected in zip(model.run(feeds).values(), evaluator.run(None, feeds), strict=True):
            assert found.shape == expected.shape
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
