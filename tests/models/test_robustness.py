"""Processes, threads and signals around compiled models. What could hang or crash runs in a process of its own."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from helpers.models import save_convolution_chain, save_matrix_product, save_small_convolution
from helpers.processes import run_python

import glowstone

CHANNELS = 64
EXTENT = 56


@pytest.fixture(scope="module")
def chain(tmp_path_factory) -> Path:
    """Enough work for every run to wake the pool."""
    return save_convolution_chain(tmp_path_factory.mktemp("models") / "chain.onnx", 3, CHANNELS, EXTENT)


@pytest.fixture(scope="module")
def image() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((1, CHANNELS, EXTENT, EXTENT), dtype=np.float32)


_FORK = """
import os, sys
import numpy as np
import glowstone
model = glowstone.compile(sys.argv[1], threads=2)
x = np.random.default_rng(0).standard_normal((1, 64, 56, 56), dtype=np.float32)
expected = model(x)
child = os.fork()
if child == 0:
    os._exit(0 if all(model(x).tobytes() == expected.tobytes() for _ in range(3)) else 1)
assert model(x).tobytes() == expected.tobytes()
assert os.waitpid(child, 0)[1] == 0
print("good")
"""


def test_a_child_forked_from_a_parked_pool_runs(chain):
    assert run_python(_FORK, str(chain)) == "good\n"


_EXIT = """
import sys
import numpy as np
import glowstone
model = glowstone.compile(sys.argv[1], threads=4)
model(np.ones((1, 64, 56, 56), np.float32))
print("good")
"""


def test_the_interpreter_exits_with_parked_helpers(chain):
    assert run_python(_EXIT, str(chain)) == "good\n"


_LONG = """
import sys, time
import numpy as np
import glowstone
model = glowstone.compile(sys.argv[1], threads=2)
x = np.ones((1, 64, 56, 56), np.float32)
begin = time.perf_counter()
model(x)
whole = time.perf_counter() - begin
print("started", flush=True)
begin = time.perf_counter()
try:
    model(x)
    print("finished")
except KeyboardInterrupt:
    print("interrupted" if time.perf_counter() - begin < 0.7 * whole else "interrupted at the end")
model(x)
print("good")
"""


def test_an_interrupt_stops_a_long_run_and_leaves_the_model_usable(tmp_path):
    path = save_convolution_chain(tmp_path / "long.onnx", 300, CHANNELS, EXTENT)
    process = subprocess.Popen([sys.executable, "-c", _LONG, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=120)
    assert out == "interrupted\ngood\n"


def run_in_threads(*functions) -> None:
    """Run the functions at once; raise the first error."""
    errors = []

    def guarded(function):
        try:
            function()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_one_model_from_eight_threads_at_once(chain, image):
    model = glowstone.compile(chain, threads=2)
    inputs = [image * np.float32(scale) for scale in range(1, 9)]
    expected = [model(one).tobytes() for one in inputs]

    def check(index):
        def run():
            for _ in range(5):
                assert model(inputs[index]).tobytes() == expected[index]

        return run

    run_in_threads(*map(check, range(8)))


def test_two_models_from_two_threads(chain, image, tmp_path):
    product = glowstone.compile(save_matrix_product(tmp_path / "product.onnx", 256, 512, 512), threads=2)
    convolution = glowstone.compile(chain, threads=2)
    rows = np.random.default_rng(1).standard_normal((256, 512), dtype=np.float32)
    expected = {"product": product(rows).tobytes(), "convolution": convolution(image).tobytes()}

    def check(model, array, name):
        for _ in range(10):
            assert model(array).tobytes() == expected[name]

    run_in_threads(lambda: check(product, rows, "product"), lambda: check(convolution, image, "convolution"))


def test_a_bound_call_that_is_entered_twice_raises(tmp_path, image):
    model = glowstone.compile(save_convolution_chain(tmp_path / "chain.onnx", 20, CHANNELS, EXTENT), threads=1)
    call = model.bind({"x": image})
    refused = []
    stop = threading.Event()

    def enter():
        while not stop.is_set():
            try:
                call()
            except glowstone.GlowstoneError as error:
                refused.append(error)
                stop.set()

    run_in_threads(enter, enter)
    assert "bind" in str(refused[0])
    call()


def test_outputs_that_overlap_inputs_are_refused(tmp_path):
    model = glowstone.compile(save_matrix_product(tmp_path / "square.onnx", 8, 8, 8))
    memory = np.zeros((12, 8), np.float32)
    with pytest.raises(glowstone.InputError):
        model.bind({"x": memory[:8]}, outputs={"y": memory[4:]})
    with pytest.raises(glowstone.InputError):
        model.bind({"x": memory[:8]}, outputs={"y": memory[:8]})


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_fifty_models_compiled_and_dropped_leave_memory_flat(tmp_path):
    path = save_matrix_product(tmp_path / "weights.onnx", 4, 1024, 1024)
    x = np.ones((4, 1024), np.float32)

    def compile_and_drop():
        glowstone.compile(path)(x)
        gc.collect()

    for _ in range(10):
        compile_and_drop()
    before = resident_bytes()
    for _ in range(50):
        compile_and_drop()
    one_model = 1024 * 1024 * 4
    assert resident_bytes() - before < 5 * one_model


_COMPILE = """
import sys
import numpy as np
import glowstone
print("begin", flush=True)
model = glowstone.compile(sys.argv[1], shapes={"x": (1, 3, 48, 64)})
print(float(model(np.ones((1, 3, 48, 64), np.float32)).sum()))
"""


@pytest.mark.parametrize("delay", [0.05, 0.3, 0.6, 1.0])
def test_a_kill_during_compile_leaves_the_cache_whole(tmp_path, delay):
    path = save_small_convolution(tmp_path / "model.onnx")
    environment = {"GLOWSTONE_CACHE_DIR": str(tmp_path / "cache")}
    process = subprocess.Popen(
        [sys.executable, "-c", _COMPILE, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begin\n"
    time.sleep(delay)
    process.kill()
    process.communicate()
    results = {run_python(_COMPILE, str(path), environment=environment) for _ in range(2)}
    assert len(results) == 1
    assert float(results.pop().splitlines()[1]) == pytest.approx(48 * 64, rel=1e-5)
