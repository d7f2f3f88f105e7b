"""The models that are measured, with one set of inputs each, as files in a folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from glowstone.tools import recognizer, resnet50
from glowstone.tools.arrays import save_arrays
from glowstone.tools.fetch import RECOGNIZER, SENTENCE_ENCODER, fetch

RECOGNIZER_WIDTH = 320
SENTENCE_LENGTH = 128
TINY = 16


@dataclass(frozen=True)
class Models:
    """Where the files are: a model's ONNX file and its inputs as .npz, by name."""

    folder: Path
    fetched: dict[str, Path]

    def path(self, name: str) -> Path:
        return self.fetched.get(name, self.folder / f"{name}.onnx")

    def inputs(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def pool(self, name: str) -> Path:
        """The same inputs with an axis in front, as `engine.py` takes them."""
        return self.folder / f"{name}_pool.npz"


def prepare_models(folder: Path) -> Models:
    """Fetch or build every model, and write its inputs."""
    models = Models(folder, {"recognizer": fetch(RECOGNIZER), "encoder": fetch(SENTENCE_ENCODER)})
    models.path("resnet50").write_bytes(resnet50.build_resnet50())
    onnx.save(tiny_model(), models.path("tiny"))
    line = recognizer.prepare(recognizer.render_line("One arena, one table"), RECOGNIZER_WIDTH)
    tokens = np.random.default_rng(0).integers(1000, 20000, (1, SENTENCE_LENGTH))
    inputs = {
        "resnet50": {resnet50.INPUT_NAME: resnet50.sample_image()},
        "recognizer": {recognizer.INPUT_NAME: line},
        "encoder": {"input_ids": tokens, "attention_mask": np.ones_like(tokens)},
        "tiny": {"x": np.ones((1, TINY), np.float32)},
    }
    for name, arrays in inputs.items():
        save_arrays(models.inputs(name), arrays)
        save_arrays(models.pool(name), {input: array[None] for input, array in arrays.items()})
    return models


def tiny_model() -> onnx.ModelProto:
    """One small matrix product."""
    weights = np.random.default_rng(0).standard_normal((TINY, TINY), dtype=np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, TINY])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, TINY])],
        [numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
