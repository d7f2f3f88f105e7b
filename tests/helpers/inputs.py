"""Inputs of the three models."""

from __future__ import annotations

from typing import Any

import numpy as np

ENCODER_VOCABULARY = 30522


def encoder_inputs(batch: int, length: int) -> dict[str, Any]:
    """Random words for the sentence encoder; later sentences of a batch are shorter, and masked."""
    random = np.random.default_rng([batch, length])
    mask = np.zeros((batch, length), np.int64)
    for row in range(batch):
        mask[row, : max(1, length - row * length // 4)] = 1
    return {"input_ids": random.integers(0, ENCODER_VOCABULARY, (batch, length)) * mask, "attention_mask": mask}
