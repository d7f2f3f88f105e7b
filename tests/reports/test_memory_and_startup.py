"""Memory while compiling and running, what is loaded when a model starts, and what a full disk does."""

from __future__ import annotations

import json

import numpy as np
import onnx
from helpers.models import save_convolution_chain, save_matrix_product
from helpers.processes import run_python
from helpers.reports import model_of, normal

import glowstone

MODELS = 20


def small_model(number):
    """One of many models that differ in weights and widths."""
    text = f"main (float[n, 8] x) => (float[n, {number + 1}] y) {{ p = MatMul (x, w) s = Add (p, b) y = Tanh (s) }}"
    return model_of(text, weights={"w": normal(8, number + 1, seed=number), "b": normal(number + 1, seed=number)})


def test_many_models_start_without_compiling(tmp_path):
    """openvino#29268: over 240 models at the start of a service, a sample of them; models share kernels."""
    options = {"cache_dir": str(tmp_path / "cache")}
    x = normal(3, 8)
    paths = [tmp_path / f"{number}.onnx" for number in range(MODELS)]
    for number, path in enumerate(paths):
        onnx.save(small_model(number), path)
    first = [glowstone.compile(path, shapes={"x": x.shape}, options=options) for path in paths]
    compiled = [model.report()["counters"]["kernels_compiled"] for model in first]
    assert sum(compiled[1:]) == 0  # another width needs no other kernel
    second = [glowstone.compile(path, shapes={"x": x.shape}, options=options) for path in paths]
    for before, after in zip(first, second, strict=True):
        assert after(x).tobytes() == before(x).tobytes()
        counters = after.report()["counters"]
        assert counters["kernels_compiled"] == counters["pipeline_runs"] == 0


_FULL = """
import resource, signal, sys, warnings
import numpy as np
import glowstone
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
warnings.simplefilter("ignore")
model = glowstone.compile(sys.argv[1])
print(float(model(np.ones((2, 64), np.float32)).sum()))
"""


def test_a_disk_without_room_costs_the_cache_only(tmp_path):
    """OpenArc#118: no file can grow beyond a page; the model compiles and runs, and no part of an entry stays."""
    path = save_matrix_product(tmp_path / "model.onnx", 2, 64, 64)
    environment = {"GLOWSTONE_CACHE_DIR": str(tmp_path / "cache")}
    full = float(run_python(_FULL, str(path), environment=environment))
    assert full == float(glowstone.compile(path, cache=False)(np.ones((2, 64), np.float32)).sum())
    assert all(file.stat().st_size < 4096 for file in (tmp_path / "cache").rglob("*"))
    for _ in range(2):  # what is there is no trap
        found = glowstone.compile(path, options={"cache_dir": environment["GLOWSTONE_CACHE_DIR"]})
        assert float(found(np.ones((2, 64), np.float32)).sum()) == full


_PEAK = """
import json, resource, sys
import glowstone
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
glowstone.compile(sys.argv[1], cache=False)
before = peak()
model = glowstone.compile(sys.argv[2], cache=False)
print(json.dumps({"growth": peak() - before, "constants": model.report()["memory"]["constants_bytes"]}))
"""


def test_memory_of_compiling_is_a_few_times_the_weights(tmp_path):
    """onnx-mlir#2821, fastsdcpu#40: 1.1 GB of weights took 9 GB to compile, and a cache doubled the memory."""
    small = save_matrix_product(tmp_path / "small.onnx", 4, 64, 64)
    large = save_matrix_product(tmp_path / "large.onnx", 4, 2048, 2048)
    weights = 4 * 2048 * 2048
    found = json.loads(run_python(_PEAK, str(small), str(large)))
    assert found["constants"] <= 1.1 * weights
    assert found["growth"] <= 4.5 * weights


def test_layers_share_kernels(tmp_path):
    """iree#14668, iree#21477, iree#20775, AMD-SHARK#1640: work for LLVM does not grow with the depth of a model."""
    kernels = []
    for length in (4, 24):
        path = save_convolution_chain(tmp_path / f"{length}.onnx", length, channels=16, extent=10)
        kernels.append(glowstone.compile(path, cache=False).report()["kernels"])
    assert kernels[0] == kernels[1]


def test_weights_that_nothing_reads_take_no_memory():
    """glow#2548: unused constants, and those that only unused nodes read."""
    text = "main (float[2, 8] x) => (float[2, 8] y) { dead = MatMul (x, unread) y = Mul (x, scale) }"
    weights = {"scale": normal(8), "unread": normal(8, 9000), "alone": normal(70_000)}
    memory = glowstone.compile(model_of(text, weights=weights)).report()["memory"]
    assert memory["constants_bytes"] < 4096
    assert memory["arena_bytes"] < 4096
