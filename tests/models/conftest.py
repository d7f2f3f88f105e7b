"""The three models, compiled once a process, and their sessions of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

import glowstone
from glowstone.tools import recognizer, resnet50
from glowstone.tools.fetch import RECOGNIZER, SENTENCE_ENCODER, fetch


class Peer:
    """A session of ONNX Runtime that gives its outputs by name."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, dict(inputs)), strict=True))


@pytest.fixture(scope="session")
def recognizer_path() -> Path:
    return fetch(RECOGNIZER)


@pytest.fixture(scope="session")
def encoder_path() -> Path:
    return fetch(SENTENCE_ENCODER)


@pytest.fixture(scope="session")
def resnet_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "resnet50.onnx"
    path.write_bytes(resnet50.build_resnet50())
    return path


@pytest.fixture(scope="session")
def recognizer_model(recognizer_path: Path) -> glowstone.Model:
    return glowstone.compile(recognizer_path, shapes={recognizer.INPUT_NAME: (1, 3, recognizer.HEIGHT, 320)})


@pytest.fixture(scope="session")
def recognizer_peer(recognizer_path: Path) -> Peer:
    return Peer(recognizer_path)


@pytest.fixture(scope="session")
def encoder_model(encoder_path: Path) -> glowstone.Model:
    return glowstone.compile(encoder_path, shapes={"input_ids": (1, 128), "attention_mask": (1, 128)})


@pytest.fixture(scope="session")
def encoder_peer(encoder_path: Path) -> Peer:
    return Peer(encoder_path)


@pytest.fixture(scope="session")
def resnet_model(resnet_path: Path) -> glowstone.Model:
    return glowstone.compile(resnet_path)


@pytest.fixture(scope="session")
def resnet_peer(resnet_path: Path) -> Peer:
    return Peer(resnet_path)
