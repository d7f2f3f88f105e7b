"""One model at one shape, ready to run.

In: a table of calls with its kernels, constants, and what the arguments are. Out: runs. An `Executable` is immutable
and shared by all threads; an `Invocation` is one call in flight.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from glowstone.runtime.arena import ArenaPool, Bytes
from glowstone.runtime.native import NativeCode
from glowstone.runtime.runner import PreparedTable, Runner
from glowstone.table import BASE_ARENA, BASE_CONSTANTS, BASE_PLAN_CONSTANTS, FIRST_ARGUMENT_BASE

Array = np.ndarray[Any, np.dtype[Any]]

MOST_IDLE_INVOCATIONS = 8


@dataclass(frozen=True)
class Argument:
    """An input or output: name, NumPy type and shape."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(eq=False)
class Executable:
    """A table of calls with everything it refers to but arena and arguments."""

    table: PreparedTable
    constants: Bytes
    plan_constants: Bytes
    arena_bytes: int
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    names: tuple[tuple[str, ...], ...]
    """ONNX names of each instruction."""
    operations: tuple[str, ...]
    """What each instruction does, for errors."""
    _idle: list[Invocation] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._addresses = (address_of(self.constants), address_of(self.plan_constants))

    def describe(self, instruction: int) -> str:
        """The ONNX names of an instruction, for errors."""
        return ", ".join(self.names[instruction]) or f"instruction {instruction}"

    def invocation(self, code: NativeCode, threads: int) -> Invocation:
        """An idle invocation, or a new one."""
        try:
            return self._idle.pop()
        except IndexError:
            return Invocation(self, code, threads)

    def give_back(self, invocation: Invocation) -> None:
        """Keep an invocation for the next call."""
        if len(self._idle) < MOST_IDLE_INVOCATIONS:
            self._idle.append(invocation)

    def run(self, code: NativeCode, threads: int, arenas: ArenaPool, arrays: Sequence[Array]) -> None:
        """Run once; `arrays` are inputs, then outputs, contiguous and of the declared types and shapes.

        Raises:
            ExecutionError: a kernel met a value that it must not meet.
        """
        invocation = self.invocation(code, threads)
        arena = arenas.take(self.arena_bytes)
        try:
            invocation.bind(arena, arrays)
            invocation.runner.run()
        finally:
            arenas.give(arena)
            self.give_back(invocation)


class Invocation:
    """A runner of an executable with its bases."""

    def __init__(self, executable: Executable, code: NativeCode, threads: int) -> None:
        self.runner = Runner(code, executable.table, threads, executable.describe, executable.operations.__getitem__)
        constants, plan_constants = executable._addresses
        self.runner.bases[BASE_CONSTANTS] = constants
        self.runner.bases[BASE_PLAN_CONSTANTS] = plan_constants

    def bind(self, arena: Bytes, arrays: Sequence[Array]) -> None:
        """Point the bases at an arena and at the arguments."""
        bases = self.runner.bases
        bases[BASE_ARENA] = address_of(arena)
        for index, array in enumerate(arrays, FIRST_ARGUMENT_BASE):
            bases[index] = address_of(array)


class BoundRun:
    """An invocation whose arena and arguments are bound once and kept."""

    def __init__(
        self, executable: Executable, code: NativeCode, threads: int, arena: Bytes, arrays: Sequence[Array]
    ) -> None:
        invocation = Invocation(executable, code, threads)
        invocation.bind(arena, arrays)
        self._keep_alive = (executable, arena, tuple(arrays))
        self._entered = threading.Lock()
        self.run: Callable[[], None] = invocation.runner.run
        self.enter = self._entered.acquire
        self.leave = self._entered.release


_first_byte: Any = ctypes.c_char.from_buffer


def address_of(array: Array) -> int:
    """Address of the first element."""
    try:
        return ctypes.addressof(_first_byte(array))  # four times faster than asking NumPy, but only where writable
    except (TypeError, ValueError):
        address: int = array.__array_interface__["data"][0]
        return address
