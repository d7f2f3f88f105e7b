"""Memory for activations: aligned blocks, taken for a call and given back, shared by all shapes of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

ALIGNMENT = 64


def aligned_bytes(size: int) -> Bytes:
    """Uninitialized bytes that begin on a cache line; a line where none are asked for, so that there is an address."""
    size = max(size, ALIGNMENT)
    block = np.empty(size + ALIGNMENT, np.uint8)
    skip = -block.ctypes.data % ALIGNMENT
    return block[skip : skip + size]


class ArenaPool:
    """Idle arenas. As many exist as calls were ever in flight at once, each as large as was ever asked of it."""

    def __init__(self) -> None:
        self._idle: list[Bytes] = []

    def take(self, size: int) -> Bytes:
        """An arena of at least this size."""
        try:
            arena = self._idle.pop()  # atomic, so no lock that a fork could leave taken
        except IndexError:
            return aligned_bytes(size)
        return arena if len(arena) >= size else aligned_bytes(size)

    def give(self, arena: Bytes) -> None:
        """Return an arena that no call uses any more."""
        self._idle.append(arena)
