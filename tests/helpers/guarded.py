"""Arrays between pages that nobody may touch: what reads or writes past an end of one ends the process."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Mapping

import numpy as np

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded(array: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy that ends, or begins, right at a page without access; as close as its elements' alignment allows."""
    page = mmap.PAGESIZE
    pages = max(-(-array.nbytes // page), 1)
    memory = mmap.mmap(-1, (pages + 2) * page)
    whole = np.frombuffer(memory, np.uint8)
    start = (1 + pages) * page - array.nbytes if at_end else page
    result = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    for first in (0, 1 + pages):
        assert _libc.mprotect(whole.ctypes.data + first * page, page, 0) == 0
    return result


def guarded_inputs(inputs: Mapping[str, np.ndarray], at_end: bool) -> dict[str, np.ndarray]:
    """All arrays of numbers guarded."""
    return {name: guarded(array, at_end) if array.dtype.kind in "fiub" else array for name, array in inputs.items()}
