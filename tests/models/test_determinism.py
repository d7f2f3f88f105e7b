"""The same bits on any number of threads, from run to run, from process to process, in any floating-point mode."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from helpers.floating_point import flushing_denormals
from helpers.inputs import encoder_inputs
from helpers.models import save_matrix_product
from helpers.processes import run_python

import glowstone
from glowstone.tools import recognizer, resnet50

THREADS = (1, 2, 3, 8, 64)


def digest(outputs) -> str:
    return hashlib.sha256(b"".join(array.tobytes() for array in outputs.values())).hexdigest()


def test_resnet50_on_any_number_of_threads(resnet_path):
    inputs = {resnet50.INPUT_NAME: resnet50.sample_image()}
    models = [glowstone.compile(resnet_path, threads=threads) for threads in THREADS]
    assert len({digest(model.run(inputs)) for model in models for _ in range(2)}) == 1


def test_recognizer_and_encoder_on_any_number_of_threads(recognizer_path, encoder_path):
    images = {recognizer.INPUT_NAME: recognizer.prepare(recognizer.render_line("bits"), 200)}
    for path, inputs in ((recognizer_path, images), (encoder_path, encoder_inputs(2, 33))):
        shapes = {name: array.shape for name, array in inputs.items()}
        models = [glowstone.compile(path, shapes=shapes, threads=threads) for threads in THREADS]
        assert len({digest(model.run(inputs)) for model in models for _ in range(3)}) == 1


def test_flush_to_zero_of_the_caller_changes_nothing(tmp_path):
    path = save_matrix_product(tmp_path / "denormal.onnx", rows=4, inner=8, columns=8, scale=1e-20)
    model = glowstone.compile(path)
    inputs = {"x": np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32) * np.float32(1e-20)}
    expected = model.run(inputs)["y"]
    assert 0 < np.abs(expected).max() < np.finfo(np.float32).tiny
    with flushing_denormals() as is_flushing:
        assert is_flushing()
        found = model.run(inputs)["y"]
        assert is_flushing()
    assert found.tobytes() == expected.tobytes()


_ORDERS = """
import hashlib, sys
import glowstone
from glowstone.tools import recognizer
model = glowstone.compile(sys.argv[1], shapes={recognizer.INPUT_NAME: (1, 3, recognizer.HEIGHT, 320)})
digests = {}
for width in map(int, sys.argv[2].split(",")):
    image = recognizer.prepare(recognizer.render_line("two orders"), width)
    digests[width] = hashlib.sha256(model(image).tobytes()).hexdigest()
print(sorted(digests.items()))
"""


def test_the_order_of_shapes_does_not_matter(recognizer_path):
    orders = [run_python(_ORDERS, str(recognizer_path), order) for order in ("96,200", "200,96")]
    assert orders[0] == orders[1]


_COMPILE = """
import sys
import glowstone
from glowstone.tools import recognizer
glowstone.compile(sys.argv[1], shapes={recognizer.INPUT_NAME: (1, 3, recognizer.HEIGHT, 160)})
"""


def folder_digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file of any size in a folder."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.stat().st_size]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("seeds", [("0", "12345")])
def test_the_executable_is_the_same_under_any_hash_seed(recognizer_path, tmp_path, seeds):
    folders = []
    for seed in seeds:
        folders.append(tmp_path / seed)
        environment = {"PYTHONHASHSEED": seed, "GLOWSTONE_CACHE_DIR": str(folders[-1])}
        run_python(_COMPILE, str(recognizer_path), environment=environment)
    first, second = map(folder_digests, folders)
    assert len(first) > 0
    assert first == second
