"""Operators that only move elements, compiled for every element type.

The same model over int64 positions, run by the reference evaluator of the onnx package, says where each element of
each result comes from.
"""

from __future__ import annotations

import functools

import numpy as np
import onnx
import pytest
from helpers.instructions import assert_instructions_agree
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.types import ElementType

SHAPE = (2, 4, 4, 6)
OPSET = 24
SIZE = int(np.prod(SHAPE))


def integers(*numbers):
    return np.array(numbers, np.int64)


MOVES = {
    "tile": ("Tile", {}, (integers(1, 2, 1, 3),)),
    "to_space": ("DepthToSpace", {"blocksize": 2}, ()),
    "to_space_by_columns": ("DepthToSpace", {"blocksize": 2, "mode": "CRD"}, ()),
    "to_depth": ("SpaceToDepth", {"blocksize": 2}, ()),
    "transposed": ("Transpose", {"perm": [3, 1, 0, 2]}, ()),
    "sliced": ("Slice", {}, (integers(5, 0), integers(-7, 4), integers(3, 1), integers(-2, 3))),
    "expanded": ("Expand", {}, (integers(3, 1, 1, 1, 1),)),
    "picked": ("Gather", {"axis": 3}, (np.array([[5, -6], [0, 2]], np.int32),)),
    "picked_rows": ("Gather", {"axis": 1}, (integers(3, -4, 3),)),
    "gathered": ("GatherElements", {"axis": 2}, (np.arange(SIZE).reshape(SHAPE) * 7 % 4 - 2,)),
    "gathered_parts": ("GatherND", {"batch_dims": 1}, (np.array([[[0, 1], [3, -1]], [[2, 2], [-4, 0]]]),)),
    "mirrored": ("Pad", {"mode": "reflect"}, (integers(0, 0, 1, 2, 0, 0, 2, 3),)),
    "bordered": ("Pad", {"mode": "edge"}, (integers(1, 0, 0, 2, 0, 1, 0, 1),)),
    "wrapped": ("Pad", {"mode": "wrap"}, (integers(0, 0, 1, 2, 0, 0, 2, 3),)),
    "cropped": ("CenterCropPad", {"axes": [2, 3]}, (np.array([2, 3], np.int64),)),
    "resized": ("Resize", {"mode": "nearest"}, (None, np.array([1, 1, 2, 0.5], np.float32))),
    "squeezed": ("Unsqueeze", {}, (integers(0, -1),)),
}
"""By name of the result: the operator, its attributes, and its operands behind x."""
FURTHER = ["left", "middle", "right", "joined", "filled", "hot", "scattered", "rows_scattered", "cached"]
RESULTS = [*MOVES, *FURTHER]


ONLY_WIDE = {"resized"}
"""Results of operators that take no narrow numbers, for they may interpolate."""


def model_of(kind: int, left_out: frozenset[str] = frozenset()) -> onnx.ModelProto:
    """All moves of x [2, 4, 4, 6] of an element type, without some results."""
    initializers, nodes = [], []

    def constant(array: np.ndarray) -> str:
        initializers.append(onnx.numpy_helper.from_array(array, f"c{len(initializers)}"))
        return str(initializers[-1].name)

    for name, (operator, attributes, operands) in MOVES.items():
        if name in left_out:
            continue
        names = [constant(operand) if operand is not None else "" for operand in operands]
        nodes.append(helper.make_node(operator, ["x", *names], [name], **attributes))
    nodes += [
        helper.make_node("Split", ["x", constant(integers(1, 2, 3))], ["left", "middle", "right"], axis=3),
        helper.make_node("Slice", ["x", constant(integers(1)), constant(integers(2))], ["row"]),
        helper.make_node("Reshape", ["row", constant(integers(-1))], ["flat"]),
        helper.make_node("Slice", ["flat", constant(integers(3)), constant(integers(5))], ["pair"]),
        helper.make_node("Slice", ["flat", constant(integers(9)), constant(integers(10))], ["one"]),
        helper.make_node("Squeeze", ["one"], ["scalar"]),
        helper.make_node("Concat", ["x", "row", "x"], ["joined"], axis=0),
        helper.make_node("Pad", ["x", constant(integers(1, 2, 1, 2)), "scalar", constant(integers(3, 1))], ["filled"]),
        helper.make_node("OneHot", [constant(integers(0, 2, -1)), constant(np.array(3)), "pair"], ["hot"], axis=0),
        helper.make_node("ScatterElements", ["x", constant(np.zeros((1, 4, 4, 6), np.int64)), "row"], ["scattered"]),
        helper.make_node("ScatterND", ["x", constant(integers(1, 0, 1)[:, None]), "joined_part"], ["rows_scattered"]),
        helper.make_node("TensorScatter", ["x", "half", constant(integers(1, 3))], ["cached"], mode="circular"),
    ]
    nodes[-2:-2] = [
        helper.make_node("Slice", ["joined", constant(integers(0)), constant(integers(3))], ["joined_part"]),
        helper.make_node("Slice", ["x", *map(constant, (integers(0), integers(2), integers(2)))], ["half"]),
    ]
    outputs = [helper.make_tensor_value_info(name, kind, None) for name in RESULTS if name not in left_out]
    port = helper.make_tensor_value_info("x", kind, SHAPE)
    graph = helper.make_graph(nodes, "moves", [port], outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


@functools.cache
def sources() -> list[np.ndarray]:
    """For every result the positions in x that its elements come from."""
    positions = np.arange(SIZE, dtype=np.int64).reshape(SHAPE)
    return [
        np.asarray(result) for result in ReferenceEvaluator(model_of(TensorProto.INT64)).run(None, {"x": positions})
    ]


@pytest.mark.parametrize("element", list(ElementType), ids=str)
def test_elements_are_moved_bit_for_bit(element):
    random = np.random.default_rng(17)
    if element is ElementType.BOOL:
        x = random.integers(0, 2, SHAPE).astype(bool)
    else:
        content = random.integers(0, 256, SIZE * element.size, np.uint8)
        x = content.view(element.dtype).reshape(SHAPE)
    left_out = frozenset(ONLY_WIDE if element.is_narrow else ())
    model = glowstone.compile(model_of(helper.np_dtype_to_tensor_dtype(element.dtype), left_out))
    found = model.run({"x": x})
    for name, positions in zip(RESULTS, sources(), strict=True):
        if name in left_out:
            continue
        expected, result = x.reshape(-1)[positions], found[name]
        assert result.dtype == x.dtype
        assert result.shape == expected.shape, name
        assert np.ascontiguousarray(result).tobytes() == np.ascontiguousarray(expected).tobytes(), name


def test_instructions_mean_the_same_to_the_interpreter():
    x = np.random.default_rng(21).standard_normal(SHAPE).astype(np.float32)
    assert_instructions_agree(glowstone.compile(model_of(TensorProto.FLOAT)), {"x": x})
