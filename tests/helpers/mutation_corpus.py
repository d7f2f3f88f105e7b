"""Small models of every kind, for mutants: blocks of networks, control flow, functions, and one model per operator."""

from __future__ import annotations

import collections
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from helpers.blocks import small_convnet, transformer_block
from helpers.conformance_worker import operators_of
from helpers.microsoft import node_model
from helpers.microsoft_cases import CASES
from helpers.networks import light

MOST_BYTES = 6000
"""Of a case of onnx's suite."""
CASES_PER_OPERATOR = 8
SLIMNESS = 16
IMAGE = 32
"""Pixels along each side of what the whole network takes."""
WEIGHTS = "weights.bin"
"""The file with the external data of a model of the corpus."""
WEIGHTS_BYTES = 96

TEXTS = {
    "loop": """<ir_version: 10, opset_import: ["" : 21]>
        main (int64 n, bool go, float["t", 5] x, float[4] h) => (float[4] y, float["n", 4] all)
        <float[5, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1}> {
          y, all = Loop(n, go, h) <body = step (int64 i, bool c, float[4] s) => (bool more, float[4] t, float[4] u) {
            more = Identity(c)
            row = Gather <axis = 0> (x, i)
            product = MatMul(row, w)
            sum = Add(product, s)
            t = Tanh(sum)
            u = Identity(t)
          }>
        }""",
    "scan": """<ir_version: 10, opset_import: ["" : 21]>
        main (float["t", 3] x, float[3] s) => (float[3] y, float["t", 3] all) {
          y, all = Scan <num_scan_inputs = 1, body = step (float[3] a, float[3] row) => (float[3] b, float[3] c) {
            b = Add(a, row)
            c = Mul(b, row)
          }> (s, x)
        }""",
    "branches": """<ir_version: 10, opset_import: ["" : 21]>
        main (bool c, int64 k, float[2, 3] x) => (float[2, 3] y) {
          y = If(c) <
            then_branch = outer () => (float[2, 3] a) {
              zero = Constant <value = int64 {0}> ()
              big = Greater(k, zero)
              a = If(big) <
                then_branch = inner () => (float[2, 3] p) { p = Exp(x) },
                else_branch = other () => (float[2, 3] q) { q = Neg(x) }
              >
            },
            else_branch = second () => (float[2, 3] b) { b = Softmax <axis = -1> (x) }
          >
        }""",
    "changing shapes": """<ir_version: 10, opset_import: ["" : 21]>
        main (int64 n, float[1, 2] x) => (float["m", 2] y, int64[2, "k"] places) {
          yes = Constant <value = bool {1}> ()
          y = Loop(n, yes, x) <body = grow (int64 i, bool c, float["r", 2] s) => (bool more, float["q", 2] t) {
            more = Identity(c)
            t = Concat <axis = 0> (s, s)
          }>
          places = NonZero(y)
        }""",
    "sequences": """<ir_version: 10, opset_import: ["" : 21]>
        main (float[2, 3] x, float[1, 3] z, int64 k) => (float[3, 3] y, float["a", 3] e, int64 n) {
          s = SequenceConstruct(x, z)
          y = ConcatFromSequence <axis = 0> (s)
          e = SequenceAt(s, k)
          n = SequenceLength(s)
        }""",
    "functions": """<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
        main (float["n", 4] x) => (float["n", 4] y) {
          a = local.twice <scale = 0.5> (x)
          b = local.twice <scale = 2.0> (a)
          y = local.activated (b)
        }
        <domain: "local", opset_import: ["" : 21]>
        twice <scale> (v) => (w) {
          s = Constant <value_float: float = @scale> ()
          d = Add(v, v)
          w = Mul(d, s)
        }
        <domain: "local", opset_import: ["" : 21, "local" : 1]>
        activated (v) => (w) {
          h = local.twice <scale = 1.0> (v)
          w = Relu(h)
        }""",
    "shapes": """<ir_version: 10, opset_import: ["" : 21]>
        main (float["a", "b", 4] x) => (float[r] y, float["a", "b", 2] z, float[s] e) {
          shape = Shape(x)
          start = Constant <value = int64[1] {0}> ()
          end = Constant <value = int64[1] {2}> ()
          axis = Constant <value = int64[1] {2}> ()
          head = Slice(shape, start, end)
          four = Constant <value = int64[2] {2, 2}> ()
          target = Concat <axis = 0> (head, four)
          y = Reshape(x, target)
          z = Slice(x, start, end, axis)
          one = Constant <value = float {1}> ()
          e = Expand(one, shape)
        }""",
    "quantized": """<ir_version: 10, opset_import: ["" : 21]>
        main (float[1, 3, 5, 5] x) => (float[1, 2, 3, 3] y)
        <float s = {0.1}, uint8 z = {128}, float t = {0.02}, int8 o = {0}> {
          q = QuantizeLinear(x, s, z)
          d = DequantizeLinear(q, s, z)
          k = DequantizeLinear(w, t, o)
          c = Conv(d, k)
          r = QuantizeLinear(c, s, z)
          y = DequantizeLinear(r, s, z)
        }""",
    "strings": """<ir_version: 10, opset_import: ["" : 21]>
        main (string[3] a, string[3] b) => (string[3] y, bool[3] same) {
          y = StringConcat(a, b)
          same = Equal(a, b)
        }""",
}


def corpus() -> dict[str, bytes]:
    """Every model by name."""
    models = {
        "convnet": small_convnet(),
        "transformer": transformer_block(),
        "network": _network(),
        "external data": _with_external_data(),
        "trees": _trees(),
        **{name: parser.parse_model(text) for name, text in TEXTS.items()},
        **{f"com.microsoft/{name}": model for name, model in _microsoft()},
        **{f"node/{case.name}": case.model for case in _cases()},
    }
    _with_weights(models["quantized"])
    return {name: model.SerializeToString(deterministic=True) for name, model in models.items()}


def write_weights(folder: Path) -> None:
    """The file that the model "external data" reads."""
    np.linspace(-1, 1, WEIGHTS_BYTES // 4, dtype=np.float32).tofile(folder / WEIGHTS)


def _network() -> onnx.ModelProto:
    model = light.build("squeezenet", SLIMNESS)
    for axis in (2, 3):
        model.graph.input[0].type.tensor_type.shape.dim[axis].dim_value = IMAGE
    return model


def _microsoft() -> Iterator[tuple[str, onnx.ModelProto]]:
    for kind, (operands, attributes) in CASES.items():
        fixed = [index for index, array in enumerate(operands) if array is not None and index]
        yield kind, node_model(kind, [operands], attributes)
        yield f"{kind} of constants", node_model(kind, [operands], attributes, fixed=fixed)


def _cases() -> list[TestCase]:
    """Some cases of onnx's suite for each set of operators, of different element types first."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = [case for case in load_model_tests(kind="node") if case.model is not None]
    groups = collections.defaultdict(dict)
    for case in sorted(cases, key=lambda case: case.name):
        if case.model.ByteSize() <= MOST_BYTES:
            groups[tuple(sorted(set(operators_of(case.model.graph))))].setdefault(_types(case.model), case)
    return [case for group in groups.values() for case in list(group.values())[:CASES_PER_OPERATOR]]


def _types(model: onnx.ModelProto) -> tuple[int, ...]:
    return tuple(entry.type.tensor_type.elem_type for entry in (*model.graph.input, *model.graph.output))


def _with_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The quantized model with its weights."""
    weights = np.arange(54, dtype=np.int8).reshape(2, 3, 3, 3)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


def _trees() -> onnx.ModelProto:
    """Two trees of five nodes, in columns."""
    node = helper.make_node(
        "TreeEnsembleRegressor",
        ["x"],
        ["y"],
        domain="ai.onnx.ml",
        n_targets=2,
        post_transform="NONE",
        nodes_treeids=[0] * 5 + [1] * 5,
        nodes_nodeids=[*range(5)] * 2,
        nodes_featureids=[0, 1, 0, 0, 0, 2, 0, 1, 0, 0],
        nodes_values=[0.5, -1.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.7, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "BRANCH_LT", *["LEAF"] * 3, "BRANCH_GT", "LEAF", "BRANCH_EQ", *["LEAF"] * 2],
        nodes_truenodeids=[1, 3, 0, 0, 0, 1, 0, 3, 0, 0],
        nodes_falsenodeids=[2, 4, 0, 0, 0, 2, 0, 4, 0, 0],
        nodes_missing_value_tracks_true=[0] * 10,
        target_treeids=[0, 0, 0, 1, 1, 1],
        target_nodeids=[2, 3, 4, 1, 3, 4],
        target_ids=[0, 1, 0, 1, 0, 1],
        target_weights=[1.0, -2.0, 0.5, 3.0, 4.0, -1.0],
    )
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2])],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def _with_external_data() -> onnx.ModelProto:
    weights = onnx.TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 5])
    weights.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", WEIGHTS), ("offset", "8"), ("length", "80")):
        weights.external_data.add(key=key, value=value)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "external",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
