"""The voice detectors: rates and shapes decide branches; the state is carried from chunk to chunk."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.agreement import assert_agrees
from helpers.networks.published import voice_activity
from helpers.peer import Peer
from helpers.stepped import made

import glowstone
from glowstone.tools.fetch import fetch

CHUNKS = 50
SAMPLES = {16000: 64 + 512, 8000: 32 + 256}
"""Of one call, what is repeated of the chunk before included, by samples per second."""
BY_CHUNK = [
    ("silero_vad", 16000),
    ("silero_vad", 8000),
    ("silero_vad_op18_ifless", 16000),
    ("silero_vad_op18_ifless", 8000),
    ("silero_vad_16k_op15", 16000),
    ("silero_vad_half", 16000),
    ("silero_vad_openvino_16k", 16000),
]


def sound(count: int, samples: int) -> np.ndarray:
    """Chunks of noise that grows and fades, with a tone in it."""
    random = np.random.default_rng(samples)
    time = np.arange(count * samples).reshape(count, samples) / 16000
    noise = random.standard_normal((count, samples))
    return (0.3 * np.sin(2 * time) * (noise + np.sin(2 * np.pi * 220 * time))).astype(np.float32)


@pytest.mark.parametrize(("name", "rate"), BY_CHUNK)
def test_state_over_many_chunks(name, rate):
    path = fetch(voice_activity(name))
    model, peer = glowstone.compile(path), Peer(path)
    constants = {"sr": np.array(rate)} if any(info.name == "sr" for info in model.inputs) else {}
    ours = theirs = np.zeros((2, 1, 128), np.float32)
    for chunk in sound(CHUNKS, SAMPLES[rate])[:, None]:
        found = model.run({"input": chunk, "state": ours, **constants})
        expected = peer.run({"input": chunk, "state": theirs, **constants})
        assert list(found) == list(expected)
        for output, array in expected.items():
            assert_agrees(found[output], array, output)
        ours, theirs = found["stateN"], expected["stateN"]


def test_one_model_takes_both_rates():
    """Which branch runs is decided by the rate of each call."""
    path = fetch(voice_activity("silero_vad_op18_ifless"))
    model, peer = glowstone.compile(path, cache=False), Peer(path)
    state = np.zeros((2, 1, 128), np.float32)
    for rate in (16000, 8000, 16000):
        feeds = {"input": sound(1, SAMPLES[rate]), "state": state, "sr": np.array(rate)}
        for output, array in peer.run(feeds).items():
            assert_agrees(model.run(feeds)[output], array, output)
    assert "Branch" in [entry["operation"] for entry in model.report()["instructions"]]


def test_rates_in_turn_compile_nothing_anew():
    """Two streams side by side: the branches differ in shapes, so a rate is one specialization, of its branch alone."""
    path = fetch(voice_activity("silero_vad"))
    model, peer = glowstone.compile(path), Peer(path)
    ours, theirs = ({rate: np.zeros((2, 1, 128), np.float32) for rate in SAMPLES} for _ in range(2))
    sounds = {rate: sound(CHUNKS, samples)[:, None] for rate, samples in SAMPLES.items()}
    before = None
    for number in range(CHUNKS):
        for rate, chunks in sounds.items():
            found = model.run({"input": chunks[number], "state": ours[rate], "sr": np.array(rate)})
            expected = peer.run({"input": chunks[number], "state": theirs[rate], "sr": np.array(rate)})
            for output, array in expected.items():
                assert_agrees(found[output], array, output)
            ours[rate], theirs[rate] = found["stateN"], expected["stateN"]
        before = before or made(model)
    assert made(model) == before


def test_a_whole_sequence_with_the_state_carried_on():
    path = fetch(voice_activity("silero_vad_16k_sequence"))
    model, peer = glowstone.compile(path), Peer(path)
    ours = theirs = {name: np.zeros((1, 1, 128), np.float32) for name in "hc"}
    for part in np.array_split(sound(CHUNKS, SAMPLES[16000]), 4):
        found, expected = model.run({"input": part, **ours}), peer.run({"input": part, **theirs})
        for output, array in expected.items():
            assert_agrees(found[output], array, output)
        ours, theirs = ({"h": one["hn"], "c": one["cn"]} for one in (found, expected))
