"""FlexAttention against onnx's reference evaluator, as machine code."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.errors import GlowstoneError

random = np.random.default_rng(91)
DOMAIN = "ai.onnx.preview"
SHAPES = {"q": [2, 6, 5, 8], "k": [2, 3, 7, 8], "v": [2, 3, 7, 4]}


def modifier(kind, number, element=TensorProto.FLOAT, captured=None):
    """A graph of one operator on its input and a number, or on a value of the graph around."""
    other = captured or "number"
    constant = numpy_helper.from_array(np.asarray(number, helper.tensor_dtype_to_np_dtype(element)), "number")
    return helper.make_graph(
        [helper.make_node(kind, ["given", other], ["changed"])],
        "modifier",
        [helper.make_tensor_value_info("given", element, None)],
        [helper.make_tensor_value_info("changed", element, None)],
        [] if captured else [constant],
    )


def model_of(element=TensorProto.FLOAT, shapes=SHAPES, more=(), **attributes):
    inputs = [helper.make_tensor_value_info(name, element, shape) for name, shape in shapes.items()]
    node = helper.make_node("FlexAttention", ["q", "k", "v"], ["y"], domain=DOMAIN, **attributes)
    y = helper.make_tensor_value_info("y", element, None)
    graph = helper.make_graph([node], "attention", [*inputs, *more], [y])
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=11)


def arrays(dtype=np.float32, shapes=SHAPES):
    return {name: random.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"scale": 0.3},
        {"score_mod": modifier("Mul", 0.5)},
        {"score_mod": modifier("Add", np.linspace(-2, 2, 7)), "prob_mod": modifier("Mul", 0.25), "scale": 2.0},
    ],
    ids=["plain", "scaled", "scores", "both"],
)
def test_modifiers_and_groups_of_heads(attributes):
    proto, feeds = model_of(**attributes), arrays()
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    np.testing.assert_allclose(glowstone.compile(proto).run(feeds)["y"], expected, rtol=1e-5, atol=1e-6)


def test_any_number_of_features():
    """The scale follows from it; without features every score is zero."""
    symbolic = {"q": [2, 6, 5, "e"], "k": [2, 3, 7, "e"], "v": [2, 3, 7, 4]}
    proto = model_of(shapes=symbolic, score_mod=modifier("Add", 0.5))
    compiled = glowstone.compile(proto, shapes={"q": (2, 6, 5, 8), "k": (2, 3, 7, 8)})

    def drawn(features):
        return arrays(
            shapes={name: [features if one == "e" else one for one in dims] for name, dims in symbolic.items()}
        )

    for features in (8, 3, 24):
        feeds = drawn(features)
        (expected,) = ReferenceEvaluator(proto).run(None, feeds)
        np.testing.assert_allclose(compiled.run(feeds)["y"], expected, rtol=1e-5, atol=1e-6)
    feeds = drawn(0)
    mean = np.repeat(feeds["v"].mean(2, keepdims=True), 2, 1)
    np.testing.assert_allclose(compiled.run(feeds)["y"], np.broadcast_to(mean, (2, 6, 5, 4)), rtol=1e-5, atol=1e-6)


def test_half_precision_with_a_softmax_in_float64():
    proto = model_of(
        TensorProto.FLOAT16, softmax_precision=TensorProto.DOUBLE, prob_mod=modifier("Mul", 0.5, TensorProto.DOUBLE)
    )
    feeds = arrays(np.float16)
    (expected,) = ReferenceEvaluator(proto).run(None, feeds)
    np.testing.assert_allclose(glowstone.compile(proto).run(feeds)["y"], expected, rtol=5e-3, atol=1e-3)


def test_a_modifier_that_reads_a_value_around_it_at_any_shape():
    bias = helper.make_tensor_value_info("bias", TensorProto.FLOAT, ["keys"])
    shapes = {"q": ["n", 6, "l", 8], "k": ["n", 3, "keys", 8], "v": ["n", 3, "keys", 4]}
    proto = model_of(shapes=shapes, more=[bias], score_mod=modifier("Add", 0, captured="bias"))
    model = glowstone.compile(proto)
    for batch, queries, keys in ((2, 5, 7), (1, 1, 3), (3, 4, 9)):
        sizes = {"q": (batch, 6, queries, 8), "k": (batch, 3, keys, 8), "v": (batch, 3, keys, 4), "bias": (keys,)}
        feeds = arrays(shapes=sizes)
        scores = np.einsum("bhle,bhse->bhls", feeds["q"], feeds["k"].repeat(2, 1)) / np.sqrt(8) + feeds["bias"]
        chances = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        expected = chances @ feeds["v"].repeat(2, 1)
        np.testing.assert_allclose(model.run(feeds)["y"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("shapes", "attributes", "message"),
    [
        (SHAPES | {"q": [2, 6, 40]}, {}, "stand apart"),
        (SHAPES | {"q": [2, 5, 5, 8]}, {"score_mod": modifier("Mul", 0.5)}, "come in groups"),
        (SHAPES, {"score_mod": modifier("Less", 0.5)}, "keep its input's type"),
    ],
)
def test_what_is_refused(shapes, attributes, message):
    with pytest.raises(GlowstoneError, match=message):
        glowstone.compile(model_of(shapes=shapes, **attributes))
