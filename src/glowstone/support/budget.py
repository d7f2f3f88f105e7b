"""What a compilation may still use: seconds, bytes, nodes. All loops whose length the model decides ask here.

A budget is ambient: passes and rules take nothing but what they work on. Where none is in force, as in tests of single
passes, the limits of the default options hold for what is asked at once, and nothing is added up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from glowstone.errors import GlowstoneError, LimitError
from glowstone.options import Options

CALLS_PER_LOOK = 64
"""Looking at the clock costs about as much as emitting a node."""
FILE_COPIES = 4
"""Weights are held as the file has them, folded, packed, and in the block that plans share."""


class Budget:
    """Of one compilation: one model at one shape, or one part of a model that runs in steps."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._deadline = time.monotonic() + options.compile_seconds
        self._calls = 0
        self._bytes_left = options.compile_memory
        self._fold_bytes_left = options.fold_limit
        self._nodes_left = options.node_limit

    def look(self) -> None:
        """Look at the clock.

        Raises:
            LimitError: the time is up.
        """
        if time.monotonic() > self._deadline:
            raise exceeded("compile_seconds", "compiling takes too long", self.options.compile_seconds)

    def tick(self) -> None:
        """Look at the clock now and then: for inner loops."""
        self._calls += 1
        if self._calls % CALLS_PER_LOOK == 0:
            self.look()

    def hold(self, size: int) -> None:
        """The model's files hold so many bytes more; compiling may use several times as many."""
        self._bytes_left += FILE_COPIES * size
        self._fold_bytes_left += FILE_COPIES * size

    def take_bytes(self, size: int, what: str) -> None:
        """Ask before bytes are allocated.

        Raises:
            LimitError: there would be too many.
        """
        if size > self._bytes_left:
            raise exceeded("compile_memory", f"compiling needs too much memory for {what}", self._bytes_left, size)
        self._bytes_left -= size

    def folds(self, size: int, held: int) -> bool:
        """Whether a value of `size` bytes may be computed from constants of `held` bytes; if so it counts.

        What is no larger than what it replaces always may.
        """
        if size <= held:
            return True
        if size > self.options.fold_value_limit or size > self._fold_bytes_left:
            return False
        self._fold_bytes_left -= size
        return True

    def begin_nodes(self) -> None:
        """The model is imported from the start: at another shape, say."""
        self._nodes_left = self.options.node_limit

    def take_nodes(self, count: int) -> None:
        """Ask before the model becomes larger by so many nodes.

        Raises:
            LimitError: there would be too many.
        """
        if count > self._nodes_left:
            raise exceeded("node_limit", "the model has too many nodes", self.options.node_limit)
        self._nodes_left -= count


_CURRENT: ContextVar[Budget | None] = ContextVar("glowstone_budget", default=None)


def budget() -> Budget:
    """The budget in force."""
    return _CURRENT.get() or Budget(Options())


def tick() -> None:
    """See `Budget.tick`."""
    current = _CURRENT.get()
    if current is not None:
        current.tick()


@contextmanager
def limited(options: Options) -> Iterator[Budget]:
    """Hold the body to a budget: that in force already, else a new one.

    Raises:
        LimitError: the budget is used up; or the machine has no memory, or Python no stack, for what the model asks.
    """
    current = _CURRENT.get()
    if current is not None:
        yield current
        return
    made = Budget(options)
    token = _CURRENT.set(made)
    try:
        with refusing_exhaustion():
            yield made
    finally:
        _CURRENT.reset(token)


@contextmanager
def refusing_exhaustion() -> Iterator[None]:
    """Let what Python raises where memory or stack end be an error like others.

    Raises:
        LimitError: one of them ended.
    """
    try:
        yield
    except MemoryError as error:
        raise out_of_memory(error) from error
    except RecursionError as error:
        raise LimitError("the model is nested too deep", found=str(error), remedy=_SMALLER) from error


def out_of_memory(error: MemoryError) -> LimitError:
    """The error of an allocation that failed."""
    return LimitError("there is not enough memory", found=str(error) or None, remedy=_SMALLER)


_SMALLER = "use a smaller model or smaller inputs"


def exceeded(option: str, message: str, limit: object, found: object = None) -> GlowstoneError:
    """The error of a limit that an option sets."""
    return LimitError(
        message, expected=f"at most {limit}", found=found, remedy=f"if the model is trusted, raise the option {option}"
    )
