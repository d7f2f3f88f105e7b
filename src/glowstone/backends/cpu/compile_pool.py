"""Compiles kernels in this process and in others beside it: LLVM, as llvmlite has it, uses one core per process.

In: kernel keys. Out: object files, the same bytes whichever process makes them. A process that cannot be started, or
that ends, is done without.
"""

from __future__ import annotations

import logging
import pickle
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from glowstone.backends.cpu.compile import emit_object
from glowstone.backends.cpu.compile_worker import LENGTH_BYTES
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.target import Target

logger = logging.getLogger("glowstone")

_MAIN = "import sys; sys.path.insert(0, sys.argv[1]); from glowstone.backends.cpu.compile_worker import main; main()"
_PACKAGES = Path(__file__).resolve().parents[3]
"""The folder that has the package, for the other process to find the same one."""


class CompilePool:
    """Up to `processes` processes, this one counted. A context manager: the others end with the block.

    They start at once, so that they are ready by the time when kernels are known.
    """

    def __init__(self, target: Target, processes: int) -> None:
        self._target = target
        self._helpers = [helper for _ in range(processes - 1) if (helper := _start(target)) is not None]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self._helpers:
            _end(helper)

    def emit(self, keys: Iterable[KernelKey], progress: Callable[[], None]) -> dict[KernelKey, bytes]:
        """The object file of every key. `progress` is called in this thread as kernels become ready."""
        waiting = deque(keys)
        done: dict[KernelKey, bytes] = {}
        drivers = [
            threading.Thread(target=_drive, args=(helper, waiting, done), daemon=True) for helper in self._helpers
        ]
        for driver in drivers:
            driver.start()
        told = 0
        while (key := _take(waiting)) is not None:
            done[key] = emit_object([key], self._target)
            while told < len(done):
                told += 1
                progress()
        for driver in drivers:
            driver.join()
        for key in waiting:  # what a helper that ended had taken
            done[key] = emit_object([key], self._target)
        for _ in range(len(done) - told):
            progress()
        return done


def _start(target: Target) -> subprocess.Popen[bytes] | None:
    """A helper that got the target, or None where no process can be started."""
    if not Path(sys.executable or "").stem.lower().startswith("python"):  # frozen or embedded
        return None
    command = [sys.executable, "-P", "-c", _MAIN, str(_PACKAGES)]  # nothing of the working folder is imported
    try:
        helper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        _send(helper, target)
    except OSError as error:
        logger.debug("no process to compile in: %s", error)
        return None
    return helper


def _drive(helper: subprocess.Popen[bytes], waiting: deque[KernelKey], done: dict[KernelKey, bytes]) -> None:
    """Have a helper compile what is waiting. A key that it does not answer goes back."""
    assert helper.stdout is not None
    while (key := _take(waiting)) is not None:
        try:
            _send(helper, key)
            size = int.from_bytes(helper.stdout.read(LENGTH_BYTES), "little")
            content = helper.stdout.read(size)
        except (OSError, ValueError):
            size, content = 0, b""
        if not size or len(content) != size:
            waiting.append(key)
            return
        done[key] = content


def _send(helper: subprocess.Popen[bytes], content: object) -> None:
    assert helper.stdin is not None
    helper.stdin.write(pickle.dumps(content))
    helper.stdin.flush()


def _take(waiting: deque[KernelKey]) -> KernelKey | None:
    try:
        return waiting.popleft()
    except IndexError:
        return None


def _end(helper: subprocess.Popen[bytes]) -> None:
    helper.kill()
    for stream in (helper.stdin, helper.stdout):
        assert stream is not None
        try:
            stream.close()
        except OSError:  # what was not sent yet cannot be sent any more
            logger.debug("a process to compile in had ended")
    helper.wait()
