"""Models of one operator of ONNX Runtime's domain, run by both."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import helper, numpy_helper

import glowstone

Array = npt.NDArray[Any]
Operands = Sequence[Array | None]
DOMAIN = "com.microsoft"
OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
QUIET = 3
"""Severity from which ONNX Runtime reports."""


def node_model(
    kind: str,
    cases: Sequence[Operands],
    attributes: dict[str, Any],
    results: int | Sequence[bool] = 1,
    fixed: Collection[int] = (),
    domain: str = DOMAIN,
) -> onnx.ModelProto:
    """A model of one node.

    Args:
        cases: operands that the model must take; a dimension is symbolic where they differ, and dimensions that
            differ alike share a symbol.
        results: how many, or which of them are wanted.
        fixed: operands, by index, that are initializers.
    """
    first = cases[0]
    names = [f"x{index}" if array is not None else "" for index, array in enumerate(first)]
    ports = [
        helper.make_tensor_value_info(names[index], _number(array), _dimensions([case[index] for case in cases]))
        for index, array in enumerate(first)
        if array is not None and index not in fixed
    ]
    weights = [
        numpy_helper.from_array(first[index], names[index])
        for index in sorted(fixed)
        if index < len(first) and names[index]
    ]
    wanted = [True] * results if isinstance(results, int) else list(results)
    outputs = [f"y{index}" if keep else "" for index, keep in enumerate(wanted)]
    node = helper.make_node(kind, names, outputs, name="the node", domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "one", ports, [onnx.ValueInfoProto(name=name) for name in outputs if name], weights
    )
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=9)


def _number(array: Array) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def _dimensions(arrays: Sequence[Array | None]) -> list[int | str]:
    extents = zip(*(np.shape(array) for array in arrays), strict=True)
    return [column[0] if len(set(column)) == 1 else "d" + "_".join(map(str, column)) for column in extents]


def runtime_results(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """What ONNX Runtime's CPU provider gives, without its graph optimizations."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = QUIET
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def compare(
    kind: str,
    *cases: Operands,
    results: int | Sequence[bool] = 1,
    fixed: Collection[int] = (),
    tolerance: float = 2e-5,
    steps: int = 0,
    domain: str = DOMAIN,
    **attributes: Any,
) -> list[Array]:
    """Compile at the shapes of the first case, and compare all cases with ONNX Runtime.

    Args:
        tolerance: of floats, of the largest value of a result.
        steps: of integers, how much they may differ.

    Returns:
        What the last case gave.
    """
    model = node_model(kind, cases, attributes, results, fixed, domain)
    feeds = [feeds_of(case, fixed) for case in cases]
    compiled = glowstone.compile(model, shapes={name: array.shape for name, array in feeds[0].items()})
    found: list[Array] = []
    for given in feeds:
        found = list(compiled.run(given).values())
        for number, (ours, theirs) in enumerate(zip(found, runtime_results(model, given), strict=True)):
            assert_close(ours, theirs, tolerance, steps, f"{kind} {attributes}, result {number}")
    return found


def feeds_of(case: Operands, fixed: Collection[int] = ()) -> dict[str, Array]:
    """The arrays to feed, by name."""
    return {f"x{index}": array for index, array in enumerate(case) if array is not None and index not in fixed}


def assert_close(ours: Array, theirs: Array, tolerance: float, steps: int = 0, what: str = "") -> None:
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), what
    if not theirs.size:
        return
    if theirs.dtype.kind in "iu":
        difference = np.abs(ours.astype(np.int64) - theirs.astype(np.int64)).max()
        assert difference <= steps, f"{what}: {difference} steps"
        return
    wide = theirs.astype(np.float64)
    np.testing.assert_allclose(ours, wide, rtol=0, atol=tolerance * max(np.abs(wide).max(), 1e-6), err_msg=what)
