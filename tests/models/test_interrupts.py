"""Ctrl-C: a run or a compilation stops, and what is there afterwards is whole. All in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from helpers.models import save_convolution_chain
from helpers.processes import run_python

_LOOP = """
main (int64 count, float[8, 8] x) => (float[8, 8] y, int64 n) {
  yes = Constant <value = bool {1}> ()
  zero = Constant <value = int64 {0}> ()
  y, n = Loop(count, yes, x, zero) <body = step (int64 i, bool c, float[8, 8] v, int64 k) =>
    (bool go, float[8, 8] next, int64 passes) {
      one = Constant <value = int64 {1}> ()
      product = MatMul(v, v)
      next = Tanh(product)
      passes = Add(k, one)
      go = Identity(c)
    }>
}
"""

_RUN_LOOP = """
import os, signal, sys, threading, time
import numpy as np
import glowstone
compiled = glowstone.compile(sys.argv[1], threads=int(sys.argv[2]))
x = np.eye(8, dtype=np.float32)
def feeds(count):
    return {"count": np.array(count), "x": x}
compiled.run(feeds(3))
for attempt in range(2):
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        compiled.run(feeds(1 << 60))  # would take centuries
    except KeyboardInterrupt:
        print("interrupted")
    timer.join()
found = compiled.run(feeds(5))
expected = x
for _ in range(5):
    expected = np.tanh(expected @ expected)
np.testing.assert_allclose(found["y"], expected, rtol=1e-4, atol=1e-5)
assert found["n"] == 5
"""


def test_a_long_loop_is_interrupted_and_the_model_stays_usable(tmp_path):
    path = tmp_path / "loop.onnx"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]>\n{_LOOP}')
    path.write_bytes(model.SerializeToString())
    for threads in ("1", "2"):
        assert run_python(_RUN_LOOP, str(path), threads).split() == ["interrupted"] * 2


_COMPILE = """
import os, signal, sys
import glowstone
from glowstone.api.compilation import Request, compile_request
def interrupt(ready, count):
    os.kill(os.getpid(), signal.SIGINT)
try:
    compile_request(Request(sys.argv[1], options={"compile_processes": 3}), interrupt)
except KeyboardInterrupt:
    sys.exit(42)
"""

_RUN = """
import sys
import numpy as np
import glowstone
x = np.random.default_rng(0).standard_normal((1, 4, 12, 12), dtype=np.float32)
sys.stdout.buffer.write(glowstone.compile(sys.argv[1])(x).tobytes())
"""


def test_an_interrupted_compilation_leaves_nothing_behind(tmp_path):
    """No process, no file half written; what the cache holds serves the next compilation."""
    path, cache = save_convolution_chain(tmp_path / "chain.onnx", 60, 4, 12), tmp_path / "cache"
    environment = {**os.environ, "GLOWSTONE_CACHE_DIR": str(cache)}
    process = subprocess.Popen(
        [sys.executable, "-c", _COMPILE, str(path)], env=environment, start_new_session=True, stderr=subprocess.PIPE
    )
    _, shown = process.communicate(timeout=120)
    assert process.returncode == 42, shown
    assert not [entry for entry in Path("/proc").glob("[0-9]*") if _session(entry) == process.pid]
    assert not [entry.name for entry in cache.iterdir() if entry.name.startswith(".") or entry.name.endswith(".model")]
    outputs = [_result(path, folder) for folder in (cache, tmp_path / "other")]
    np.testing.assert_array_equal(*outputs)
    assert np.isfinite(outputs[0]).all()


def _session(process: Path) -> int | None:
    """The session of a process; None where it has ended meanwhile."""
    try:
        return os.getsid(int(process.name))
    except ProcessLookupError:
        return None


def _result(path: Path, cache: Path) -> np.ndarray:
    environment = {**os.environ, "GLOWSTONE_CACHE_DIR": str(cache)}
    outcome = subprocess.run(
        [sys.executable, "-c", _RUN, str(path)], env=environment, stdout=subprocess.PIPE, check=True, timeout=120
    )
    return np.frombuffer(outcome.stdout, np.float32)
