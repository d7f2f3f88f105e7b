"""Convolution and pooling kernels touch nothing outside their operands: each operand ends, or begins, at a page that
may not be touched. Runs in a child process, which a stray access would kill."""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing

import numpy as np
import pytest
from blocked_layout import block, buffer_for, pack_dense, pack_depthwise, pack_stem, random
from kernel_runner import compiled

from glowstone.backends.cpu.kernel_family import CpuPlanner, KernelKey
from glowstone.backends.cpu.operations import BlockedConvolution, DepthwiseConvolution, StemConvolution
from glowstone.backends.cpu.register_tile import blocks_per_panel
from glowstone.backends.cpu.target import Target
from glowstone.lir import Instruction, Pool
from glowstone.lir.table import TableEntry, encode
from glowstone.scalar import parse_expression
from glowstone.table import STATUS_WORDS, Address

LANES = Target.host().channel_block
PANEL = blocks_per_panel(Target.host(), 3)
PROT_NONE = 0
BIAS = parse_expression("add(x0:f32, x1:f32)")


class Fenced:
    """A copy of an array, flush with a page that may not be touched."""

    def __init__(self, content: np.ndarray, at_end: bool) -> None:
        size = content.nbytes
        pages = -(-size // mmap.PAGESIZE) + 2
        self._memory = mmap.mmap(-1, pages * mmap.PAGESIZE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        last = (pages - 1) * mmap.PAGESIZE
        self.address = start + (last - size if at_end else mmap.PAGESIZE)
        ctypes.memmove(self.address, content.ctypes.data, size)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for page in (0, last):
            if protect(ctypes.c_void_p(start + page), ctypes.c_size_t(mmap.PAGESIZE), PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect")


def run_fenced(instruction: Instruction, arrays: list[np.ndarray], at_end: bool) -> None:
    call = CpuPlanner(Target.host()).plan(instruction)
    assert isinstance(call.key, KernelKey)
    fenced = [Fenced(array, at_end) for array in arrays]
    scratch = Fenced(np.zeros(max(call.scratch, 64), np.uint8), at_end)
    addresses = {view.buffer: Address(number, 0) for number, view in enumerate(instruction.operands)}
    words = encode([TableEntry(instruction, call, 0)], addresses)
    bases = np.array([one.address for one in fenced], np.int64)
    status = np.zeros(STATUS_WORDS, np.int64)
    function = compiled(call.key)
    function(words.ctypes.data, bases.ctypes.data, 0, call.units, scratch.address, status.ctypes.data)


def made(operation, arrays, integers) -> tuple[Instruction, list[np.ndarray]]:
    return Instruction(operation, tuple(buffer_for(array).view() for array in arrays), integers), arrays


def dense(size, kernel, strides, pad):
    y = np.zeros((2, 3, *((n + 2 * pad - k) // s + 1 for n, k, s in zip(size, kernel, strides, strict=True)), LANES))
    x = block(random(2, 20, *size), LANES)
    w = pack_dense(random(3 * LANES, 20, *kernel), LANES, PANEL)
    bias = np.zeros_like(y)
    operation = BlockedConvolution(strides, (1, 1), 1, PANEL, BIAS)
    return made(operation, [array.astype(np.float32) for array in (y, x, w, bias)], (pad, pad, 3 * LANES - 1))


def stem():
    y = np.zeros((1, 3, 6, 5, LANES), np.float32)
    w = pack_stem(random(3 * LANES, 3, 3, 3), LANES, PANEL)
    operation = StemConvolution((2, 2), (1, 1), (3, 3), 3, PANEL)
    return made(operation, [y, random(1, 3, 11, 9), w], (1, 1, 3 * LANES - 1))


def depthwise():
    x = block(random(2, 12, 5, 7), LANES)
    operation = DepthwiseConvolution((1, 1), (1, 1), (3, 3))
    return made(operation, [np.zeros_like(x), x, pack_depthwise(random(12, 3, 3), LANES)], (1, 1, 12))


def pooling(mode, blocked):
    x = random(2, 3, 6, 7, LANES) if blocked else random(2, 3, 6, 7)
    return made(Pool(mode, (3, 3), (1, 1), (1, 1), False, blocked), [np.zeros_like(x), x], (1, 1))


CASES = {
    "point": lambda: dense((5, 5), (1, 1), (1, 1), 0),
    "strided point": lambda: dense((5, 5), (1, 1), (2, 2), 0),
    "window": lambda: dense((5, 6), (3, 3), (1, 1), 1),
    "strided window": lambda: dense((7, 5), (3, 3), (2, 2), 1),
    "window inside": lambda: dense((5, 6), (3, 2), (1, 1), 0),
    "stem": stem,
    "depthwise": depthwise,
    "blocked pool": lambda: pooling("max", True),
    "plain pool": lambda: pooling("average", False),
}


@pytest.mark.parametrize("name", CASES)
def test_no_access_outside(name):
    instruction, arrays = CASES[name]()
    instruction.verify()
    compiled(CpuPlanner(Target.host()).plan(instruction).key)

    def child() -> None:
        for at_end in (True, False):
            run_fenced(instruction, arrays, at_end)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join()
    assert process.exitcode == 0
