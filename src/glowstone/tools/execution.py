"""The ways to run an ONNX model: machine code, the interpreter, the evaluator, ONNX Runtime.

Each takes a `ModelProto` and inputs by name and gives outputs by name. Inputs decide the shapes.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import glowstone
from glowstone import importer
from glowstone.backends.interpreter import Interpreter, InterpreterBackend
from glowstone.compiler import Settings, compile_template, plan_shape
from glowstone.errors import GlowstoneError, UnknownValueError
from glowstone.graph import Graph, evaluate_graph

if TYPE_CHECKING:
    from onnx import ModelProto

Array = np.ndarray[Any, np.dtype[Any]]
Arrays = Mapping[str, Array]
Execution = Callable[["ModelProto", Arrays], dict[str, Array]]


def run_cpu(model: ModelProto, inputs: Arrays) -> dict[str, Array]:
    """As machine code."""
    results: dict[str, Array] = glowstone.compile(model, shapes=shapes_of(inputs)).run(inputs)
    return results


def run_interpreter(model: ModelProto, inputs: Arrays) -> dict[str, Array]:
    """Compiled for the interpreter, and run in NumPy with all checks of memory."""
    graph, left = imported(model, inputs)
    settings = Settings(InterpreterBackend())
    plan = plan_shape(compile_template(graph, shapes_of(left), settings), None, settings)
    results = Interpreter(plan.program, plan.memory).run(left)
    return {name.removeprefix("out."): array for name, array in results.items()}


def run_evaluator(model: ModelProto, inputs: Arrays) -> dict[str, Array]:
    """Imported, and evaluated by the reference meaning of each operator."""
    graph, left = imported(model, inputs)
    return evaluate_graph(graph, left)


def run_onnxruntime(model: ModelProto, inputs: Arrays) -> dict[str, Array]:
    """By ONNX Runtime, without its own optimizations.

    Raises:
        GlowstoneError: it is not installed.
    """
    if importlib.util.find_spec("onnxruntime") is None:
        raise GlowstoneError("ONNX Runtime is not installed", remedy="pip install onnxruntime")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))


EXECUTIONS: Final[Mapping[str, Execution]] = {
    "cpu": run_cpu,
    "interpreter": run_interpreter,
    "evaluator": run_evaluator,
    "onnxruntime": run_onnxruntime,
}


def imported(model: ModelProto, inputs: Arrays) -> tuple[Graph, dict[str, Array]]:
    """The graph at the inputs' shapes, with inputs whose values decide shapes fixed; and the inputs that are left."""
    opened = importer.open_model(model)
    try:
        return importer.import_model(opened, shapes_of(inputs)), dict(inputs)
    except UnknownValueError:
        fixed = {name: inputs[name] for name in importer.deciding_inputs(opened, inputs)}
    left = {name: array for name, array in inputs.items() if name not in fixed}
    return importer.import_model(opened, shapes_of(left), fixed), left


def shapes_of(inputs: Arrays) -> dict[str, tuple[int, ...]]:
    """Shapes by name."""
    return {name: array.shape for name, array in inputs.items()}
