"""What is installed: a pure wheel with its type marker, licence, version and command."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

import glowstone


@pytest.fixture(scope="module")
def distribution() -> importlib.metadata.Distribution:
    return importlib.metadata.distribution("glowstone")


def test_the_wheel_is_pure(distribution):
    wheel = distribution.read_text("WHEEL")
    assert "Root-Is-Purelib: true" in wheel
    assert "Tag: py3-none-any" in wheel


def test_type_marker_and_licence_are_there(distribution):
    assert (Path(glowstone.__file__).parent / "py.typed").is_file()
    assert any(file.name == "LICENSE" for file in distribution.files)
    assert distribution.metadata["License-Expression"] == "Apache-2.0"


def test_there_is_one_version(distribution):
    assert distribution.version == glowstone.__version__


def test_the_command_is_installed(distribution):
    (command,) = distribution.entry_points.select(group="console_scripts")
    assert command.name == "glowstone"
    assert callable(command.load())
