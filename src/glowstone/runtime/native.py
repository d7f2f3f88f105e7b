"""The native run loop in this process: loaded once, shared by all models.

In: the object file that `backends/cpu/native/emit.py` made, fresh or from the cache. Out: `NativeCode`.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable

from glowstone.backends.cpu.native.layout import HELP_SYMBOL, RUN_SHARED_SYMBOL, RUN_SYMBOL, SPIN_SYMBOL
from glowstone.runtime.loader import load_object
from glowstone.runtime.pool import HelperPool

RunFunction = Callable[[int], int]
"""Takes the address of a run; gives a `Result`. Other Python threads go on meanwhile."""


class NativeCode:
    """The run loop's entries and the process's pool of helpers. Never unloaded: helpers stay inside."""

    def __init__(self, object_file: bytes) -> None:
        loaded = load_object(object_file)
        loaded.keep_for_ever()
        entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)
        self.run: RunFunction = entry(loaded.symbols[RUN_SYMBOL])
        self.run_shared: RunFunction = entry(loaded.symbols[RUN_SHARED_SYMBOL])
        self.pool = HelperPool(loaded.symbols[HELP_SYMBOL], loaded.symbols[SPIN_SYMBOL])
        self._starting = threading.Lock()

    def ensure_helpers(self, count: int) -> None:
        """Start helpers that are missing."""
        if self.pool.started < min(count, self.pool.limit):
            with self._starting:
                self.pool.start(count)

    def renew(self) -> None:
        """In a forked child."""
        self._starting = threading.Lock()
        self.pool.forget()


class _Process:
    """What this process has loaded."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.code: NativeCode | None = None

    def renew(self) -> None:
        self.lock = threading.Lock()
        if self.code is not None:
            self.code.renew()


_PROCESS = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_PROCESS.renew)


def native_code(object_file: Callable[[], bytes]) -> NativeCode:
    """The process's run loop. `object_file` gives the bytes; only the first caller's are loaded."""
    with _PROCESS.lock:
        if _PROCESS.code is None:
            _PROCESS.code = NativeCode(object_file())
        return _PROCESS.code
