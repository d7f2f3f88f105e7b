"""Zeros around images become padding of what reads them."""

from __future__ import annotations

import numpy as np
import pytest

from glowstone.graph import Builder, Graph, evaluate_graph, verify_graph
from glowstone.graph_passes.fold_padding import fold_padding
from glowstone.ops import AveragePool, Conv, MaxPool, Pad
from glowstone.ops.constant import constant
from glowstone.types import ElementType, TensorType

SPATIAL = [0, 0, 1, 2, 0, 0, 3, 0]
RANDOM = np.random.default_rng(3)
X = RANDOM.standard_normal((2, 3, 6, 7)).astype(np.float32)


def padded_graph(operator, pads=SPATIAL, value=None, mode="constant", dimensions=None):
    """The operator on a padded image."""
    graph = Graph()
    builder = Builder(graph)
    x = graph.add_input("x", TensorType(ElementType.F32, X.shape), dimensions)
    fill = None if value is None else constant(builder, np.array(value, np.float32))
    image = builder.emit(Pad(mode), x, constant(builder, np.array(pads, np.int64)), fill)
    weights = np.linspace(-1, 1, 54, dtype=np.float32).reshape(2, 3, 3, 3)
    further = (constant(builder, weights),) if isinstance(operator, Conv) else ()
    graph.add_output("y", builder.emit(operator, image, *further))
    return graph


@pytest.mark.parametrize(
    "operator",
    [
        Conv(),
        Conv(strides=(2, 1), pads=(1, 0, 0, 1)),
        Conv(padding="valid"),
        AveragePool((3, 2)),
        AveragePool((3, 2), pads=(1, 1, 1, 0), count_include_pad=True),
    ],
    ids=str,
)
@pytest.mark.parametrize("value", [None, 0.0])
def test_zeros_become_padding(operator, value):
    graph = padded_graph(operator, value=value, dimensions=("n", 3, "h", 7))
    expected = evaluate_graph(graph, {"x": X})["y"]
    assert fold_padding(graph)
    verify_graph(graph)
    assert not any(isinstance(node.operator, Pad) for node in graph.nodes)
    np.testing.assert_allclose(evaluate_graph(graph, {"x": X})["y"], expected, rtol=1e-5, atol=1e-6)
    assert not fold_padding(graph)


@pytest.mark.parametrize(
    "graph",
    [
        padded_graph(Conv(), value=1.0),
        padded_graph(Conv(), mode="edge"),
        padded_graph(Conv(), pads=[0, 0, -1, 0, 0, 0, 2, 2]),
        padded_graph(AveragePool((2, 2)), pads=[0, 1, 0, 0, 0, 0, 0, 0]),
        padded_graph(Conv(padding="same_upper")),
        padded_graph(MaxPool((2, 2))),
        padded_graph(AveragePool((2, 2), ceil_mode=True)),
        padded_graph(AveragePool((2, 2), pads=(1, 1, 0, 0))),
    ],
    ids=["value", "mode", "negative", "channels", "same", "maximum", "ceil", "not counted"],
)
def test_other_padding_stays(graph):
    assert not fold_padding(graph)
