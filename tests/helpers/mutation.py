"""Models damaged or changed at random: a mutant is made from its number alone, so each can be made again.

A mutant is a model of the corpus with one edit or a few. Edits of bytes do not care what the bytes mean; edits of
fields change the message, and leave one that still parses; edits of meaning leave most models valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from helpers.mutation_edits import BYTE_EDITS, FIELD_EDITS, Edit, Message, pick
from helpers.mutation_of_meaning import MEANING_EDITS

SEED = 20261129
EDIT_COUNTS = (1, 1, 1, 2, 3)
MOST_EDITS = max(EDIT_COUNTS)
KINDS: tuple[str, ...] = ("bytes",) * 3 + ("fields",) * 4 + ("meaning",) * 3
MESSAGE_EDITS: Mapping[str, Sequence[Edit]] = {"fields": FIELD_EDITS, "meaning": MEANING_EDITS}
TRIES = 20
"""How often an edit that finds nothing to change is drawn again."""


@dataclass(frozen=True)
class Mutant:
    """A damaged model: the name of the model that it was, its bytes, and the edits by name."""

    number: int
    name: str
    data: bytes
    edits: tuple[str, ...]


def mutant(number: int, corpus: Mapping[str, bytes], kept: Sequence[int] = range(MOST_EDITS)) -> Mutant:
    """The mutant of a number; of its edits those at the positions `kept`."""
    random = np.random.default_rng([SEED, number])
    name, donor = pick(random, sorted(corpus)), pick(random, sorted(corpus))
    kind, count = pick(random, KINDS), pick(random, EDIT_COUNTS)
    wanted = [position for position in range(count) if position in kept]
    data, names = corpus[name], []
    if kind == "bytes":
        for position in wanted:
            random = np.random.default_rng([SEED, number, position])
            edit = pick(random, BYTE_EDITS)
            data = edit(data, random)
            names.append(edit.__name__)
    else:
        model, other = onnx.ModelProto.FromString(data), onnx.ModelProto.FromString(corpus[donor])
        for position in wanted:
            names += _edited(model, other, MESSAGE_EDITS[kind], [SEED, number, position])
        data = model.SerializeToString(deterministic=True)
    return Mutant(number, name, data, tuple(names))


def _edited(model: Message, donor: Message, edits: Sequence[Edit], seed: list[int]) -> list[str]:
    """Edit a model; the name of the edit, if one was found that applies."""
    for attempt in range(TRIES):
        random = np.random.default_rng([*seed, attempt])
        edit = pick(random, edits)
        try:
            edit(model, donor, random)
        except Exception:  # nothing to change, a value that the field does not hold, what earlier edits left
            continue
        return [edit.__name__]
    return []


def is_parsed(data: bytes) -> bool:
    """Whether protobuf takes the bytes for a model."""
    try:
        onnx.ModelProto.FromString(data)
    except Exception:
        return False
    return True
