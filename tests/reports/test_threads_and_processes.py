"""Threads at rest, and threads that compile at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx
import pytest
from helpers.models import save_convolution_chain
from helpers.processes import run_python
from helpers.reports import model_of, normal

import glowstone

_IDLE = """
import sys, time
import numpy as np
import glowstone
model = glowstone.compile(sys.argv[1], threads=4)
x = np.ones((1, 16, 64, 64), np.float32)
for _ in range(3):
    model(x)
before = time.process_time()
time.sleep(1.0)
print(time.process_time() - before)
"""


def test_helpers_at_rest_take_no_processor_time(tmp_path):
    """onnxruntime#26847, onnxruntime#17011, onnxruntime#10273: threads between runs sleep; they do not spin."""
    path = save_convolution_chain(tmp_path / "chain.onnx", 4, channels=16, extent=64)
    assert float(run_python(_IDLE, str(path))) < 0.2


@pytest.mark.parametrize("cache", [True, False])
def test_models_compiled_by_threads_at_once(cache, tmp_path):
    """onnxruntime#27089: one model and different ones, made and run by eight threads, with one empty cache."""
    models = []
    for number in range(3):
        text = (
            f"main (float[n, 6] x) => (float[n, 6] y) {{ p = MatMul (x, w) y = {('Tanh', 'Relu', 'Exp')[number]} (p) }}"
        )
        models.append(model_of(text, weights={"w": normal(6, 6, seed=number) / 3}))
        onnx.save(models[-1], tmp_path / f"{number}.onnx")
    x = normal(4, 6, seed=9)
    options = {"cache_dir": str(tmp_path / "cache")}

    def make(task):
        path = tmp_path / f"{task % 3}.onnx"
        return glowstone.compile(path, cache=cache, options=options)(x).tobytes()

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(make, range(12)))
    expected = [glowstone.compile(model, cache=False)(x) for model in models]
    functions = (np.tanh, lambda p: np.maximum(p, 0), np.exp)
    for model, function, array in zip(models, functions, expected, strict=True):
        weights = onnx.numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
        np.testing.assert_allclose(array, function(x @ weights), rtol=1e-5, atol=1e-6)
    assert found == [expected[task % 3].tobytes() for task in range(12)]
