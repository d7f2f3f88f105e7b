"""Models that public reports of faults describe: written as text or as one node, run at every level of optimization.

References are the evaluator of the onnx package, ONNX Runtime without its optimizations, or arrays that a test made in
NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import glowstone
from glowstone.errors import GlowstoneError
from helpers.microsoft import node_model, runtime_results
from helpers.optional_passes import OPTIONAL_PASSES

Array = npt.NDArray[Any]
Feeds = Mapping[str, Array]
Reference = Callable[[onnx.ModelProto, Feeds], Sequence[Array]]

LEVELS: dict[str, tuple[str, ...]] = {"optimized": (), "without optional passes": tuple(OPTIONAL_PASSES)}
TOLERANCE = 2e-5
"""Of float32 results, of the largest value."""


def model_of(text: str, opset: int = 21, weights: Mapping[str, Array] | None = None) -> onnx.ModelProto:
    """A model whose only graph is given as text, with initializers."""
    graph = parser.parse_graph(text)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in (weights or {}).items())
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def one_node(
    kind: str,
    *operands: Array | None,
    opset: int = 21,
    fixed: Collection[int] = (),
    results: int = 1,
    domain: str = "",
    **attributes: Any,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of one node called "the node", and its inputs x0, x1 ...; operands in `fixed` are initializers."""
    model = node_model(kind, [operands], attributes, results, fixed, domain)
    model.opset_import[0].version = opset
    feeds = {f"x{index}": array for index, array in enumerate(operands) if array is not None and index not in fixed}
    return model, feeds


def evaluated(model: onnx.ModelProto, feeds: Feeds) -> Sequence[Array]:
    """What the evaluator of the onnx package gives."""
    return ReferenceEvaluator(model).run(None, dict(feeds))


def by_runtime(model: onnx.ModelProto, feeds: Feeds) -> Sequence[Array]:
    """What ONNX Runtime gives without its optimizations."""
    return runtime_results(model, dict(feeds))


def check(
    model: onnx.ModelProto,
    feeds: Feeds,
    *others: Feeds,
    expected: Reference | Sequence[Array] = evaluated,
    tolerance: float = TOLERANCE,
) -> glowstone.Model:
    """Every level of optimization gives what is expected, of each of the inputs; returns the optimized model."""
    compiled = {
        level: glowstone.compile(
            model,
            shapes={name: array.shape for name, array in feeds.items()},
            options={"skip_passes": skipped},
        )
        for level, skipped in LEVELS.items()
    }
    for arrays in (feeds, *others):
        wanted = expected(model, arrays) if callable(expected) else expected
        for level, one in compiled.items():
            for (name, found), right in zip(one.run(arrays).items(), wanted, strict=True):
                assert_close(found, np.asarray(right), tolerance, f"{level}: {name}")
    return compiled["optimized"]


Node = tuple[onnx.ModelProto, dict[str, Array]]


def check_nodes(
    *nodes: Node, expected: Sequence[Sequence[Array]] | None = None, tolerance: float = TOLERANCE
) -> glowstone.Model:
    """Models of one opset, as `one_node` makes them, side by side in one: compiled together, which is quick.

    Args:
        expected: the outputs of each; what the evaluator of the onnx package gives where None.
    """
    wanted = [evaluated(*node) for node in nodes] if expected is None else expected
    whole = onnx.ModelProto()
    feeds: dict[str, Array] = {}
    for number, (model, arrays) in enumerate(nodes):
        renamed = onnx.compose.add_prefix(model, f"{number}/")
        feeds |= {f"{number}/{name}": array for name, array in arrays.items()}
        if not number:
            whole.CopyFrom(renamed)
            continue
        for part in ("node", "input", "output", "initializer"):
            getattr(whole.graph, part).extend(getattr(renamed.graph, part))
    return check(whole, feeds, expected=[array for arrays in wanted for array in arrays], tolerance=tolerance)


def check_node(
    kind: str,
    *operands: Array | None,
    expected: Reference | Sequence[Array] = evaluated,
    tolerance: float = TOLERANCE,
    **arguments: Any,
) -> glowstone.Model:
    """`check` of a model of one node; further arguments as `one_node`."""
    model, feeds = one_node(kind, *operands, **arguments)
    return check(model, feeds, expected=expected, tolerance=tolerance)


def assert_close(found: Array, expected: Array, tolerance: float, what: str) -> None:
    """Equal shape and type, equal integers, floats near each other, NaN and infinities in the same places."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype), what
    if expected.dtype.kind not in "fV":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    ours, right = found.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(right[np.isfinite(right)])
    bound = tolerance * max(finite.max(initial=0.0), np.finfo(np.float32).tiny)
    np.testing.assert_allclose(ours, right, rtol=0, atol=bound, err_msg=what)


def refused(
    kind: type[GlowstoneError],
    model: onnx.ModelProto | bytes,
    message: str,
    feeds: Feeds | None = None,
    **arguments: Any,
) -> GlowstoneError:
    """The error that compiling raises, or running where there are `feeds`: of this class, with this in its text."""

    def compile_and_run() -> None:
        compiled = glowstone.compile(model, cache=False, **arguments)
        if feeds is not None:
            compiled.run(feeds)

    with pytest.raises(GlowstoneError) as caught:
        compile_and_run()
    error = caught.value
    assert type(error) is kind, repr(error)
    assert message in str(error), str(error)
    return error


def normal(*shape: int, seed: int = 0, dtype: npt.DTypeLike = np.float32) -> Array:
    """Seeded normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
