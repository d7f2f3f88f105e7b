"""Python's collector of cycles while a model is compiled: it would go through all objects again and again."""

from __future__ import annotations

import gc
import threading
from types import TracebackType


class _Pause:
    """The block in which cycles are collected only where that is asked for. Blocks may overlap, in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._blocks += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0 and self._was_enabled:
                gc.enable()


collection_paused = _Pause()
"""`with collection_paused: ...`"""
