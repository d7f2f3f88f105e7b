"""The cache on disk: compiled kernels and whole models.

It holds machine code, so the folder must belong to the user and be closed to others; else it is not used, with a
warning. Entries are written to a temporary file and renamed, carry a version and a digest, and are checked on every
load. An unwritable or full disk is a warning, never an error. Eviction unlinks: files that are mapped stay readable.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import mmap
import os
import stat
import sys
import tempfile
import warnings
from io import BufferedReader
from pathlib import Path

import numpy as np

from glowstone.runtime.arena import aligned_bytes

logger = logging.getLogger("glowstone")

FORMAT_VERSION = 2
MAGIC = b"GLOWSTONE CACHE "
_WORD_BYTES = 8
_CHUNK_WORDS = 8192
HEADER_BYTES = 64
"""Magic, version (8 bytes), digest; filled up with zeros, so that content begins on a cache line."""
LARGE_BYTES = 1 << 26
"""From so many on, Linux gives large pages to NumPy's arrays but not to mapped files: weights in them are read 3 to 6 %
faster, which is worth a copy."""


class Cache:
    """A folder of entries by name. `open` gives None where the folder cannot be trusted or made."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._warned = False

    @staticmethod
    def open(folder: Path, limit_bytes: int) -> Cache | None:
        """The cache in a folder, made with mode 0700 if it is missing."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            status = folder.stat()
        except OSError as error:
            warnings.warn(f"the cache folder {folder} cannot be used: {error}", RuntimeWarning, stacklevel=2)
            return None
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077):
            warnings.warn(
                f"the cache folder {folder} is not private (owner {status.st_uid}, mode {status.st_mode & 0o777:o}); "
                "it holds machine code and is not used: run chmod 700 on it, or choose another with cache_dir",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        return Cache(folder, limit_bytes)

    def get(self, name: str) -> memoryview | None:
        """The content of an entry, read-only; None where there is none, or a damaged or older one."""
        path = self._folder / name
        try:
            with path.open("rb") as file:
                view = _content(file)
        except (OSError, ValueError):
            return None
        content = view[HEADER_BYTES:]
        if bytes(view[:HEADER_BYTES]) != _header(content):
            logger.warning("cache entry %s is damaged or of another version; it is made anew", path)
            with contextlib.suppress(OSError):
                path.unlink()
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return content

    def put(self, name: str, *parts: bytes | memoryview) -> None:
        """Write an entry whole or not at all, and evict the least recently used above the limit."""
        try:
            self._write(self._folder / name, parts)
            self._evict(keep=name)
        except OSError as error:
            if not self._warned:
                self._warned = True
                warnings.warn(f"the cache cannot be written: {error}", RuntimeWarning, stacklevel=2)

    def _write(self, path: Path, parts: tuple[bytes | memoryview, ...]) -> None:
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".writing-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_header(*parts))
                for part in parts:
                    file.write(part)
            Path(temporary).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
            raise

    def _evict(self, keep: str) -> None:
        entries = []
        for entry in os.scandir(self._folder):
            with contextlib.suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    entries.append((status.st_mtime, entry.name, status.st_size))
        total = sum(size for _, _, size in entries)
        for _, name, size in sorted(entries):
            if total <= self._limit:
                return
            if name != keep:
                with contextlib.suppress(OSError):
                    (self._folder / name).unlink()
                total -= size


def _content(file: BufferedReader) -> memoryview:
    """The whole file: mapped, so that processes share it, or in memory of this process where large pages pay.

    Raises:
        OSError: it cannot be read.
        ValueError: it is empty.
    """
    size = os.fstat(file.fileno()).st_size
    if size < LARGE_BYTES or not sys.platform.startswith("linux"):
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    block = aligned_bytes(size)
    if file.readinto(block.data) != size:
        raise OSError(f"{file.name} was cut short while it was read")
    return block.data.toreadonly()


def _header(*parts: bytes | memoryview) -> bytes:
    header = MAGIC + FORMAT_VERSION.to_bytes(8, "little") + _digest(parts)
    return header.ljust(HEADER_BYTES, b"\0")


def _digest(parts: tuple[bytes | memoryview, ...]) -> bytes:
    """A digest of the parts one after another: of the sums of their chunks, so that it costs no more than reading them.

    It finds damage, not malice: the folder is private. All parts but the last have a multiple of eight bytes.
    """
    total = sum(len(part) for part in parts)
    sums = np.zeros(-(-total // (_CHUNK_WORDS * _WORD_BYTES)), np.uint64)
    digest = hashlib.sha256(total.to_bytes(8, "little"))
    position = 0
    for part in parts:
        words = np.frombuffer(part, "<u8", count=len(part) // _WORD_BYTES)
        if len(words):
            first = position // _CHUNK_WORDS
            borders = np.arange(first, -(-(position + len(words)) // _CHUNK_WORDS)) * _CHUNK_WORDS - position
            sums[first : first + len(borders)] += np.add.reduceat(words, np.maximum(borders, 0))
        digest.update(part[len(words) * _WORD_BYTES :])
        position += len(words)
    digest.update(sums.tobytes())
    return digest.digest()
