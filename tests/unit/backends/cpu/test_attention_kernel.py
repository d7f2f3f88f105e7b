"""Attention in one kernel, against its parts in float64."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from instruction_check import Storage, check, sample
from onnx import TensorProto, helper

import glowstone
from glowstone.backends.cpu.kernels.attention import SCORE_BYTES
from glowstone.backends.cpu.operations import FusedAttention
from glowstone.lir import View
from glowstone.scalar import Input, Literal, apply
from glowstone.types import ElementType

F32 = ElementType.F32
SCALED = apply("mul", Input(F32, 0), Literal(F32, 0.25))
MASKED = apply("add", SCALED, Input(F32, 1))


def attention(q, k, v, mask=None):
    scores = np.matmul(q.astype(np.float64), k.astype(np.float64)) * (1 if mask is None else 0.25)
    scores = scores if mask is None else scores + mask
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.matmul(powers / powers.sum(axis=-1, keepdims=True), v.astype(np.float64))


def turned(view):
    """The matrix seen with rows and columns exchanged."""
    order = [*range(view.rank - 2), view.rank - 1, view.rank - 2]
    return View(view.buffer, view.offset, tuple(view.shape[i] for i in order), tuple(view.strides[i] for i in order))


@pytest.mark.parametrize("are_turned", [False, True])
@pytest.mark.parametrize(
    ("batch", "queries", "keys", "depth", "width"),
    [((), 1, 1, 1, 1), ((2,), 3, 17, 5, 33), ((1, 3), 7, 65, 17, 16), ((2, 2), 50, 13, 8, 3), ((1,), 13, 600, 24, 40)],
)
def test_attention(are_turned, batch, queries, keys, depth, width):
    q, k, v = sample((*batch, queries, depth)), sample((*batch, depth, keys)), sample((*batch, keys, width))
    storage = Storage()
    y = storage.result((*batch, queries, width))
    views = [y, storage.add(q)]
    for array in (k, v):
        swapped = np.ascontiguousarray(np.swapaxes(array, -1, -2))
        views.append(turned(storage.add(swapped)) if are_turned else storage.add(array))
    found = check(FusedAttention(), views, storage).arrays[0]
    expected = attention(q, k, v)
    assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()


def test_mask_and_scale():
    q, k, v = sample((2, 3, 9, 16)), sample((2, 3, 16, 21)), sample((2, 3, 21, 8))
    mask = np.where(np.arange(21) < 15, 0, -10000).astype(np.float32)
    storage = Storage()
    y = storage.result((2, 3, 9, 8))
    wide = storage.add(mask)
    spread = View(wide.buffer, wide.offset, (2, 3, 9, 21), (0, 0, 0, 1))
    found = check(FusedAttention(MASKED), [y, *map(storage.add, (q, k, v)), spread], storage).arrays[0]
    expected = attention(q, k, v, mask)
    assert np.abs(found - expected).max() <= 2e-5 * np.abs(expected).max()
    without = attention(q, k[..., :15], v[..., :15, :], np.zeros(15))
    assert np.abs(found - without).max() <= 2e-5 * np.abs(without).max()


def test_more_scores_than_a_unit_holds():
    keys = SCORE_BYTES // 4
    q, k, v = sample((14, 2), low=-1, high=1), sample((2, keys), low=-1, high=1), sample((keys, 3))
    storage = Storage()
    views = [storage.result((14, 3)), *map(storage.add, (q, k, v))]
    found = check(FusedAttention(), views, storage).arrays[0]
    expected = attention(q, k, v)
    assert np.abs(found - expected).max() <= 1e-5 * np.abs(v).max()


@pytest.mark.parametrize(("queries", "keys", "width"), [(0, 6, 5), (4, 6, 0), (4, 0, 5)])
def test_nothing_to_do(queries, keys, width):
    storage = Storage()
    views = [storage.result((queries, width)), *map(storage.add, (sample((queries, 3)), sample((3, keys))))]
    check(FusedAttention(), [*views, storage.add(sample((keys, width)))], storage)


def test_a_row_that_sees_nothing_is_not_a_number():
    """As the softmax of minus infinities is."""
    storage = Storage()
    mask = np.zeros((4, 9), np.float32)
    mask[2] = -np.inf
    views = [storage.result((4, 8)), *map(storage.add, (sample((4, 8)), sample((8, 9)), sample((9, 8)), mask))]
    found = check(FusedAttention(MASKED), views, storage).arrays[0]
    assert np.isnan(found[2]).all()
    assert np.isfinite(found[[0, 1, 3]]).all()


def model_of_attention(softmax_axis=-1, shared=False):
    """q k v as [heads, length, size]; the weights are an output too where `shared`."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["q", "kt"], ["products"]),
        helper.make_node("Softmax", ["products"], ["weights"], axis=softmax_axis),
        helper.make_node("MatMul", ["weights", "v"], ["y"]),
    ]
    shapes = {"q": [2, "s", 8], "k": [2, "t", 8], "v": [2, "t", 5]}
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, "s", 5])]
    if shared:
        outputs.append(helper.make_tensor_value_info("weights", TensorProto.FLOAT, [2, "s", "t"]))
    graph = helper.make_graph(nodes, "attention", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("arguments", "is_fused"), [({}, True), ({"softmax_axis": 1}, False), ({"shared": True}, False)]
)
def test_what_is_fused_and_other_shapes(arguments, is_fused):
    proto = model_of_attention(**arguments)
    onnx.checker.check_model(proto)
    shapes = {"q": (2, 6, 8), "k": (2, 11, 8), "v": (2, 11, 5)}
    model = glowstone.compile(proto, shapes=shapes)
    assert any("FusedAttention" in one["algorithm"] for one in model.report()["instructions"]) == is_fused
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for queries, keys in ((6, 11), (1, 1), (37, 70), (5, 2)):
        sizes = {"q": (2, queries, 8), "k": (2, keys, 8), "v": (2, keys, 5)}
        inputs = {name: sample(size) for name, size in sizes.items()}
        for found, expected in zip(model.run(inputs).values(), session.run(None, inputs), strict=True):
            assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
