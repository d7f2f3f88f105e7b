"""Formulas exactly as PyTorch's, TensorFlow's and Paddle's exporters write them become one operator each.

Every form goes through the importer and the canonical passes, with symbolic extents, and keeps its meaning.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from helpers.graph_text import assert_same_results

from glowstone.graph import evaluate_graph, print_graph, rebuild
from glowstone.graph_passes import CANONICAL
from glowstone.importer import import_model, open_model
from networks.writer import NetworkWriter

FEATURES = 6
OTHER_BATCH = 3
OPSETS = (13, 18)
"""Before and since the axes of ReduceMean are an operand."""

Form = Callable[[NetworkWriter, str], str]


def mean(write: NetworkWriter, x: str) -> str:
    return write.reduce_mean(x, -1)


def inverse_root(write: NetworkWriter, x: str, epsilon: float = 1e-5) -> str:
    return write.node("Reciprocal", write.node("Sqrt", write.node("Add", x, write.constant(epsilon))))


def scale(write: NetworkWriter) -> str:
    return write.uniform(FEATURES)


def torch_layer_norm(write: NetworkWriter, x: str) -> str:
    return write.spelled_layer_normalization(x, scale(write), scale(write))


def tensorflow_layer_norm(write: NetworkWriter, x: str) -> str:
    """tf.nn.batch_normalization of the moments: x * (inverse * gamma) + (beta - mean * (inverse * gamma))."""
    centre = mean(write, x)
    difference = write.node("Sub", x, centre)
    variance = mean(write, write.node("Mul", difference, difference))
    factor = write.node("Mul", inverse_root(write, variance), scale(write))
    rest = write.node("Sub", scale(write), write.node("Mul", centre, factor))
    return write.node("Add", write.node("Mul", x, factor), rest)


def flax_layer_norm(write: NetworkWriter, x: str) -> str:
    """(x - mean) * (inverse * scale) + bias."""
    difference = write.node("Sub", x, mean(write, x))
    variance = mean(write, write.node("Mul", difference, difference))
    factor = write.node("Mul", inverse_root(write, variance), scale(write))
    return write.node("Add", write.node("Mul", difference, factor), scale(write))


def paddle_layer_norm(write: NetworkWriter, x: str) -> str:
    difference = write.node("Sub", x, mean(write, x))
    variance = mean(write, write.node("Pow", difference, write.constant([2.0])))
    deviation = write.node("Sqrt", write.node("Add", variance, write.constant([1e-5])))
    return write.node("Add", write.node("Mul", write.node("Div", difference, deviation), scale(write)), scale(write))


def torch_rms_norm(write: NetworkWriter, x: str) -> str:
    """Of Hugging Face's models: weight * (x * rsqrt)."""
    squares = mean(write, write.node("Pow", x, write.constant(2.0)))
    deviation = write.node("Sqrt", write.node("Add", squares, write.constant(1e-5)))
    inverse = write.node("Div", write.constant(1.0), deviation)
    return write.node("Mul", scale(write), write.node("Mul", x, inverse))


def flax_rms_norm(write: NetworkWriter, x: str) -> str:
    """x * (inverse * scale)."""
    squares = mean(write, write.node("Mul", x, x))
    return write.node("Mul", x, write.node("Mul", inverse_root(write, squares), scale(write)))


def paddle_rms_norm(write: NetworkWriter, x: str) -> str:
    squares = mean(write, write.node("Pow", x, write.constant([2.0])))
    return write.node("Mul", write.node("Mul", x, inverse_root(write, squares)), scale(write))


def torch_gelu(write: NetworkWriter, x: str) -> str:
    return write.gelu(x)


def tensorflow_gelu(write: NetworkWriter, x: str) -> str:
    """x * cdf with cdf = 0.5 * (1 + erf(x / sqrt(2)))."""
    error = write.node("Erf", write.node("Mul", x, write.constant(0.70710678)))
    return write.node("Mul", x, write.node("Mul", write.constant(0.5), write.node("Add", error, write.constant(1.0))))


def halved_gelu(write: NetworkWriter, x: str) -> str:
    """x * (0.5 + 0.5 * erf(x / sqrt(2))), where constants were multiplied out."""
    error = write.node("Erf", write.node("Mul", x, write.constant(0.70710678)))
    half = write.node("Mul", error, write.constant(0.5))
    return write.node("Mul", write.node("Add", half, write.constant(0.5)), x)


def jax_gelu(write: NetworkWriter, x: str) -> str:
    """0.5 * x * erfc(-x / sqrt(2)), where tf2onnx writes erfc as 1 - erf."""
    error = write.node("Erf", write.node("Mul", write.node("Neg", x), write.constant(0.70710678)))
    complement = write.node("Sub", write.constant(1.0), error)
    return write.node("Mul", write.node("Mul", write.constant(0.5), x), complement)


def paddle_gelu(write: NetworkWriter, x: str) -> str:
    error = write.node("Erf", write.node("Div", x, write.constant([1.4142135])))
    doubled = write.node("Mul", x, write.node("Add", error, write.constant([1.0])))
    return write.node("Mul", doubled, write.constant([0.5]))


def torch_tanh_gelu(write: NetworkWriter, x: str) -> str:
    cube = write.node("Mul", write.node("Mul", x, write.node("Mul", x, x)), write.constant(0.044715))
    curve = write.node("Tanh", write.node("Mul", write.constant(0.79788456), write.node("Add", x, cube)))
    half = write.node("Mul", write.constant(0.5), x)
    return write.node("Mul", half, write.node("Add", write.constant(1.0), curve))


def tensorflow_tanh_gelu(write: NetworkWriter, x: str) -> str:
    cube = write.node("Mul", write.constant(0.044715), write.node("Pow", x, write.constant(3.0)))
    curve = write.node("Tanh", write.node("Mul", write.node("Add", x, cube), write.constant(0.79788456)))
    gate = write.node("Mul", write.node("Add", curve, write.constant(1.0)), write.constant(0.5))
    return write.node("Mul", x, gate)


def torch_silu(write: NetworkWriter, x: str) -> str:
    return write.silu(x)


def paddle_swish(write: NetworkWriter, x: str) -> str:
    beta = write.constant([1.0])
    return write.node("Mul", x, write.node("Sigmoid", write.node("Mul", x, beta)))


def tensorflow_swish(write: NetworkWriter, x: str) -> str:
    """With the logistic spelled out."""
    power = write.node("Exp", write.node("Neg", x))
    logistic = write.node("Div", write.constant(1.0), write.node("Add", write.constant(1.0), power))
    return write.node("Mul", logistic, x)


def torch_hard_swish(write: NetworkWriter, x: str) -> str:
    line = write.node("Add", x, write.constant(3.0))
    gate = write.node("Clip", line, write.constant(0.0), write.constant(6.0))
    return write.node("Div", write.node("Mul", x, gate), write.constant(6.0))


def torch_hard_sigmoid_swish(write: NetworkWriter, x: str) -> str:
    return write.node("Mul", x, write.node("HardSigmoid", x, alpha=1 / 6))


def tensorflow_hard_swish(write: NetworkWriter, x: str) -> str:
    """x * relu6(x + 3) * (1 / 6)."""
    line = write.node("Relu", write.node("Add", x, write.constant(3.0)))
    gate = write.node("Min", line, write.constant(6.0))
    return write.node("Mul", write.node("Mul", x, gate), write.constant(0.16666667))


def keras_hard_swish(write: NetworkWriter, x: str) -> str:
    """x * relu6(x + 3) / 6 with the quotient taken first."""
    line = write.node("Add", x, write.constant(3.0))
    gate = write.node("Max", write.node("Min", line, write.constant(6.0)), write.constant(0.0))
    return write.node("Mul", x, write.node("Mul", gate, write.constant(0.16666667)))


def paddle_hard_swish(write: NetworkWriter, x: str) -> str:
    line = write.node("Add", x, write.constant([3.0]))
    gate = write.node("Clip", line, write.constant(0.0), write.constant(6.0))
    return write.node("Div", write.node("Mul", x, gate), write.constant([6.0]))


FORMS: dict[str, tuple[Form, ...]] = {
    "LayerNormalization": (torch_layer_norm, tensorflow_layer_norm, flax_layer_norm, paddle_layer_norm),
    "RMSNormalization": (torch_rms_norm, flax_rms_norm, paddle_rms_norm),
    "Gelu": (
        torch_gelu,
        tensorflow_gelu,
        halved_gelu,
        jax_gelu,
        paddle_gelu,
        torch_tanh_gelu,
        tensorflow_tanh_gelu,
    ),
    "Swish": (torch_silu, paddle_swish, tensorflow_swish),
    "HardSwish": (
        torch_hard_swish,
        torch_hard_sigmoid_swish,
        tensorflow_hard_swish,
        keras_hard_swish,
        paddle_hard_swish,
    ),
}
CASES = [(wanted, form, opset) for wanted, forms in FORMS.items() for form in forms for opset in OPSETS]


@pytest.mark.parametrize(
    ("wanted", "form", "opset"), CASES, ids=lambda part: part.__name__ if callable(part) else str(part)
)
def test_a_form_becomes_one_operator(wanted, form, opset):
    write = NetworkWriter("form", 0, opset)
    y = form(write, "x")
    model = write.float_model({"x": ("batch", 4, FEATURES)}, {"y": (y, ("batch", 4, FEATURES))})
    source = import_model(open_model(model), {"x": (2, 4, FEATURES)})
    graph = rebuild(source)
    for function in CANONICAL:
        function(graph)
    kinds = [node.operator.name for node in graph.nodes if node.operands]
    assert kinds == [wanted], print_graph(graph)
    for batch in (2, OTHER_BATCH):
        inputs = {"x": np.random.default_rng(batch).uniform(-5, 5, (batch, 4, FEATURES)).astype(np.float32)}
        shapes = {"x": inputs["x"].shape}
        found = evaluate_graph(rebuild(graph, shapes), inputs)
        assert_same_results(found, evaluate_graph(rebuild(source, shapes), inputs))
