"""Many shapes in turn leave resident memory flat, whatever kind of model. Each runs in a process of its own."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from helpers.processes import run_python
from helpers.stepped import FLOAT, INT64, info, model_of, node

random = np.random.default_rng(63)

WARM_UP, SHAPES = 60, 200
MOST_MEBIBYTES = 8
"""What a single executable for each of the shapes would exceed."""

_RUN = """
import os, pickle, sys
import glowstone
with open(sys.argv[1], "rb") as file:
    model, warm_up, feeds = pickle.load(file)
compiled = glowstone.compile(model)

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def run(feeds):
    for feed in feeds:
        compiled.run(feed)

run(warm_up)
before = resident()
run(feeds)
print(resident() - before)
"""


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def convolutions():
    """Batch, height and width are symbolic."""
    nodes = [
        node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"]),
        node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["c", "second"], ["d"], pads=[1, 1, 1, 1]),
        node("Resize", ["d", "", "scales"], ["e"], mode="linear"),
        node("GlobalAveragePool", ["e"], ["f"]),
        node("Flatten", ["f"], ["g"]),
        node("MatMul", ["g", "head"], ["y"]),
    ]
    constants = {"first": normal(16, 3, 3, 3), "second": normal(16, 16, 3, 3), "head": normal(16, 10)}
    constants["scales"] = np.array([1, 1, 2, 2], np.float32)
    inputs, outputs = [info("x", FLOAT, ["n", 3, "h", "w"])], [info("y", FLOAT, ["n", 10]), info("e", FLOAT, None)]
    return model_of(nodes, inputs, outputs, constants), lambda i: {"x": normal(1 + i % 3, 3, 8 + i % 37, 8 + i % 41)}


def attention():
    """Of any batch and length; the scores grow with the square of it."""
    nodes = [
        *(node("MatMul", ["x", f"w{name}"], [name]) for name in "qkv"),
        node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
        node("MatMul", ["q", "kt"], ["scores"]),
        node("Softmax", ["scores"], ["p"], axis=-1),
        node("MatMul", ["p", "v"], ["o"]),
        node("LayerNormalization", ["o", "scale"], ["y"]),
        node("CumSum", ["y", "one"], ["sums"]),
    ]
    constants = {f"w{name}": normal(32, 32) for name in "qkv"} | {"scale": normal(32), "one": np.array(1)}
    model = model_of(nodes, [info("x", FLOAT, ["b", "s", 32])], [info("sums", FLOAT, None)], constants)
    return model, lambda i: {"x": normal(1 + i % 5, 1 + i % 53, 32)}


def found():
    """Cut where the number of what is found decides shapes."""
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("NonZero", ["x"], ["places"]),
        node("Transpose", ["places"], ["rows"], perm=[1, 0]),
        node("GatherND", ["x", "rows"], ["picked"]),
        node("Softmax", ["picked"], ["y"], axis=0),
    ]
    outputs = [info("y", FLOAT, ["n"]), info("p", FLOAT, ["rows", 4])]
    model = model_of(nodes, [info("x", FLOAT, ["rows", 6])], outputs, {"w": normal(6, 4)})
    return model, lambda i: {"x": np.maximum(normal(1 + i * 7 % 260, 6), 0)}


def numbers():
    """In steps: the values of inputs decide shapes."""
    nodes = [
        node("Expand", ["x", "shape"], ["larger"]),
        node("Tile", ["larger", "repeats"], ["t"]),
        node("Range", ["zero", "count", "one"], ["r"]),
    ]
    inputs = [info("x", FLOAT, ["k"]), info("shape", INT64, [2]), info("repeats", INT64, [2]), info("count", INT64, [])]
    outputs = [info("t", FLOAT, None), info("r", INT64, None)]
    model = model_of(nodes, inputs, outputs, {"zero": np.array(0), "one": np.array(1)})
    return model, lambda i: {
        "x": normal(1 + i % 7),
        "shape": np.array([1 + i * 7 % 260, 1 + i % 7]),
        "repeats": np.array([1 + i % 3, 2]),
        "count": np.array(i),
    }


def deciding(feed):
    """What shapes follow from: the inputs' shapes, and the integers among them."""
    return tuple((array.shape, array.tobytes() if array.dtype == np.int64 else b"") for array in feed.values())


@pytest.mark.parametrize("make", [convolutions, attention, found, numbers])
def test_memory_stays_flat(make, tmp_path):
    model, feed = make()
    feeds = [feed(i) for i in range(WARM_UP + SHAPES)]
    assert len(set(map(deciding, feeds))) == len(feeds)
    path = tmp_path / "feeds.pickle"
    path.write_bytes(pickle.dumps((model.SerializeToString(), feeds[:WARM_UP], feeds[WARM_UP:])))
    grown = int(run_python(_RUN, str(path))) / 2**20
    assert grown < MOST_MEBIBYTES, f"{grown:.1f} MiB"
