"""Damaged models: whatever the bytes say, only a GlowstoneError may come out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from helpers.blocks import small_convnet, transformer_block

from glowstone.errors import GlowstoneError
from glowstone.importer import import_model, open_model

MODELS: list[tuple[Callable[[], onnx.ModelProto], dict[str, tuple[int, ...]]]] = [
    (small_convnet, {"x": (2, 3, 9, 8)}),
    (transformer_block, {"ids": (2, 5)}),
]
EXTREMES = (0, 1, -1, 2, 3, 7, -2, 1000, 2**31, 2**40, 2**62, -(2**63))
MUTATIONS = 150


def is_refused(source: bytes | onnx.ModelProto, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Whether the model is refused; the error then says what is wrong with which file."""
    error = refusal(source, shapes)
    assert error is None or (error.message and error.file)
    return error is not None


def refusal(source: bytes | onnx.ModelProto, shapes: dict[str, tuple[int, ...]]) -> GlowstoneError | None:
    try:
        import_model(open_model(source), shapes)
    except GlowstoneError as error:
        return error
    return None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("make", "shapes"), MODELS, ids=["convnet", "transformer"])
def test_damaged_bytes(make, shapes):
    random = np.random.default_rng(0)
    data = np.frombuffer(make().SerializeToString(), np.uint8)
    refused = 0
    for _ in range(MUTATIONS):
        damaged = data.copy()
        places = random.integers(len(data), size=random.integers(1, 4))
        damaged[places] = random.integers(256, size=len(places))
        refused += is_refused(damaged.tobytes(), shapes)
    assert MUTATIONS // 2 < refused < MUTATIONS


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("make", "shapes"), MODELS, ids=["convnet", "transformer"])
def test_damaged_fields(make, shapes):
    random = np.random.default_rng(1)
    model = make()
    refused = 0
    for _ in range(MUTATIONS):
        damaged = onnx.ModelProto()
        damaged.CopyFrom(model)
        DAMAGES[random.integers(len(DAMAGES))](damaged.graph, random)
        refused += is_refused(damaged, shapes)
    assert MUTATIONS // 2 < refused < MUTATIONS


def pick(random: np.random.Generator, entries: object) -> object:
    listed = list(entries)
    return listed[random.integers(len(listed))]


def damage_attribute_kind(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    attribute = pick(random, (attribute for node in graph.node for attribute in node.attribute))
    attribute.type = int(random.integers(15))


def damage_attribute_value(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    attribute = pick(random, (attribute for node in graph.node for attribute in node.attribute))
    attribute.i = pick(random, EXTREMES)
    attribute.f = pick(random, (np.nan, np.inf, 0.0, -1.0))
    attribute.ints[:] = [pick(random, EXTREMES) for _ in range(random.integers(6))]


def damage_dims(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    tensor = pick(random, graph.initializer)
    tensor.dims[:] = [*tensor.dims[1:], pick(random, EXTREMES)]


def damage_element_type(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    pick(random, graph.initializer).data_type = int(random.integers(24))


def damage_integers(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    count = int(random.integers(4))
    tensor = pick(random, graph.initializer)
    tensor.ClearField("raw_data")
    tensor.data_type = onnx.TensorProto.INT64
    tensor.dims[:] = [count]
    tensor.int64_data[:] = [pick(random, EXTREMES) for _ in range(count)]


def damage_operands(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    node = pick(random, graph.node)
    kept = random.permutation(list(node.input))[: random.integers(len(node.input) + 1)]
    node.input[:] = [*kept, pick(random, graph.initializer).name]


def damage_operator(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    pick(random, graph.node).op_type = pick(random, graph.node).op_type


def damage_order(graph: onnx.GraphProto, random: np.random.Generator) -> None:
    graph.node.append(graph.node.pop(int(random.integers(len(graph.node) - 1))))


DAMAGES = (
    damage_attribute_kind,
    damage_attribute_value,
    damage_dims,
    damage_element_type,
    damage_integers,
    damage_operands,
    damage_operator,
    damage_order,
)
