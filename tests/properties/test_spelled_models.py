"""Operators spelled out as exporters do, through the whole compiler: with random halves of the graph passes left out,
and at shapes other than the reference shape, against ONNX Runtime.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from helpers.agreement import assert_agrees
from helpers.random_models import ModelWriter

import glowstone
from glowstone.graph_passes import CANONICAL, LOWERED
from glowstone.importer import import_model, open_model

FEATURES = 12
HEADS = 3
CHANNELS = 6
PASSES = sorted({function.__name__ for function in (*CANONICAL, *LOWERED)})


def scalar(writer: ModelWriter, value: float, rank: int = 0) -> str:
    return writer.constant(np.full((1,) * rank, value, np.float32))


def mean_of_squares(writer: ModelWriter, x: str) -> str:
    squares = writer.emit("Pow", x, scalar(writer, 2.0))
    return writer.emit("Add", writer.emit("ReduceMean", squares, axes=[-1]), scalar(writer, 1e-5, 1))


def layer_norm(writer: ModelWriter, x: str) -> str:
    centred = writer.emit("Sub", x, writer.emit("ReduceMean", x, axes=[-1]))
    root = writer.emit("Sqrt", mean_of_squares(writer, centred))
    normal = writer.emit("Mul", centred, writer.emit("Reciprocal", root))
    return writer.emit("Add", writer.emit("Mul", normal, writer.weight(FEATURES)), writer.weight(FEATURES))


def rms_norm(writer: ModelWriter, x: str) -> str:
    normal = writer.emit("Div", x, writer.emit("Sqrt", mean_of_squares(writer, x)))
    return writer.emit("Mul", writer.weight(FEATURES), normal)


def gelu(writer: ModelWriter, x: str) -> str:
    curve = writer.emit("Erf", writer.emit("Div", x, scalar(writer, np.sqrt(2))))
    return writer.emit(
        "Mul", writer.emit("Mul", x, writer.emit("Add", curve, scalar(writer, 1.0))), scalar(writer, 0.5)
    )


def tanh_gelu(writer: ModelWriter, x: str) -> str:
    cube = writer.emit("Mul", scalar(writer, 0.044715, 1), writer.emit("Pow", x, scalar(writer, 3.0)))
    line = writer.emit("Mul", writer.emit("Add", x, cube), scalar(writer, np.sqrt(2 / np.pi)))
    gate = writer.emit("Add", scalar(writer, 1.0), writer.emit("Tanh", line))
    return writer.emit("Mul", writer.emit("Mul", scalar(writer, 0.5), x), gate)


def heads(writer: ModelWriter, x: str, permutation: list[int]) -> str:
    shape = writer.constant(np.array([0, -1, HEADS, FEATURES // HEADS]))
    product = writer.emit("Add", writer.emit("MatMul", x, writer.weight(FEATURES, FEATURES)), writer.weight(FEATURES))
    return writer.emit("Transpose", writer.emit("Reshape", product, shape), perm=permutation)


def attention(writer: ModelWriter, x: str) -> str:
    queries, values = heads(writer, x, [0, 2, 1, 3]), heads(writer, x, [0, 2, 1, 3])
    scores = writer.emit("MatMul", writer.emit("Div", queries, scalar(writer, 2.0)), heads(writer, x, [0, 2, 3, 1]))
    powers = writer.emit("Exp", scores)
    weights = writer.emit("Div", powers, writer.emit("ReduceSum", powers, writer.constant(np.array([-1]))))
    joined = writer.emit("Transpose", writer.emit("MatMul", weights, values), perm=[0, 2, 1, 3])
    flat = writer.emit("Reshape", joined, writer.constant(np.array([0, 0, FEATURES])))
    return writer.emit("Add", x, flat)


def text_model() -> bytes:
    """Tokens [batch, length, FEATURES]; the first token of each is classified."""
    writer = ModelWriter(31)
    value = attention(writer, layer_norm(writer, "x"))
    value = gelu(writer, writer.emit("MatMul", rms_norm(writer, value), writer.weight(FEATURES, FEATURES)))
    value = tanh_gelu(writer, writer.emit("MatMul", value, writer.weight(FEATURES, FEATURES)))
    first = writer.emit("Gather", value, writer.constant(np.array(0)), axis=1)
    parts = [writer.emit("MatMul", first, writer.weight(FEATURES, size)) for size in (3, 5)]
    return writer.model({"x": ["batch", "length", FEATURES]}, writer.emit("Concat", *parts, axis=-1))


def hard_swish(writer: ModelWriter, x: str) -> str:
    line = writer.emit("Relu", writer.emit("Add", x, scalar(writer, 3.0)))
    gate = writer.emit("Min", line, scalar(writer, 6.0))
    return writer.emit("Div", writer.emit("Mul", x, gate), scalar(writer, 6.0))


def channels_last(writer: ModelWriter, x: str) -> str:
    """A convolution between transpositions, as TensorFlow's models have it."""
    plain = writer.emit("Transpose", x, perm=[0, 3, 1, 2])
    room = writer.emit("Pad", plain, writer.constant(np.array([0, 0, 1, 1, 0, 0, 1, 1])))
    product = writer.emit("Conv", room, writer.weight(CHANNELS, CHANNELS, 3, 3))
    last = writer.emit("Transpose", product, perm=[0, 2, 3, 1])
    return hard_swish(
        writer, writer.emit("Add", writer.emit("Mul", last, writer.weight(CHANNELS)), writer.weight(CHANNELS))
    )


def image_model() -> bytes:
    """Images [batch, height, width, CHANNELS]."""
    writer = ModelWriter(32)
    value = channels_last(writer, "x")
    value = writer.emit("Mul", value, writer.emit("Sigmoid", value))
    bounds = [writer.constant(np.array([number])) for number in (0, 2, CHANNELS, 3)]
    parts = [writer.emit("Slice", value, *bounds[:2], bounds[3]), writer.emit("Slice", value, *bounds[1:])]
    value = channels_last(writer, writer.emit("Concat", *parts, axis=3))
    rows = writer.emit("ReduceMean", value, axes=[2])
    return writer.model({"x": ["batch", "height", "width", CHANNELS]}, writer.emit("ReduceMean", rows, axes=[1]))


MODELS = {
    "text": (text_model, (1, 5, FEATURES), [(3, 1, FEATURES), (2, 7, FEATURES), (1, 2, FEATURES)]),
    "image": (image_model, (1, 6, 7, CHANNELS), [(2, 3, 9, CHANNELS), (1, 1, 1, CHANNELS), (3, 8, 4, CHANNELS)]),
}


def random_input(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def assert_runs_right(name: str, **arguments: object) -> None:
    """At the reference shape, then at the others from the same template."""
    make, reference, others = MODELS[name]
    model = make()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    compiled = glowstone.compile(model, shapes={"x": reference}, **arguments)
    for shape in (reference, *others):
        x = random_input(shape)
        (expected,) = session.run(None, {"x": x})
        (found,) = compiled.run({"x": x}).values()
        assert_agrees(found, expected, f"{name} {shape}")


def test_what_is_recovered():
    """Nothing of the formulas is left, and no move of data that two others undo."""
    kinds: dict[str, list[str]] = {}
    for name, (make, reference, _) in MODELS.items():
        graph = import_model(open_model(make()), {"x": reference})
        for function in CANONICAL:
            function(graph)
        kinds[name] = [node.operator.name for node in graph.nodes]
    recovered = {"LayerNormalization", "RMSNormalization", "Softmax", "Gelu"}
    assert recovered < set(kinds["text"])
    assert not {"Exp", "Erf", "Tanh", "Sqrt", "Div", "ReduceMean", "ReduceSum"} & set(kinds["text"])
    assert {"HardSwish", "Swish"} < set(kinds["image"])
    assert not {"Pad", "Clip", "Relu", "Mul", "Add", "Div", "Concat", "Sigmoid"} & set(kinds["image"])
    assert kinds["image"].count("ReduceMean") == 1


@pytest.mark.parametrize("name", MODELS)
def test_all_passes(name):
    assert_runs_right(name, options={"check": True})


@pytest.mark.parametrize("name", MODELS)
def test_strict_numerics(name):
    assert_runs_right(name, numerics="strict")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", range(3))
def test_random_halves_of_the_graph_passes(name, seed):
    random = np.random.default_rng(seed)
    assert_runs_right(name, options={"skip_passes": [one for one in PASSES if random.integers(2)]})
