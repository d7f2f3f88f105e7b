"""Everything that the runtime asks of the operating system: memory for code, and the functions of POSIX threads.

Linux, macOS and Windows; on Windows there are no helper threads.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import platform
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

IS_WINDOWS = sys.platform == "win32"

PROTECTION_READ, PROTECTION_WRITE, PROTECTION_EXECUTE = 1, 2, 4
"""PROT_READ, PROT_WRITE and PROT_EXEC, the same on every POSIX system."""

_MAP_PRIVATE = 2
_MAP_ANONYMOUS = 0x1000 if sys.platform == "darwin" else 0x20
_MAP_FAILED = ctypes.c_void_p(-1).value
_MEM_COMMIT_RESERVE, _MEM_RELEASE = 0x3000, 0x8000
_WINDOWS_PROTECTION = {
    PROTECTION_READ: 0x02,
    PROTECTION_READ | PROTECTION_WRITE: 0x04,
    PROTECTION_READ | PROTECTION_EXECUTE: 0x20,
}

THREAD_FUNCTIONS = (
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_cond_signal",
    "sched_yield",
)
"""What native code calls, in the order of the pool's first words."""


@functools.cache
def _system() -> ctypes.CDLL:
    """The C library that this process already has, or the Windows kernel."""
    if sys.platform == "win32":
        return ctypes.WinDLL("kernel32", use_last_error=True)
    return ctypes.CDLL(None, use_errno=True)


def page_bytes() -> int:
    return mmap.PAGESIZE


def map_memory(size: int) -> int:
    """Address of `size` bytes of fresh zeroed memory, readable and writable, on page borders.

    Raises:
        MemoryError: there is none.
    """
    system = _system()
    if IS_WINDOWS:
        function = system.VirtualAlloc
        function.restype, function.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t) + (ctypes.c_uint,) * 2
        readable = _WINDOWS_PROTECTION[PROTECTION_READ | PROTECTION_WRITE]
        address = function(None, size, _MEM_COMMIT_RESERVE, readable)
    else:
        function = system.mmap
        function.restype = ctypes.c_void_p
        function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_ssize_t)
        address = function(None, size, PROTECTION_READ | PROTECTION_WRITE, _MAP_PRIVATE | _MAP_ANONYMOUS, -1, 0)
    if address in (None, _MAP_FAILED):
        raise MemoryError(f"cannot map {size} bytes")
    return int(address)


def protect_memory(address: int, size: int, protection: int) -> None:
    """Change what may be done with mapped pages.

    Raises:
        OSError: the system refuses, for example executable memory under a strict policy.
    """
    system = _system()
    if IS_WINDOWS:
        function = system.VirtualProtect
        function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_void_p)
        before = ctypes.c_uint()
        failed = not function(address, size, _WINDOWS_PROTECTION[protection], ctypes.byref(before))
    else:
        system.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        failed = system.mprotect(address, size, protection) != 0
    if failed:
        raise OSError(ctypes.get_errno(), f"cannot change the protection of {size} bytes of memory")


def unmap_memory(address: int, size: int) -> None:
    """Give back memory of `map_memory`."""
    system = _system()
    if IS_WINDOWS:
        system.VirtualFree.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint)
        system.VirtualFree(address, 0, _MEM_RELEASE)
    else:
        system.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        system.munmap(address, size)


def flush_instruction_cache(address: int, size: int) -> None:
    """Make code that was just written visible to instruction fetch.

    x86 does it by itself, and Linux whenever fresh pages become executable.
    """
    if sys.platform == "darwin" and platform.machine() == "arm64":
        function = _system().sys_icache_invalidate
        function.restype, function.argtypes = None, (ctypes.c_void_p, ctypes.c_size_t)
        function(address, size)
    elif IS_WINDOWS:
        function = _system().FlushInstructionCache
        function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        function(-1, address, size)


def write_memory(address: int, content: bytes | bytearray) -> None:
    """Copy bytes to a mapped address."""
    ctypes.memmove(address, bytes(content), len(content))


def release_free_memory() -> None:
    """Give memory that the C library holds free back to the system, where the library can."""
    trim = getattr(_system(), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(ctypes.c_size_t(0))


def has_native_threads() -> bool:
    """Whether helper threads can be made on this system."""
    return not IS_WINDOWS


def thread_function_addresses() -> tuple[int, ...]:
    """Addresses of `THREAD_FUNCTIONS`."""
    system = _system()
    return tuple(ctypes.cast(getattr(system, name), ctypes.c_void_p).value or 0 for name in THREAD_FUNCTIONS)


def initialize_mutex(address: int) -> None:
    """Make a mutex in zeroed memory."""
    _initialize("pthread_mutex_init", address)


def initialize_condition(address: int) -> None:
    """Make a condition variable in zeroed memory."""
    _initialize("pthread_cond_init", address)


def _initialize(name: str, address: int) -> None:
    function = getattr(_system(), name)
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
    error = function(address, None)
    if error:
        raise OSError(error, f"{name} failed")


def start_thread(function: int, argument: int) -> None:
    """Run native `function(argument)` on a new detached thread that takes no signals: they belong to Python's threads.

    Raises:
        OSError: the system has no thread left.
    """
    system = _system()
    system.pthread_create.argtypes = (ctypes.c_void_p,) * 4
    system.pthread_detach.argtypes = (ctypes.c_void_p,)
    thread = ctypes.c_void_p()
    with _signals_blocked():
        error = system.pthread_create(ctypes.byref(thread), None, function, argument)
    if error:
        raise OSError(error, "cannot start a thread")
    system.pthread_detach(thread)


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """A new thread inherits the mask of its maker."""
    if sys.platform == "win32":
        raise AssertionError("there are no helper threads on Windows")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def physical_core_count() -> int | None:
    """Number of physical cores, fast ones only where there are two kinds; None where the system does not tell."""
    if sys.platform != "darwin":
        return None
    function = _system().sysctlbyname
    function.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    for name in (b"hw.perflevel0.physicalcpu", b"hw.physicalcpu"):
        count, size = ctypes.c_int(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        if function(name, ctypes.byref(count), ctypes.byref(size), None, 0) == 0:
            return count.value
    return None
