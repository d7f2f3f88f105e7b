"""Inputs chosen to do harm: indices, counts and lengths out of range, numbers that are none.

Whatever they are, generated code touches nothing outside its arrays, which lie between pages without access; it gives a
result or an error, and the next run with good inputs gives what the first one gave.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from helpers.guarded import guarded_inputs
from onnx import ModelProto, helper

import glowstone
from glowstone.errors import ExecutionError, GlowstoneError

random = np.random.default_rng(0)

NUMBERS = (
    -(2**63),
    -(2**62),
    -(2**32),
    -(2**31) - 1,
    -(2**31),
    -1000,
    -7,
    -5,
    4,
    5,
    7,
    100,
    2**31 - 1,
    2**31,
    2**32,
    2**63 - 1,
)
FLOATS = (np.nan, np.inf, -np.inf, 3e38, -3e38, 1e10, -1e10, 2.0**31, -0.5, 1e-40)
MICROSOFT = "com.microsoft"


@dataclass(frozen=True)
class Case:
    """A node with good inputs, of which one is replaced by hostile ones."""

    kind: str
    inputs: Mapping[str, np.ndarray]
    hostile: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    opset: int = 18
    results: int = 1
    must_fail: bool = False
    """Whether every number of `NUMBERS` outside the range of good ones is an error."""

    def __str__(self) -> str:
        return f"{self.kind}.{self.hostile}"


def floats(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def integers(*values: Any, dtype: type = np.int64) -> np.ndarray:
    return np.array(values, dtype)


TREE = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [1, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_ids": [0, 0],
    "target_nodeids": [1, 2],
    "target_treeids": [0, 0],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}
RECURRENT = {"x": floats(4, 2, 3), "w": floats(1, 5, 3), "r": floats(1, 5, 5), "b": floats(1, 10)}
SEQUENCE = integers(4, 2, dtype=np.int32)
HEADS = {"num_heads": 2, "kv_num_heads": 2}

CASES = [
    Case("Gather", {"x": floats(4, 3), "i": integers(0, 3, -4)}, "i", {"axis": 0}, must_fail=True),
    Case("Gather", {"x": floats(3, 4), "i": integers(0, 3, -4, dtype=np.int32)}, "i", {"axis": 1}, must_fail=True),
    Case("GatherElements", {"x": floats(4, 3), "i": integers([0, 3, -4])}, "i", {"axis": 0}, must_fail=True),
    Case("GatherND", {"x": floats(4, 3), "i": integers([[0], [3], [-4]])}, "i", must_fail=True),
    Case("GatherND", {"x": floats(4, 4), "i": integers([[0, 1], [3, -4]])}, "i", must_fail=True),
    *(
        Case("ScatterElements", {"x": floats(4, 3), "i": integers([0, 3, -4]), "u": floats(1, 3)}, "i",
             {"axis": 0, "reduction": reduction}, must_fail=True)
        for reduction in ("none", "add", "max")
    ),
    *(
        Case("ScatterND", {"x": floats(4, 3), "i": integers([0], [3], [-4]), "u": floats(3, 3)}, "i",
             {"reduction": reduction}, must_fail=True)
        for reduction in ("none", "mul")
    ),
    Case("OneHot", {"i": integers(0, 3, -4), "d": integers(4), "v": floats(2)}, "i"),
    Case("OneHot", {"i": integers(0, 3, -4), "d": integers(4), "v": floats(2)}, "d"),
    Case("TopK", {"x": floats(4, 3), "k": integers(2)}, "k", {"axis": 0}, results=2),
    Case("TopK", {"x": floats(4, 3), "k": integers(2)}, "x", {"axis": 0}, results=2),
    Case("Slice", {"x": floats(4, 3), "s": integers(0, 0), "e": integers(3, 2)}, "s"),
    Case("Slice", {"x": floats(4, 3), "s": integers(0, 0), "e": integers(3, 2)}, "e"),
    Case("Slice", {"x": floats(4, 3), "s": integers(0), "e": integers(3), "a": integers(0), "t": integers(1)}, "t"),
    Case("Slice", {"x": floats(4, 3), "s": integers(0), "e": integers(3), "a": integers(0), "t": integers(1)}, "a"),
    Case("Pad", {"x": floats(4, 3), "p": integers(0, 1, 1, 0)}, "p"),
    Case("Pad", {"x": floats(4, 3), "p": integers(0, 1, 1, 0)}, "p", {"mode": "reflect"}),
    Case("NonMaxSuppression", {"b": floats(1, 6, 4), "s": floats(1, 2, 6), "m": integers(3)}, "m"),
    Case("NonMaxSuppression", {"b": floats(1, 6, 4), "s": floats(1, 2, 6), "m": integers(3)}, "b"),
    Case("NonMaxSuppression", {"b": floats(1, 6, 4), "s": floats(1, 2, 6), "m": integers(3)}, "s"),
    Case("RoiAlign", {"x": floats(2, 3, 6, 6), "r": np.abs(floats(3, 4)), "i": integers(0, 1, 0)}, "i",
         {"output_height": 2, "output_width": 2}, must_fail=True),
    Case("RoiAlign", {"x": floats(2, 3, 6, 6), "r": np.abs(floats(3, 4)), "i": integers(0, 1, 0)}, "r",
         {"output_height": 2, "output_width": 2}),
    Case("RoiAlign", {"x": floats(2, 3, 6, 6), "r": np.abs(floats(3, 4)), "i": integers(0, 1, 0)}, "r",
         {"output_height": 2, "output_width": 2, "sampling_ratio": 2, "mode": "max"}),
    Case("MaxRoiPool", {"x": floats(2, 3, 6, 6), "r": np.array([[0, 0, 0, 3, 3], [1, 1, 1, 5, 5]], np.float32)}, "r",
         {"pooled_shape": [2, 2]}),
    Case("ReverseSequence", {"x": floats(4, 2), "l": integers(4, 1)}, "l"),
    Case("LSTM", {"x": floats(4, 2, 3), "w": floats(1, 20, 3), "r": floats(1, 20, 5), "b": floats(1, 40),
         "l": SEQUENCE},
         "l", {"hidden_size": 5}, results=3),
    Case("GRU", {"x": floats(4, 2, 3), "w": floats(1, 15, 3), "r": floats(1, 15, 5), "b": floats(1, 30), "l": SEQUENCE},
         "l", {"hidden_size": 5}, results=2),
    Case("RNN", {**RECURRENT, "l": SEQUENCE}, "l", {"hidden_size": 5}, results=2),
    Case("RNN", {**RECURRENT, "l": SEQUENCE}, "x", {"hidden_size": 5}, results=2),
    Case("Range", {"a": integers(0).reshape(()), "b": integers(5).reshape(()), "c": integers(1).reshape(())}, "b"),
    Case("Range", {"a": integers(0).reshape(()), "b": integers(5).reshape(()), "c": integers(1).reshape(())}, "c"),
    Case("Reshape", {"x": floats(4, 3), "s": integers(3, 4)}, "s"),
    Case("Expand", {"x": floats(4, 1), "s": integers(4, 3)}, "s"),
    Case("Tile", {"x": floats(4, 3), "s": integers(2, 1)}, "s"),
    Case("ConstantOfShape", {"s": integers(2, 3)}, "s"),
    Case("Split", {"x": floats(4, 3), "s": integers(1, 3)}, "s", results=2),
    Case("CumSum", {"x": floats(4, 3), "a": integers(1).reshape(())}, "a"),
    Case("Trilu", {"x": floats(4, 3), "k": integers(1).reshape(())}, "k"),
    Case("Resize", {"x": floats(1, 1, 4, 4), "": np.zeros(0), "z": np.array([1, 1, 2, 2], np.float32)}, "z"),
    Case("Compress", {"x": floats(4, 3), "c": np.array([True, False, True])}, "x", {"axis": 0}),
    Case("Div", {"x": integers(7, -8, 9), "y": integers(1, -2, 3)}, "y"),
    Case("Div", {"x": integers(-(2**31), 5, 9, dtype=np.int32), "y": integers(2, 2, 3, dtype=np.int32)}, "y"),
    Case("Div", {"x": integers(-(2**63), 5, 9), "y": integers(2, 2, 3)}, "y"),
    Case("Mod", {"x": integers(-(2**63), 5, 9), "y": integers(2, 2, 3)}, "y"),
    Case("Mod", {"x": integers(7, 5, 9, dtype=np.int8), "y": integers(2, 2, 3, dtype=np.int8)}, "y"),
    Case("BitShift", {"x": integers(7, 5, 9, dtype=np.uint32), "y": integers(2, 2, 3, dtype=np.uint32)}, "y",
         {"direction": "LEFT"}),
    Case("Cast", {"x": floats(12)}, "x", {"to": 7}),
    Case("Cast", {"x": floats(12)}, "x", {"to": 3}),
    Case("QuantizeLinear", {"x": floats(12), "s": np.float32(0.5), "z": np.uint8(3)}, "x"),
    Case("GridSample", {"x": floats(1, 2, 4, 4), "g": floats(1, 3, 3, 2)}, "g"),
    Case("GridSample", {"x": floats(1, 2, 4, 4), "g": floats(1, 3, 3, 2)}, "g", {"padding_mode": "reflection"}),
    Case("GridSample", {"x": floats(1, 2, 4, 4), "g": floats(1, 3, 3, 2)}, "g", {"padding_mode": "border",
         "mode": "bicubic"}),
    Case("DeformConv", {"x": floats(1, 2, 5, 5), "w": floats(3, 2, 2, 2), "o": floats(1, 8, 4, 4)}, "o", opset=19),
    Case("MaxUnpool", {"x": floats(1, 1, 2, 2), "i": integers(0, 3, 8, 15).reshape(1, 1, 2, 2)}, "i",
         {"kernel_shape": [2, 2], "strides": [2, 2]}),
    Case("NegativeLogLikelihoodLoss", {"x": floats(3, 4), "t": integers(0, 3, 1)}, "t"),
    Case("SoftmaxCrossEntropyLoss", {"x": floats(3, 4), "t": integers(0, 3, 1)}, "t"),
    Case("RotaryEmbedding", {"x": floats(1, 2, 3, 4), "c": floats(5, 2), "s": floats(5, 2), "p": integers([0, 4,
         2])}, "p",
         opset=23),
    Case("TensorScatter", {"c": floats(2, 1, 4, 3), "u": floats(2, 1, 1, 3), "i": integers(0, 3)}, "i", opset=24),
    Case("ArrayFeatureExtractor", {"x": floats(2, 4), "i": integers(0, 3)}, "i", domain="ai.onnx.ml", must_fail=True),
    Case("TreeEnsembleRegressor", {"x": floats(9, 2)}, "x", TREE, domain="ai.onnx.ml"),
    Case("EmbedLayerNormalization",
         {"i": integers([0, 4, 2], dtype=np.int32), "s": integers([0, 1, 0], dtype=np.int32), "w": floats(5, 8),
          "p": floats(4, 8), "g": floats(2, 8), "a": floats(8), "b": floats(8)},
         "i", domain=MICROSOFT, results=2),
    Case("EmbedLayerNormalization",
         {"i": integers([0, 4, 2], dtype=np.int32), "s": integers([0, 1, 0], dtype=np.int32), "w": floats(5, 8),
          "p": floats(4, 8), "g": floats(2, 8), "a": floats(8), "b": floats(8)},
         "s", domain=MICROSOFT, results=2),
    Case("GroupQueryAttention",
         {"q": floats(1, 1, 8), "k": floats(1, 1, 8), "v": floats(1, 1, 8), "pk": floats(1, 2, 6, 4),
          "pv": floats(1, 2, 6, 4), "l": integers(3, dtype=np.int32), "n": integers(6, dtype=np.int32)},
         "l", HEADS, domain=MICROSOFT, results=3),
    Case("RotaryEmbedding", {"x": floats(1, 2, 3, 4), "p": integers([0, 4, 2]), "c": floats(5, 2), "s": floats(5,
         2)}, "p",
         domain=MICROSOFT),
]  # fmt: skip


def model_of(case: Case) -> ModelProto:
    names = list(case.inputs)
    results = [f"y{number}" for number in range(case.results)]
    ports = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in case.inputs.items()
        if name
    ]
    node = helper.make_node(case.kind, names, results, domain=case.domain, **case.attributes)
    outputs = [helper.make_tensor_value_info(name, 0, None) for name in results]
    opsets = [
        helper.make_opsetid("", case.opset),
        helper.make_opsetid("ai.onnx.ml", 3),
        helper.make_opsetid(MICROSOFT, 1),
    ]
    return helper.make_model(helper.make_graph([node], "g", ports, outputs), opset_imports=opsets, ir_version=10)


def hostile_values(array: np.ndarray) -> Sequence[np.ndarray]:
    """The array with one element, and with all elements, replaced by every hostile number that fits its type."""
    numbers: Sequence[Any] = FLOATS
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        numbers = [number for number in (*NUMBERS, 0, -1) if limits.min <= number <= limits.max]
    found = []
    for number in numbers:
        one = array.copy()
        one.reshape(-1)[-1] = number
        found += [one, np.full_like(array, number)]
    return found


def outcome_of(model: glowstone.Model, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray] | GlowstoneError:
    try:
        return model.run(inputs)
    except GlowstoneError as error:
        return error


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_outside_the_arrays_is_touched(case):
    good = {name: array for name, array in case.inputs.items() if name}
    model = glowstone.compile(model_of(case), memory_limit=64 << 20)
    before = model.run(good)
    for number, value in enumerate(hostile_values(case.inputs[case.hostile])):
        outcome = outcome_of(model, guarded_inputs({**good, case.hostile: value}, at_end=number % 4 < 2))
        if isinstance(outcome, GlowstoneError):
            assert outcome.message
            assert isinstance(outcome, ExecutionError) or not case.must_fail
        else:
            assert len(outcome) == case.results
            assert not case.must_fail or np.all((value >= -4) & (value < 4)), value
    after = model.run(good)
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
