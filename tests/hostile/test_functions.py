"""Model-local functions: expanded with the meaning that ONNX Runtime gives them, within limits."""

from __future__ import annotations

import time

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import FunctionProto, ModelProto, TensorProto, helper, parser

import glowstone
from glowstone.errors import LimitError, ModelError

X = np.array([[-1.5, 0, 2], [3, -0.5, 1]], np.float32)


def check(text: str, expected: np.ndarray | None = None) -> None:
    """The model in onnx's text form gives y as ONNX Runtime, or as expected, for x [2, 3]."""
    model = parser.parse_model(text)
    before = model.SerializeToString()
    if expected is None:
        session = onnxruntime.InferenceSession(before, providers=["CPUExecutionProvider"])
        (expected,) = session.run(None, {"x": X})
    found = glowstone.compile(model, cache=False)(X)
    assert model.SerializeToString() == before
    np.testing.assert_allclose(found, expected, rtol=1e-6)


HEAD = """<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
agraph (float[2,3] x) => (float[2,3] y)"""


def test_attributes_with_defaults_and_references():
    check(f"""{HEAD} {{
        a = local.scaled <by: float = 2.0> (x)
        b = local.scaled (a)
        y = local.twice (b, x)
    }}
    <domain: "local", opset_import: ["" : 17]>
    scaled <by: float = 0.5> (v) => (w) {{ w = LeakyRelu <alpha: float = @by> (v) }}
    <domain: "local", opset_import: ["" : 17, "local" : 1]>
    twice (v, u) => (w) {{ t = local.scaled <by: float = 3.0> (v)  v2 = Mul (t, u)  w = Add (v2, t) }}
    """)


def test_names_of_the_caller_are_not_those_of_the_function():
    check(f"""{HEAD} {{
        t = Neg (x)
        s = local.f (t)
        z = local.f (x)
        w = Sub (s, z)
        y = Sub (w, t)
    }}
    <domain: "local", opset_import: ["" : 17]>
    f (x) => (y) {{ t = Exp (x)  y = Add (t, x) }}
    """)


def test_results_that_are_operands_and_operands_left_out():
    """ONNX Runtime refuses the former."""
    check(
        f"""{HEAD} {{
        a, b = local.both (x)
        c = local.limited (b)
        y = Add (a, c)
    }}
    <domain: "local", opset_import: ["" : 17]>
    both (v) => (v, w) {{ w = Abs (v) }}
    <domain: "local", opset_import: ["" : 17]>
    limited (v, low, high) => (w) {{ w = Clip (v, low, high) }}
    """,
        X + np.abs(X),
    )


def test_bodies_inside_functions_and_calls_inside_bodies():
    check(f"""{HEAD} {{
        total = ReduceSum <keepdims: int = 0> (x)
        zero = Constant <value_float: float = 0.0> ()
        is_large = Greater (total, zero)
        y = If (is_large) <
            then_branch = g1 () => (float[2,3] p) {{ p = local.choose <low: float = 0.25> (x) }},
            else_branch = g2 () => (float[2,3] q) {{ q = Neg (x) }}
        >
    }}
    <domain: "local", opset_import: ["" : 17]>
    choose <low: float> (x) => (y) {{
        p = Abs (x)
        zero = Constant <value_float: float = 0.0> ()
        small = ReduceMin <keepdims: int = 0> (x)
        c = Less (small, zero)
        y = If (c) <
            then_branch = h1 () => (float[2,3] r) {{ p2 = LeakyRelu <alpha: float = @low> (x)  r = Add (p, p2) }},
            else_branch = h2 () => (float[2,3] s) {{ s = Identity (p) }}
        >
    }}
    """)


def test_the_opset_of_the_function():
    """ReduceSum takes axes as an attribute up to opset 12, old Softmax flattens. ONNX Runtime refuses that."""
    scores = np.exp(X * X.sum(1, keepdims=True))
    check(
        f"""{HEAD} {{
        a = local.old (x)
        y = Add (a, x)
    }}
    <domain: "local", opset_import: ["" : 11]>
    old (v) => (w) {{ s = ReduceSum <axes: ints = [1], keepdims: int = 1> (v)
        t = Mul (v, s)  w = Softmax <axis: int = 0> (t) }}
    """,
        scores / scores.sum() + X,
    )


def laughing(levels: int, width: int) -> ModelProto:
    """Functions that each call the next several times: width ** levels nodes."""
    functions = [
        helper.make_function(
            "local",
            f"f{level}",
            ["v0"],
            [f"v{width}"],
            [
                helper.make_node(
                    *(
                        (f"f{level + 1}", [f"v{n}"], [f"v{n + 1}"])
                        if level + 1 < levels
                        else ("Neg", [f"v{n}"], [f"v{n + 1}"])
                    ),
                    domain="local" if level + 1 < levels else "",
                )
                for n in range(width)
            ],
            [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)],
        )
        for level in range(levels)
    ]
    return calling(functions)


def calling(functions: list[FunctionProto]) -> ModelProto:
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("f0", ["x"], ["y"], domain="local")], "g", ports[:1], ports[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=8)


def test_a_few_levels_are_expanded():
    np.testing.assert_array_equal(glowstone.compile(laughing(3, 3), cache=False)(X), -X)


@pytest.mark.parametrize(("levels", "width"), [(20, 10), (30, 2), (2, 5000)])
def test_exponential_expansion_is_refused_before_it_happens(levels, width):
    start = time.process_time()
    with pytest.raises(LimitError, match="node_limit"):
        glowstone.compile(laughing(levels, width), cache=False)
    assert time.process_time() - start < 20


def test_bytes_of_functions():
    names = "n" * 1000
    function = helper.make_function("local", "f0", ["v"], ["w"], [helper.make_node("Neg", ["v"], ["w"], name=names)],
                                    [helper.make_opsetid("", 17)])  # fmt: skip
    model = calling([function])
    assert glowstone.compile(model, cache=False)(X) is not None
    with pytest.raises(LimitError, match="function_byte_limit"):
        glowstone.compile(model, cache=False, options={"function_byte_limit": 500})


def test_recursion_and_depth():
    again = helper.make_function("local", "f0", ["v"], ["w"], [helper.make_node("f0", ["v"], ["w"], domain="local")],
                                 [helper.make_opsetid("local", 1)])  # fmt: skip
    with pytest.raises(ModelError, match="calls itself"):
        glowstone.compile(calling([again]), cache=False)
    with pytest.raises(LimitError, match="nesting_limit"):
        glowstone.compile(laughing(40, 1), cache=False)


def test_calls_that_do_not_fit():
    function = helper.make_function("local", "f0", [], ["w"], [helper.make_node("Neg", ["v"], ["w"])],
                                    [helper.make_opsetid("", 17)])  # fmt: skip
    with pytest.raises(ModelError, match="does not fit its function"):
        glowstone.compile(calling([function]), cache=False)
    with pytest.raises(ModelError, match="there twice"):
        glowstone.compile(calling([function, function]), cache=False)
    empty = onnx.FunctionProto(name="f0", domain="local", input=["v"], output=["w"])
    with pytest.raises(ModelError, match="computed by no node"):
        glowstone.compile(calling([empty]), cache=False)
