"""Every network gives the same results with all optional passes, with none, and with random halves of them.

The names of the passes come from the pipelines. Networks are of reduced size, for each is compiled many times. Each
meets a few of the random halves; all of them where the environment has GLOWSTONE_NIGHTLY.
"""

from __future__ import annotations

import functools
import os

import numpy as np
import pytest
from helpers.agreement import assert_agrees
from helpers.networks.catalogue import REDUCED, Inputs, Network, named

from glowstone.backends.cpu.backend import CpuBackend
from glowstone.backends.cpu.target import Target
from glowstone.backends.interpreter import Interpreter
from glowstone.compiler import Settings, compile_template, optional_passes, plan_shape
from glowstone.importer import import_model, open_model
from glowstone.options import Options

HALVES = 20
HALVES_OF_A_NETWORK = HALVES if "GLOWSTONE_NIGHTLY" in os.environ else 3
"""Dealt so that every half meets several networks."""
IN_THE_INTERPRETER = ("digits", "voice_openvino", "decoder_opset_11", "unet", "convnext_opset_18", "swin_opset_13")
BACKEND = CpuBackend(Target.host())
PASSES = optional_passes(BACKEND)


def half(seed: int) -> list[str]:
    """About half of the passes."""
    random = np.random.default_rng(seed)
    return [name for name in PASSES if random.integers(2)]


def dealt_halves() -> list[tuple[str, int]]:
    """(network, seed) in the order of networks, so that one is built once."""
    dealt = enumerate(network.name for network in REDUCED for _ in range(HALVES_OF_A_NETWORK))
    return [(name, number % HALVES) for number, name in dealt]


@functools.lru_cache(maxsize=1)
def optimized(name: str) -> tuple[Network, bytes, Inputs, dict[str, np.ndarray]]:
    """A network, its file, inputs, and what all passes make of it."""
    network = named(REDUCED, name)
    content, inputs = network.build(), network.inputs(0)
    return network, content, inputs, network.compile(content).run(inputs)


def assert_same_without(name: str, skipped: list[str]) -> None:
    network, content, inputs, expected = optimized(name)
    found = network.compile(content, options={"skip_passes": skipped}).run(inputs)
    assert list(found) == list(expected)
    for output, array in expected.items():
        assert_agrees(found[output], array, output)


def test_every_pass_has_one_name_and_is_met_by_halves():
    assert len(set(PASSES)) == len(PASSES) > 30
    assert {"fold_constants", "merge_products", "fuse_epilogues", "assign_layouts", "stack_elementwise"} < set(PASSES)
    assert set.intersection(*(set(half(seed)) for seed in range(HALVES))) == set()
    assert set.union(*(set(half(seed)) for seed in range(HALVES))) == set(PASSES)
    assert {seed for _, seed in dealt_halves()} == set(range(HALVES))


@pytest.mark.parametrize("name", [network.name for network in REDUCED])
def test_all_passes_against_none(name):
    assert_same_without(name, list(PASSES))


@pytest.mark.parametrize(("name", "seed"), dealt_halves())
def test_random_halves(name, seed):
    assert_same_without(name, half(seed))


@functools.cache
def interpreted(name: str, kept: str | None) -> dict[str, np.ndarray]:
    """What the program of a network does in NumPy with memory checked, with one pass alone or none."""
    network = named(REDUCED, name)
    inputs = network.inputs(0)
    options = Options(check=True, skip_passes=tuple(one for one in PASSES if one != kept))
    settings = Settings(BACKEND, options=options)
    source = import_model(open_model(network.build()), network.shapes)
    template = compile_template(source, network.shapes, settings)
    return Interpreter(plan_shape(template, None, settings).program).run(inputs)


@pytest.mark.parametrize("kept", PASSES)
@pytest.mark.parametrize("name", IN_THE_INTERPRETER)
def test_each_pass_alone_in_the_interpreter(name, kept):
    expected = interpreted(name, None)
    for output, array in interpreted(name, kept).items():
        assert_agrees(array, expected[output], output)
