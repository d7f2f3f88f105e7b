"""The models of the benchmark: what makes each file, and the pool of inputs that all engines run.

In: a folder for what is built. Out: `BenchmarkModel`s by name. Real models are fetched from the wheels that ship them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from glowstone.tools import recognizer, resnet50
from glowstone.tools.fetch import RECOGNIZER, SENTENCE_ENCODER, Asset, fetch
from networks import bert, convnext, efficientnet, gpt2, mobilenet_v2, vgg, vit

DETECTOR = replace(RECOGNIZER, member="rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx")
FILE_TYPES = Asset(
    package="magika",
    version="1.0.3",
    wheel_sha256="3e9b49134e8116ee40b431664dcbed9e199413efddcce1a173c734b4e0521529",
    member="magika/models/standard_v3_3/model.onnx",
)
VOICE_ACTIVITY = Asset(
    package="silero-vad",
    version="6.2.3",
    wheel_sha256="7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8",
    member="silero_vad/data/silero_vad_op18_ifless.onnx",
)

PAGE = 640  # pixels
LINES = 12

POOL = 16
"""Different inputs that calls take in turn."""

Arrays = dict[str, np.ndarray]
Draw = Callable[[np.random.Generator], Arrays]


@dataclass(frozen=True)
class BenchmarkModel:
    """`make` writes the model to a path or fetches it; `draw` makes one input."""

    name: str
    make: Callable[[Path], Path]
    draw: Draw
    constants: Mapping[str, np.ndarray]
    """Inputs that an engine may take as fixed."""

    def prepare(self, folder: Path) -> tuple[Path, Path, Path | None]:
        """Model, pool of inputs and constants as files, made once."""
        model = self.make(folder / f"{self.name}.onnx")
        pool = folder / f"{self.name}.npz"
        generator = np.random.default_rng(0)
        drawn = [self.draw(generator) | dict(self.constants) for _ in range(POOL)]
        np.savez(pool, **{name: np.stack([one[name] for one in drawn]) for name in drawn[0]})
        if not self.constants:
            return model, pool, None
        constants = folder / f"{self.name}_constants.npz"
        np.savez(constants, **self.constants)
        return model, pool, constants


def _built(build: Callable[[], onnx.ModelProto]) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        if not path.exists():
            onnx.save(build(), path)
        return path

    return make


def _resnet50(path: Path) -> Path:
    if not path.exists():
        path.write_bytes(resnet50.build_resnet50())
    return path


def _fetched(asset: Asset) -> Callable[[Path], Path]:
    """A link in the folder, so that what engines write beside a model goes there."""

    def make(path: Path) -> Path:
        if not path.exists():
            path.symlink_to(fetch(asset).resolve())
        return path

    return make


def _image(name: str, *shape: int) -> Draw:
    """Normal values with patches on them, as photographs have large areas of like colour."""

    def draw(generator: np.random.Generator) -> Arrays:
        patch = 16
        small = generator.standard_normal((*shape[:-2], shape[-2] // patch, shape[-1] // patch), dtype=np.float32)
        patches = np.kron(small, np.ones((patch, patch), np.float32))
        return {name: patches + np.float32(0.25) * generator.standard_normal(shape, dtype=np.float32)}

    return draw


def _page(generator: np.random.Generator) -> Arrays:
    """Lines of text at random places of a white page, with noise: a detector is unsteady on what is no page."""
    page = np.full((PAGE, PAGE, 3), 255, np.uint8)
    for number in range(LINES):
        line = recognizer.render_line(recognizer.SAMPLE_LINES[number % len(recognizer.SAMPLE_LINES)])
        rows, columns, _ = line.shape
        top, left = (int(generator.integers(0, PAGE - extent)) for extent in (rows, columns))
        page[top : top + rows, left : left + columns] = line
    noisy = page.astype(np.float32) / 127.5 - 1 + np.float32(0.05) * generator.standard_normal(page.shape, np.float32)
    return {"x": np.ascontiguousarray(noisy.transpose(2, 0, 1)[None])}


def _tokens(vocabulary: int, *names: str) -> Draw:
    """Token numbers under the first name, ones under `attention_mask`, zeros under `token_type_ids`."""

    def draw(generator: np.random.Generator) -> Arrays:
        shape = (1, bert.LENGTH)
        others = {"attention_mask": np.ones(shape, np.int64), "token_type_ids": np.zeros(shape, np.int64)}
        tokens = generator.integers(100, vocabulary, shape, dtype=np.int64)
        return {names[0]: tokens, **{name: others[name] for name in names[1:]}}

    return draw


def _decoder_step(generator: np.random.Generator) -> Arrays:
    inputs = {
        "token": generator.integers(0, gpt2.VOCABULARY, (1, 1), dtype=np.int64),
        "position": np.array([[gpt2.PAST]], np.int64),
    }
    shape = (1, gpt2.HEADS, gpt2.PAST, gpt2.WIDTH // gpt2.HEADS)
    for layer in range(gpt2.DEPTH):
        for kind in ("key", "value"):
            inputs[f"past_{kind}_{layer}"] = generator.standard_normal(shape, dtype=np.float32)
    return inputs


def _file_bytes(generator: np.random.Generator) -> Arrays:
    return {"bytes": generator.integers(0, 257, (1, 2048), dtype=np.int32)}


def _voice(generator: np.random.Generator) -> Arrays:
    samples, state = (1, 576), (2, 1, 128)
    return {
        "input": generator.standard_normal(samples, dtype=np.float32) * np.float32(0.1),
        "state": generator.standard_normal(state, dtype=np.float32) * np.float32(0.1),
    }


MODELS: Mapping[str, BenchmarkModel] = {
    model.name: model
    for model in (
        BenchmarkModel("vgg19", _built(vgg.build), _image("x", 1, 3, 224, 224), {}),
        BenchmarkModel("resnet50", _resnet50, _image(resnet50.INPUT_NAME, *resnet50.INPUT_SHAPE), {}),
        BenchmarkModel("efficientnet_b0", _built(efficientnet.build), _image("x", 1, 3, 224, 224), {}),
        BenchmarkModel("mobilenet_v2", _built(mobilenet_v2.build), _image("x", 1, 3, 224, 224), {}),
        BenchmarkModel("convnext_t", _built(convnext.build), _image("x", 1, 3, 224, 224), {}),
        BenchmarkModel("vit_s16", _built(vit.build), _image("x", 1, 3, 224, 224), {}),
        BenchmarkModel(
            "bert_base",
            _built(bert.build),
            _tokens(bert.VOCABULARY, "input_ids", "attention_mask", "token_type_ids"),
            {},
        ),
        BenchmarkModel("minilm", _fetched(SENTENCE_ENCODER), _tokens(20000, "input_ids", "attention_mask"), {}),
        BenchmarkModel("gpt2_step", _built(gpt2.build), _decoder_step, {}),
        BenchmarkModel("detector", _fetched(DETECTOR), _page, {}),
        BenchmarkModel("recognizer", _fetched(RECOGNIZER), _image("x", 1, 3, 48, 320), {}),
        BenchmarkModel("magika", _fetched(FILE_TYPES), _file_bytes, {}),
        BenchmarkModel("silero", _fetched(VOICE_ACTIVITY), _voice, {"sr": np.array(16000, np.int64)}),
    )
}
