"""Published and built models in full size against ONNX Runtime, as machine code alone, within their memory.

Every check of one model runs on the same compiled model. `test_passes.py` compares them with themselves unoptimized.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from helpers.agreement import assert_agrees
from helpers.machine_code import machine_code_alone
from helpers.networks.catalogue import FULL, REDUCED, Network, named
from helpers.networks.half import to_half
from helpers.peer import Peer
from onnx import ModelProto

import glowstone

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "memory_table.py"
MEMORY_FACTOR = 1.01  # of the bound
DISTINCT_VALUES = 100
HALF_PRECISION_TOLERANCE = 5e-3  # of the largest value
IN_HALF_PRECISION = ("light_resnet50", "light_shufflenet", "unet", "yolo", "convnext", "swin", "decoder")


@dataclass(frozen=True)
class Compiled:
    network: Network
    content: bytes
    model: glowstone.Model


@pytest.fixture(scope="module")
def memory_table():
    spec = importlib.util.spec_from_file_location("memory_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=[network.name for network in FULL])
def compiled(request) -> Compiled:
    network = named(FULL, request.param)
    content = network.build()
    return Compiled(network, content, network.compile(content))


def test_against_onnxruntime(compiled):
    network, peer = compiled.network, Peer(compiled.content)
    inputs = [network.inputs(seed) for seed in (0, 1)]
    with machine_code_alone():
        found = [compiled.model.run(one) for one in inputs]
    expected = [peer.run({**one, **network.constants}) for one in inputs]
    for ours, theirs in zip(found, expected, strict=True):
        assert list(ours) == list(theirs)
        for name, array in theirs.items():
            assert_agrees(ours[name], array, name)
    for name, array in expected[0].items():
        assert np.abs(array - expected[1][name]).max() > 0.01 * np.abs(array).max(), f"{name} is the same for any input"
        assert not network.random_weights or len(np.unique(array)) >= DISTINCT_VALUES, name
    assert compiled.model.report()["host_steps"] == 0


def test_the_page_has_what_is_planned(compiled, memory_table):
    """`scripts/memory_table.py` writes the table."""
    row = memory_table.plan(compiled.network, compiled.content)
    assert row.planned <= MEMORY_FACTOR * row.bound
    assert f"{row}\n" in memory_table.PAGE.read_text()


def test_memory_is_at_the_bound(compiled):
    memory = compiled.model.report()["memory"]
    assert memory["arena_bytes"] <= MEMORY_FACTOR * memory["bound_bytes"]


@pytest.mark.parametrize("name", IN_HALF_PRECISION)
def test_half_precision(name):
    network = named(REDUCED, name)
    content = to_half(ModelProto.FromString(network.build())).SerializeToString()
    inputs = {
        key: array.astype(np.float16) if array.dtype == np.float32 else array
        for key, array in network.inputs(0).items()
    }
    model = network.compile(content)
    with machine_code_alone():
        found = model.run(inputs)
    for key, expected in Peer(content).run(inputs).items():
        assert expected.dtype == found[key].dtype == np.float16
        difference = np.abs(found[key].astype(np.float32) - expected.astype(np.float32)).max()
        assert difference <= HALF_PRECISION_TOLERANCE * np.abs(expected).max(), key
