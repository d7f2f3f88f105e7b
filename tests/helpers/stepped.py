"""Small models for tests of steps, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node
info = helper.make_tensor_value_info


def model_of(nodes, inputs, outputs, constants=None, opset=17):
    """A model of these nodes; constants are arrays by name."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "steps", inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def runtime(model):
    """ONNX Runtime as a function of the inputs by name."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda feeds: session.run(None, feeds)


def check(model, compiled, feeds, tolerance=1e-5):
    """All outputs are those of ONNX Runtime; returns them."""
    found = list(compiled.run(feeds).values())
    for mine, theirs in zip(found, runtime(model)(feeds), strict=True):
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
    return found


def made(compiled):
    """What was compiled and planned so far."""
    counters = compiled.report()["counters"]
    return {name: counters[name] for name in ("plans", "templates", "pipeline_runs", "kernels_compiled")}
