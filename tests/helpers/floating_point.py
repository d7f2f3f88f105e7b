"""The floating-point environment of the calling thread, through the C library."""

from __future__ import annotations

import contextlib
import ctypes
import ctypes.util
import platform
from collections.abc import Callable, Iterator

import numpy as np

# Where the control word stands in the C library's fenv_t, and its bits that flush denormals.
_CONTROL = {"x86_64": (28, 0x8040), "aarch64": (0, 1 << 24)}
_ENVIRONMENT_BYTES = 64


@contextlib.contextmanager
def flushing_denormals() -> Iterator[Callable[[], bool]]:
    """Flush denormals to zero within the block; yields a function that says whether this thread does."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    offset, bits = _CONTROL[platform.machine()]
    saved = ctypes.create_string_buffer(_ENVIRONMENT_BYTES)
    library.fegetenv(saved)
    changed = ctypes.create_string_buffer(saved.raw, _ENVIRONMENT_BYTES)
    control = ctypes.c_uint32.from_buffer(changed, offset)
    control.value |= bits
    library.fesetenv(changed)
    try:
        yield _is_flushing
    finally:
        library.fesetenv(saved)


def _is_flushing() -> bool:
    half = np.array([np.finfo(np.float32).tiny], np.float32) * np.float32(0.5)
    return bool(half.view(np.uint32)[0] == 0)
