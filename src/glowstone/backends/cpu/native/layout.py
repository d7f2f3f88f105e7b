"""The memory that Python and the native run loop share: a `Run`, the pool, and its helpers.

Everything is made of 64-bit words. This file alone knows the positions; it imports nothing, so that a compiled model
runs without LLVM.
"""

from __future__ import annotations

from enum import IntEnum

WORD_BYTES = 8
LINE_BYTES = 128
"""Distance that keeps two words from sharing a cache line (some processors fetch lines in pairs)."""
MAX_PARTICIPANTS = 64
RECORD_COST = 50
"""Nanoseconds charged for every record beside its own cost, so that a table without costs pauses too."""


class Result(IntEnum):
    """What a native run returns."""

    FINISHED = 0
    PAUSED = 1
    """The budget is spent; call again to go on."""
    FAILED = 2
    """A kernel wrote a status."""
    INVALID = 3
    """A record of unknown kind."""


class RunField(IntEnum):
    """Words of a run: one program being executed on one set of addresses."""

    TABLE = 0
    """Address of the table of calls (read only)."""
    KERNELS = 1
    """Address of the array of kernel addresses."""
    BASES = 2
    """Address of the array of base addresses; loop slots are written."""
    PASSES = 3
    """Address of one word per table word, where a LOOP record keeps the passes left (0: the table has no loops)."""
    POSITION = 4
    """Word index of the record to execute next; 0 at the start."""
    SCRATCH = 5
    """Address of participant 0's scratch block."""
    SCRATCH_STRIDE = 6
    """Bytes from one participant's scratch block to the next."""
    STATUS = 7
    """Address of the first of `PARTICIPANTS` status records, `STATUS_STRIDE` bytes apart."""
    BUDGET = 8
    """Estimated nanoseconds after which the run pauses."""
    SPENT = 9
    RESULT = 10
    PARTICIPANTS = 11
    POOL = 12
    """Address of the pool; only the shared entry reads it."""


RUN_WORDS = 13
STATUS_STRIDE = LINE_BYTES


class PoolField(IntEnum):
    """Words of the pool. Groups that different threads write are on lines of their own."""

    # Fixed once the pool is made: the operating system's functions, and how long to wait.
    MUTEX_LOCK = 0
    MUTEX_UNLOCK = 1
    CONDITION_WAIT = 2
    CONDITION_SIGNAL = 3
    YIELD = 4
    IDLE_SPINS = 5
    """Pauses of a helper between the end of a run and parking."""
    WAIT_SPINS = 6
    """Pauses between two yields while others finish an instruction."""
    INLINE_COST = 7
    """An instruction estimated cheaper than this (ns) is not shared: claiming it would cost more."""

    LOCK = 16
    """1 while a run uses the pool."""

    STEP = 32
    """Odd while an instruction is open to claims, even between runs. Grows; its low half tags the claim words."""
    PARTICIPANTS = 33
    CHUNKS = 34
    """Number of claims that the instruction is made of."""
    GRAIN = 35
    UNITS = 36
    KERNEL = 37
    RECORD = 38
    BASES = 39
    SCRATCH = 40
    SCRATCH_STRIDE = 41
    STATUS = 42
    RUN = 43

    DONE = 48
    """Chunks of the instruction that are finished and reported."""
    FAILED = 49

    CLAIMS = 64
    """`MAX_PARTICIPANTS` claim words, one per line: step << 32 | chunks of the slice that are taken."""


CLAIM_STRIDE_WORDS = LINE_BYTES // WORD_BYTES


class HelperField(IntEnum):
    """Words of a helper. Mutex and condition have room for any system's (at most 64 bytes on those we know)."""

    MUTEX = 0
    CONDITION = 16
    POOL = 32
    NUMBER = 33
    """Which participant it is, from 1."""
    PARKED = 48
    WOKEN = 49


HELPER_WORDS = 64
HELPERS_OFFSET_WORDS = PoolField.CLAIMS + MAX_PARTICIPANTS * CLAIM_STRIDE_WORDS
"""Where helper 0 would be; helper n stands n * HELPER_WORDS further. (Participant 0 is the caller and has none.)"""
POOL_WORDS = HELPERS_OFFSET_WORDS + MAX_PARTICIPANTS * HELPER_WORDS

RUN_SYMBOL = "glowstone_run"
RUN_SHARED_SYMBOL = "glowstone_run_shared"
HELP_SYMBOL = "glowstone_help"
SPIN_SYMBOL = "glowstone_spin"
