"""Published and built models against ONNX Runtime and against themselves unoptimized, as machine code alone.

Every check of one model runs on the same compiled model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from helpers.agreement import assert_agrees
from helpers.machine_code import machine_code_alone
from helpers.networks.catalogue import FULL, REDUCED, Network
from helpers.networks.half import to_half
from helpers.peer import Peer
from onnx import ModelProto

import glowstone
from glowstone.backends.cpu.backend import CpuBackend
from glowstone.backends.cpu.target import Target
from glowstone.compiler import optional_passes

MEMORY_FACTOR = 1.01  # of the bound
DISTINCT_VALUES = 100
HALF_PRECISION_TOLERANCE = 5e-3  # of the largest value
IN_HALF_PRECISION = ("light_resnet50", "light_shufflenet", "unet", "yolo", "convnext", "swin", "decoder")
ALL_PASSES = optional_passes(CpuBackend(Target.host()))


@dataclass(frozen=True)
class Compiled:
    network: Network
    content: bytes
    model: glowstone.Model


def compile_network(network: Network, content: bytes, **arguments: object) -> glowstone.Model:
    shapes = {name: array.shape for name, array in network.inputs(0).items()}
    return glowstone.compile(content, shapes=shapes, constants=network.constants or None, **arguments)


@pytest.fixture(scope="module", params=FULL, ids=lambda network: network.name)
def compiled(request) -> Compiled:
    network = request.param
    content = network.build()
    return Compiled(network, content, compile_network(network, content))


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


def test_memory_is_at_the_bound(compiled):
    memory = compiled.model.report()["memory"]
    assert memory["arena_bytes"] <= MEMORY_FACTOR * memory["bound_bytes"]


def test_optimized_against_unoptimized(compiled):
    plain = compile_network(compiled.network, compiled.content, options={"skip_passes": ALL_PASSES})
    inputs = compiled.network.inputs(0)
    expected = plain.run(inputs)
    for name, array in compiled.model.run(inputs).items():
        assert_agrees(array, expected[name], name)
    instructions = [len(model.report()["instructions"]) for model in (compiled.model, plain)]
    assert instructions[0] < instructions[1]


@pytest.mark.parametrize("name", IN_HALF_PRECISION)
def test_half_precision(name):
    network = next(one for one in REDUCED if one.name == name)
    content = to_half(ModelProto.FromString(network.build())).SerializeToString()
    inputs = {
        key: array.astype(np.float16) if array.dtype == np.float32 else array
        for key, array in network.inputs(0).items()
    }
    model = compile_network(network, content)
    with machine_code_alone():
        found = model.run(inputs)
    for key, expected in Peer(content).run(inputs).items():
        assert expected.dtype == found[key].dtype == np.float16
        difference = np.abs(found[key].astype(np.float32) - expected.astype(np.float32)).max()
        assert difference <= HALF_PRECISION_TOLERANCE * np.abs(expected).max(), key
