"""Two hundred random shapes, batch 0 and length 1 included, from few templates and kernels, right as from scratch."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.agreement import assert_agrees
from helpers.inputs import encoder_inputs

import glowstone
from glowstone.tools import recognizer

SHAPES = 100  # of each model
COMPARED = 10  # every tenth shape, and the special ones, go through the full pipeline as well
SPECIAL = 3
SETTLED = 10  # shapes after which every kernel is there
MOST_TEMPLATES = 3


def recognizer_cases() -> list[dict]:
    """Images of noise; widths below 8 are too small for the network's windows."""
    random = np.random.default_rng(0)
    sizes = [(0, 64), (1, 8), (2, 8), *zip(random.integers(0, 4, SHAPES), random.integers(8, 160, SHAPES), strict=True)]
    return [
        {recognizer.INPUT_NAME: random.standard_normal((batch, 3, recognizer.HEIGHT, width), dtype=np.float32)}
        for batch, width in sizes[:SHAPES]
    ]


def encoder_cases() -> list[dict]:
    random = np.random.default_rng(1)
    sizes = [(0, 8), (1, 1), (3, 1), *zip(random.integers(0, 5, SHAPES), random.integers(1, 64, SHAPES), strict=True)]
    return [encoder_inputs(int(batch), int(length)) for batch, length in sizes[:SHAPES]]


@pytest.mark.parametrize(
    ("path", "reference", "cases"),
    [
        ("recognizer_path", {recognizer.INPUT_NAME: (1, 3, recognizer.HEIGHT, 320)}, recognizer_cases),
        ("encoder_path", {"input_ids": (1, 128), "attention_mask": (1, 128)}, encoder_cases),
    ],
    ids=["recognizer", "encoder"],
)
def test_the_template_gives_what_the_full_pipeline_gives(path, reference, cases, request):
    file = request.getfixturevalue(path)
    model = glowstone.compile(file, shapes=reference)
    found, kernels = [], []
    for inputs in cases():
        found.append(model.run(inputs))
        kernels.append(model.report()["counters"]["kernels_compiled"])
    counters = model.report()["counters"]
    assert counters["templates"] <= MOST_TEMPLATES
    assert counters["pipeline_runs"] <= MOST_TEMPLATES
    assert kernels[SETTLED:] == [kernels[SETTLED]] * (SHAPES - SETTLED)
    for number, (inputs, outputs) in enumerate(zip(cases(), found, strict=True)):
        if number >= SPECIAL and number % COMPARED:
            continue
        shapes = {name: array.shape for name, array in inputs.items()}
        direct = glowstone.compile(file, shapes=shapes, cache=False).run(inputs)
        for name, expected in direct.items():
            assert_agrees(outputs[name], expected, f"{name} at {shapes}")
