"""Lines of text to read: words, numbers and signs in seeded order."""

from __future__ import annotations

import numpy as np

_WORDS = (
    *("network", "graph", "kernel", "memory", "vector", "layout", "buffer", "tensor", "stride", "window", "lower"),
    *("fuse", "pack", "plan", "read", "write", "light", "stone", "thread", "arena", "shape", "width", "height"),
    *("batch", "value", "node", "table", "call", "unit", "lane", "cache", "model", "image", "letter", "number"),
)
_ENDINGS = ("", ".", "!", "?", ",", ":", " 2018", " 42", " (a)", " x=1")


def sample_lines(count: int, seed: int = 0) -> list[str]:
    """Different lines of one to six words each."""
    random = np.random.default_rng(seed)
    lines: dict[str, None] = {}
    while len(lines) < count:
        words = [str(word) for word in random.choice(_WORDS, random.integers(1, 7))]
        lines[" ".join(words).capitalize() + str(random.choice(_ENDINGS))] = None
    return list(lines)
