"""Operands and attributes of valid nodes, changed at random: refused with an error of Glowstone's, or imported."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.microsoft import Array, node_model
from helpers.microsoft_cases import CASES

import glowstone
from glowstone.importer import import_model, open_model

MUTANTS = 150
ELEMENTS = (np.float32, np.float16, np.uint8, np.int8, np.int32, np.int64, np.bool_)
ATTRIBUTES: tuple[object, ...] = (-1, 0, 3, 77, 0.5, "x", [1, 2])


def mutated(array: Array | None, random: np.random.Generator) -> Array | None:
    """Another shape or element type, or left out; one that was left out gets a value."""
    if array is None:
        return np.ones(random.integers(0, 4, random.integers(0, 5)), np.float32)
    choice = random.integers(6)
    if choice == 0:
        return None
    if choice == 1 and array.ndim:
        return array[tuple(slice(0, random.integers(0, extent + 1)) for extent in array.shape)]
    if choice == 2:
        return array[None]
    if choice == 3:
        return array.astype(ELEMENTS[random.integers(len(ELEMENTS))])
    if choice == 4 and array.ndim:
        return np.concatenate([array, array], random.integers(array.ndim))
    return array.reshape(-1)


@pytest.mark.parametrize("kind", CASES)
def test_mutants(kind):
    random = np.random.default_rng(sorted(CASES).index(kind))
    imported = refused = 0
    for _ in range(MUTANTS):
        operands, attributes = list(CASES[kind][0]), dict(CASES[kind][1])
        for _ in range(random.integers(0, 3)):
            place = random.integers(len(operands))
            operands[place] = mutated(operands[place], random)
        if attributes and random.uniform() < 0.3:
            attributes[list(attributes)[random.integers(len(attributes))]] = ATTRIBUTES[
                random.integers(len(ATTRIBUTES))
            ]
        if random.uniform() < 0.1:
            operands = operands[: random.integers(len(operands))]
        fixed = [place for place in range(len(operands)) if random.uniform() < 0.5]
        model = node_model(kind, [operands], attributes, fixed=fixed)
        try:
            import_model(open_model(model))
            imported += 1
        except glowstone.GlowstoneError:
            refused += 1
    assert imported
    assert refused
