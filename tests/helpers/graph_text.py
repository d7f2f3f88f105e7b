"""Passes over graphs written as text: what goes in, what comes out, and that the meaning stays."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import numpy as np

from glowstone.graph import (
    GRAPH_TEXT_VERSION,
    Graph,
    evaluate_graph,
    parse_graph,
    print_graph,
    verify_graph,
)
from glowstone.support.pass_manager import PassManager
from glowstone.types import TensorType

HEADER = f"glowstone.graph {GRAPH_TEXT_VERSION}\n"
GraphPass = Callable[[Graph], bool]


def graph_of(text: str) -> Graph:
    """The graph of a text without its first line."""
    return parse_graph(HEADER + textwrap.dedent(text).lstrip("\n"))


def run_checked(graph: Graph, *passes: GraphPass) -> bool:
    """Run passes with every check of the pass manager on."""
    return PassManager("test", verify=verify_graph, print=print_graph, checked=True).run(graph, passes)


def random_array(type: TensorType, random: np.random.Generator) -> np.ndarray:
    """Normal floats, small integers of both signs, booleans."""
    if type.element.is_float:
        return np.asarray(random.standard_normal(type.shape)).astype(type.element.dtype)
    low = -3 if type.element.is_signed else 0
    return np.asarray(random.integers(low, 4, type.shape)).astype(type.element.dtype)


def random_inputs(graph: Graph, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {value.name: random_array(value.type, random) for value in graph.inputs}


def assert_same_results(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float = 1e-5) -> None:
    """Same names, types and values; floats within `tolerance` of the largest value."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        if array.dtype.kind == "f":
            largest = np.abs(array[np.isfinite(array)]).max(initial=0)
            np.testing.assert_allclose(found[name], array, rtol=0, atol=tolerance * largest, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def check_pass(function: GraphPass, before: str, after: str) -> None:
    """The pass makes `after` of `before`, keeps the results, and finds nothing more to do.

    Both texts may have their nodes in any order.
    """
    graph = graph_of(before)
    first, inputs = print_graph(graph), random_inputs(graph)
    expected = evaluate_graph(graph, inputs)
    changed = run_checked(graph, function)
    text = print_graph(graph)
    assert text == print_graph(graph_of(after))
    assert changed == (text != first)
    assert_same_results(evaluate_graph(graph, inputs), expected)
    assert not run_checked(graph, function)
    assert print_graph(graph) == text


def check_unchanged(function: GraphPass, text: str) -> None:
    """The pass leaves the graph as it is."""
    check_pass(function, text, text)
