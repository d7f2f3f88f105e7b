"""The three models, compiled once a process, and their sessions of ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.peer import Peer

import glowstone
from glowstone.tools import recognizer, resnet50
from glowstone.tools.fetch import RECOGNIZER, SENTENCE_ENCODER, fetch


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
