"""What this machine gives: its target, its memory, the cache folder, the native run loop."""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import platform
from pathlib import Path

import glowstone
from glowstone.backends.cpu.target import Target
from glowstone.options import Options
from glowstone.runtime.cache import Cache
from glowstone.runtime.native import NativeCode, native_code

logger = logging.getLogger("glowstone")

_CPUINFO = Path("/proc/cpuinfo")
_CPUINFO_FIELDS = ("model name", "flags", "Features", "CPU implementer", "CPU part")
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
_FALLBACK_MEMORY = 4 * 2**30
_DIGITS = 16


def host_target(cache: Cache | None) -> Target:
    """The machine at hand: as LLVM detects it, or as it did before for the same processor."""
    name = f"host-{host_fingerprint()}-{compiler_version()}.target"
    content = cache.get(name) if cache is not None else None
    if content is not None:
        return Target.parse(bytes(content).decode())
    target = Target.host()
    if cache is not None:
        cache.put(name, target.text.encode())
    return target


def machine_memory() -> int:
    """Bytes that the control group or the machine has, the smaller."""
    sizes = []
    for path in _CGROUP_LIMITS:
        try:
            sizes.append(int(path.read_text()))
        except (OSError, ValueError):
            continue
    try:
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        sizes.append(_FALLBACK_MEMORY)
    return min(sizes)


def open_cache(options: Options) -> Cache | None:
    """The cache of this version of the compiler, or None where its folder cannot be used."""
    return Cache.open(options.cache_folder(), options.cache_limit_bytes)


class KernelStore:
    """The cache as kernels see it: an object file by symbol."""

    def __init__(self, cache: Cache, target: Target) -> None:
        self._cache = cache
        self._suffix = f"-{_short(target.text)}-{compiler_version()}.o"

    def get(self, symbol: str) -> bytes | None:
        """The object file of a kernel, or None."""
        content = self._cache.get(symbol + self._suffix)
        return None if content is None else bytes(content)

    def put(self, symbol: str, content: bytes) -> None:
        """Keep the object file of a kernel."""
        self._cache.put(symbol + self._suffix, content)


def kernel_store(cache: Cache | None, target: Target) -> KernelStore | None:
    """Kernels by symbol in the cache; None without one."""
    return None if cache is None else KernelStore(cache, target)


def run_loop(cache: Cache | None, target: Target) -> NativeCode:
    """The native run loop of the process, from the cache where it is there."""
    store = kernel_store(cache, target)

    def object_file() -> bytes:
        content = store.get("run_loop") if store is not None else None
        if content is None:
            from glowstone.backends.cpu.native.emit import emit_run_loop  # the door to LLVM

            content = emit_run_loop(target)
            if store is not None:
                store.put("run_loop", content)
        return content

    return native_code(object_file)


@functools.cache
def compiler_version() -> str:
    """A digest of the version and of the compiler's own files, so that another compiler makes its own entries."""
    digest = hashlib.sha256(glowstone.__version__.encode())
    root = Path(__file__).parents[1]
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            status = (Path(folder) / name).stat()
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:_DIGITS]


@functools.cache
def host_fingerprint() -> str:
    """Tells processors apart without asking LLVM."""
    lines = [platform.system(), platform.machine(), platform.processor()]
    try:
        first = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        first = ""
    lines += [line for line in first.splitlines() if line.startswith(_CPUINFO_FIELDS)]
    return _short("\n".join(lines))


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
