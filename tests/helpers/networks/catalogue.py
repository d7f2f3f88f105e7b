"""The networks that tests run: models that are published, and architectures built here, each with inputs by seed.

`FULL` has every model in the size that it is meant to have. `REDUCED` has the same architectures with fewer channels,
layers or pixels, for tests that compile each of them many times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx

import glowstone
from glowstone.examples import DIGITS, DIGITS_INPUT, digit_images
from glowstone.tools import recognizer
from glowstone.tools.fetch import RECOGNIZER, SENTENCE_ENCODER, Asset, fetch
from helpers.inputs import encoder_inputs
from helpers.networks import convnext, decoder, light, swin, unet, yolo
from helpers.networks.published import FILE_TYPE, TEXT_DETECTOR, TEXT_DIRECTION, voice_activity

Inputs = dict[str, np.ndarray]

SAMPLE_RATE = 16000  # Hz
WINDOW = 576  # samples: what the voice models take at a time
FILE_BYTES = 2048  # of which the file type model looks at the first and the last half
_NO_BYTE = 256  # where a file is shorter


@dataclass(frozen=True)
class Network:
    """One model to run: how it is made, its inputs by seed, and the inputs fixed at compile time."""

    name: str
    make: Callable[[], onnx.ModelProto | Asset | bytes]
    inputs: Callable[[int], Inputs]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)
    random_weights: bool = True
    """Whether many distinct outputs are to be expected; trained models decide between few classes."""

    def build(self) -> bytes:
        """The ONNX file."""
        made = self.make()
        if isinstance(made, Asset):
            return fetch(made).read_bytes()
        return made if isinstance(made, bytes) else made.SerializeToString(deterministic=True)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the inputs with seed 0."""
        return {name: array.shape for name, array in self.inputs(0).items()}

    def compile(self, content: bytes, **arguments: Any) -> glowstone.Model:
        """The model that `build` made, compiled at `shapes`; the arguments are those of `glowstone.compile`."""
        return glowstone.compile(content, shapes=self.shapes, constants=self.constants or None, **arguments)


def _normal(name: str, *shape: int) -> Callable[[int], Inputs]:
    return lambda seed: {name: np.random.default_rng(seed).standard_normal(shape, np.float32)}


def _tokens(batch: int, length: int, vocabulary: int) -> Callable[[int], Inputs]:
    return lambda seed: {"input_ids": np.random.default_rng(seed).integers(0, vocabulary, (batch, length))}


def _page(height: int, width: int) -> Callable[[int], Inputs]:
    """A photographed page with lines of text, within [-1, 1]: the paper has shadows and grain."""

    def make(seed: int) -> Inputs:
        random = np.random.default_rng(seed)
        page = np.full((height, width, 3), 255, np.uint8)
        for line, top in zip(recognizer.SAMPLE_LINES, range(16, height - 64, 72), strict=False):
            image = recognizer.render_line(line, int(random.integers(16, 30)))[:, : width - 40]
            left = int(random.integers(0, width - image.shape[1]))
            page[top : top + image.shape[0], left : left + image.shape[1]] = image
        shadow = np.linspace(0.95, 0.6, width) * np.linspace(1, 0.8, height)[:, None]
        photograph = page * shadow[..., None] + random.normal(0, 6, page.shape)
        return {"x": (photograph.clip(0, 255).transpose(2, 0, 1)[None] / 127.5 - 1).astype(np.float32)}

    return make


def _line(width: int) -> Callable[[int], Inputs]:
    """Two images of a line, of which one stands on its head."""

    def make(seed: int) -> Inputs:
        line = recognizer.render_line(recognizer.SAMPLE_LINES[seed % len(recognizer.SAMPLE_LINES)])
        upright = recognizer.prepare(line, width)
        return {"x": np.concatenate([upright, upright[:, :, ::-1, ::-1]])}

    return make


def _file_bytes(seed: int) -> Inputs:
    """A short file, padded: of kinds that the network is sure of.

    Where it is not, as of half a PDF file, ONNX Runtime's float32 is five times the tolerance away from float64.
    """
    content = np.full((1, FILE_BYTES), _NO_BYTE, np.int32)
    starts = (
        b"def main(argv: list[str]) -> int:\n    return len(argv)\n",
        b"SELECT name FROM people WHERE age > 30;\n",
    )
    text = np.frombuffer(starts[seed % len(starts)] * 9, np.uint8)
    content[0, : text.size] = text
    return {"bytes": content}


def _voice(windows: int, **states: tuple[int, ...]) -> Callable[[int], Inputs]:
    """Windows of a buzz with harmonics that swells, and the states that the model was left in."""

    def make(seed: int) -> Inputs:
        random = np.random.default_rng(seed)
        time = np.arange(windows * WINDOW) / SAMPLE_RATE
        pitch = random.uniform(90, 220)  # Hz
        buzz = sum(np.sin(2 * np.pi * pitch * part * time + part) / part for part in range(1, 12))
        loud = np.linspace(0.05, 0.3, time.size) * buzz + 0.01 * random.standard_normal(time.size)
        before = {name: 0.5 * random.standard_normal(shape, np.float32) for name, shape in states.items()}
        return {"input": loud.astype(np.float32).reshape(windows, WINDOW), **before}

    return make


def _digits(seed: int) -> Inputs:
    return {DIGITS_INPUT: digit_images()[0][50 * seed : 50 * (seed + 1)]}


def _light_input(name: str) -> Callable[[int], Inputs]:
    port = "gpu_0/data_0" if name in ("resnet50", "shufflenet", "zfnet512") else "data_0"
    return lambda seed: {port: light.sample_image(seed + 1)}


def _light(name: str, slimness: int = 1) -> Network:
    return Network(f"light_{name}", partial(light.build, name, slimness), _light_input(name))


def _trained(name: str, make: Callable[[], Asset | bytes], inputs: Callable[[int], Inputs]) -> Network:
    return Network(name, make, inputs, random_weights=False)


PUBLISHED_SMALL = (
    _trained("text_direction", lambda: TEXT_DIRECTION, _line(192)),
    _trained("file_type", lambda: FILE_TYPE, _file_bytes),
    _trained("voice_openvino", lambda: voice_activity("silero_vad_openvino_16k"), _voice(1, state=(2, 1, 128))),
    _trained(
        "voice_sequence", lambda: voice_activity("silero_vad_16k_sequence"), _voice(9, h=(1, 1, 128), c=(1, 1, 128))
    ),
    Network(
        "voice_by_rate",
        lambda: voice_activity("silero_vad_op18_ifless"),
        _voice(1, state=(2, 1, 128)),
        constants={"sr": np.array(SAMPLE_RATE)},
        random_weights=False,
    ),
    _trained("digits", DIGITS.read_bytes, _digits),
)
"""Models that are small as they are."""

FULL = (
    *(_light(name) for name in light.NAMES),
    _trained("text_detector_640x640", lambda: TEXT_DETECTOR, _page(640, 640)),
    _trained("text_detector_320x480", lambda: TEXT_DETECTOR, _page(320, 480)),
    *PUBLISHED_SMALL,
    Network("decoder", decoder.build, _tokens(1, 64, 8192)),
    Network("unet", unet.build, _normal("image", 1, 3, 96, 128)),
    Network("yolo", yolo.build, _normal("images", 1, 3, 160, 160)),
    Network("convnext", convnext.build, _normal("image", 1, 3, 96, 64)),
    Network("swin", swin.build, _normal("image", 2, 3, 64, 64)),
)

REDUCED = (
    *(_light(name, light.SLIMNESS.get(name, light.DEFAULT_SLIMNESS)) for name in light.NAMES),
    _trained("text_detector", lambda: TEXT_DETECTOR, _page(160, 224)),
    _trained("text_recognizer", lambda: RECOGNIZER, lambda seed: {"x": _line(128)(seed)["x"][:1]}),
    _trained("sentence_encoder", lambda: SENTENCE_ENCODER, lambda seed: encoder_inputs(2, 12 + seed)),
    *PUBLISHED_SMALL,
    Network("decoder", partial(decoder.build, 2, 48, 4, 211), _tokens(2, 7, 211)),
    Network("decoder_opset_11", partial(decoder.build, 1, 48, 4, 211, opset=11), _tokens(2, 7, 211)),
    Network("unet", partial(unet.build, 2, 8), _normal("image", 1, 3, 16, 24)),
    Network("yolo", partial(yolo.build, 8, 1, 64, 96), _normal("images", 1, 3, 64, 96)),
    Network("convnext", partial(convnext.build, ((1, 16), (1, 32))), _normal("image", 2, 3, 32, 48)),
    Network("convnext_opset_18", partial(convnext.build, ((1, 16),), opset=18), _normal("image", 1, 3, 32, 32)),
    Network("swin", partial(swin.build, 24, 2, 4, 32, (2, 1)), _normal("image", 1, 3, 32, 32)),
    Network("swin_opset_13", partial(swin.build, 16, 2, 4, 32, (2,), opset=13), _normal("image", 2, 3, 32, 32)),
)


def named(networks: Sequence[Network], name: str) -> Network:
    """The network of this name."""
    return next(network for network in networks if network.name == name)
