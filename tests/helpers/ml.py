"""Models of one node of ai.onnx.ml, run here and by ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import helper

import glowstone

ML_DOMAIN = "ai.onnx.ml"
OPSET = 18
IR_VERSION = 8


def ml_model(
    kind: str, feeds: dict[str, np.ndarray], outputs: dict[str, type], version: int = 3, **attributes: Any
) -> onnx.ModelProto:
    """One node; rows of its inputs are symbolic. `outputs` are element types by name."""
    node = helper.make_node(kind, list(feeds), list(outputs), name="the node", domain=ML_DOMAIN, **attributes)
    inputs = [
        helper.make_tensor_value_info(name, element_number(array.dtype), _dimensions(array))
        for name, array in feeds.items()
    ]
    results = [helper.make_tensor_value_info(name, element_number(kind), None) for name, kind in outputs.items()]
    graph = helper.make_graph([node], "one", inputs, results)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML_DOMAIN, version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _dimensions(array: np.ndarray) -> list[str | int]:
    return ["rows", *array.shape[1:]] if array.ndim > 1 else list(array.shape)


def element_number(dtype: Any) -> int:
    """The ONNX number of a NumPy type; texts are strings."""
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype if np.dtype(dtype).kind != "U" else object))


def by_onnx_runtime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[Any]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def here(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[Any]:
    """The outputs in order."""
    found = glowstone.compile(model).run(feeds)
    return [found[output.name] for output in model.graph.output]
