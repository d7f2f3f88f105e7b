"""The pool of helper threads: one for the process, started when first wanted, parked in native code between runs.

A run takes the pool without waiting, or goes on alone. After a fork the child starts helpers of its own.
"""

from __future__ import annotations

import ctypes
import logging
import time
from typing import Any

import numpy as np

from glowstone.backends.cpu.native.layout import (
    HELPER_WORDS,
    HELPERS_OFFSET_WORDS,
    MAX_PARTICIPANTS,
    POOL_WORDS,
    WORD_BYTES,
    HelperField,
    PoolField,
)
from glowstone.runtime import operating_system as system

IDLE_NANOSECONDS = 50_000
"""How long a helper watches for the next run before it parks."""
WAIT_NANOSECONDS = 2_000
"""How long a participant waits for others before it lets another thread have the processor."""
INLINE_NANOSECONDS = 1_000
"""Instructions estimated cheaper than this are executed by one thread: sharing would cost as much."""
_CALIBRATION_SPINS = 200
_CALIBRATION_ROUNDS = 5

_LOG = logging.getLogger("glowstone")


class HelperPool:
    """Memory of the pool, and its helper threads. The memory is never given back: helpers look at it until the end."""

    def __init__(self, help_address: int, spin_address: int) -> None:
        self._help_address = help_address
        self._spin = ctypes.CFUNCTYPE(None, ctypes.c_int64)(spin_address)
        self.address = system.map_memory(POOL_WORDS * WORD_BYTES)
        self._words = _words_at(self.address, POOL_WORDS)
        self._is_initialized = False
        self.started = 0
        """Number of helper threads."""
        self.limit = MAX_PARTICIPANTS - 1 if system.has_native_threads() else 0
        """Most helper threads that there can be, as far as is known."""

    def start(self, helpers: int) -> None:
        """Have this many helpers, or as many as the system gives. One caller at a time."""
        if not self._is_initialized:
            self._initialize()
        for number in range(self.started + 1, min(helpers, self.limit) + 1):
            try:
                self._start_helper(number)
            except OSError as error:
                _LOG.warning("helper thread %d of %d does not start: %s", number, helpers, error)
                self.limit = self.started
                return
            self.started = number

    def forget(self) -> None:
        """In a forked child: the helpers are not there, and a run of another thread may have held the pool."""
        self._words[:] = 0
        self._is_initialized = False
        self.started = 0

    def _initialize(self) -> None:
        self._words[: len(system.THREAD_FUNCTIONS)] = system.thread_function_addresses()
        pause = self._pause_nanoseconds()
        self._words[PoolField.IDLE_SPINS] = IDLE_NANOSECONDS / pause
        self._words[PoolField.WAIT_SPINS] = WAIT_NANOSECONDS / pause
        self._words[PoolField.INLINE_COST] = INLINE_NANOSECONDS
        self._is_initialized = True

    def _pause_nanoseconds(self) -> float:
        """How long the processor's pause takes (it differs tenfold); spinning lengths follow, results do not."""
        shortest = None
        for _ in range(_CALIBRATION_ROUNDS):
            begin = time.perf_counter_ns()
            self._spin(_CALIBRATION_SPINS)
            elapsed = time.perf_counter_ns() - begin
            shortest = elapsed if shortest is None else min(shortest, elapsed)
        return max(shortest or 0, _CALIBRATION_SPINS) / _CALIBRATION_SPINS

    def _start_helper(self, number: int) -> None:
        first = HELPERS_OFFSET_WORDS + number * HELPER_WORDS
        address = self.address + first * WORD_BYTES
        system.initialize_mutex(address + HelperField.MUTEX * WORD_BYTES)
        system.initialize_condition(address + HelperField.CONDITION * WORD_BYTES)
        self._words[first + HelperField.POOL] = self.address
        self._words[first + HelperField.NUMBER] = number
        system.start_thread(self._help_address, address)


def _words_at(address: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """An array over mapped memory."""
    return np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(address))
