"""Memory for activations: aligned blocks, taken for a call and given back, shared by all shapes of a model."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

ALIGNMENT = 64


def aligned_bytes(size: int) -> Bytes:
    """Uninitialized bytes that begin on a cache line."""
    block = np.empty(size + ALIGNMENT, np.uint8)
    skip = -block.ctypes.data % ALIGNMENT
    return block[skip : skip + size]


class ArenaPool:
    """Idle arenas. As many exist as calls were ever in flight at once, each as large as was ever asked of it."""

    def __init__(self) -> None:
        self._idle: list[Bytes] = []
        self._lock = threading.Lock()

    def take(self, size: int) -> Bytes:
        """An arena of at least this size."""
        with self._lock:
            arena = self._idle.pop() if self._idle else None
        if arena is None or len(arena) < size:
            arena = aligned_bytes(size)
        return arena

    def give(self, arena: Bytes) -> None:
        """Return an arena that no call uses any more."""
        with self._lock:
            self._idle.append(arena)

    def renew(self) -> None:
        """In a forked child, where another thread may have held the lock."""
        self._lock = threading.Lock()
