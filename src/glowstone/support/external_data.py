"""Files with the data of tensors: opened in the model's own folder and in folders that the user allows, nowhere else.

A location is opened folder by folder, each relative to the one before, and a link on the way is not followed: neither
`..` nor a link that is put there meanwhile leads out. Only regular files are read. A file with several hard links may
be another's secret under a new name, so it is read only from a folder that the user allowed by name.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from glowstone.errors import ModelError

Array = np.ndarray[Any, np.dtype[Any]]
FileState = tuple[int, ...]
"""What tells whether a file is still the one that it was: size, times, place on the disk."""

REMEDY = "put the data beside the model, or allow the folder that it really lies in with external_data_roots=[...]"
_HAS_FOLDER_DESCRIPTORS = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW") and hasattr(os, "O_DIRECTORY")
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_READ_AT_ONCE = _READ | getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe does not wait for a writer."""
_LINK_ERRORS = frozenset({errno.ELOOP, errno.EMLINK})
_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True)
class DataPart:
    """Some bytes of an external file, as a model names them."""

    location: str
    offset: int
    length: int


@dataclass
class ExternalData:
    """Where a model's external data may lie. `parts` are what was read so far, with the state of their file then."""

    folder: Path | None
    roots: tuple[Path, ...] = ()
    parts: dict[DataPart, FileState] = field(default_factory=dict)

    def read(self, location: str, offset: int, length: int | None, size: int, name: str) -> Array:
        """The bytes of a tensor, mapped.

        Args:
            location: as the model file gives it.
            offset: of the first byte.
            length: how many bytes the file says there are; None where it does not say.
            size: how many bytes the tensor has.
            name: what errors call the tensor.

        Raises:
            ModelError: the file may not be read, or does not have these bytes.
        """
        with self._open(location, name) as file:
            status = os.fstat(file.fileno())
            wanted = size if length is None else length
            if offset < 0 or wanted != size or offset + wanted > status.st_size:
                raise ModelError(
                    f"{name} does not fit its external file",
                    expected=f"{size} bytes within {status.st_size}",
                    found=f"{wanted} bytes at {offset}",
                )
            self.parts[DataPart(location, offset, size)] = _state(status)
            return _mapped(file, offset, size)

    def digests(self) -> tuple[tuple[DataPart, str], ...] | None:
        """The parts read so far with the digests of their bytes; None where a file has changed since."""
        found = []
        for part, state in self.parts.items():
            digest = self.digest(part)
            if digest is None or self._state_of(part.location) != state:
                return None
            found.append((part, digest))
        return tuple(found)

    def digest(self, part: DataPart) -> str | None:
        """The digest of the bytes of a part; None where they cannot be read."""
        try:
            with self._open(part.location, "") as file:
                if part.offset + part.length > os.fstat(file.fileno()).st_size:
                    return None
                content = _mapped(file, part.offset, part.length)
        except ModelError:
            return None
        digest = hashlib.sha256()
        for start in range(0, part.length, _CHUNK_BYTES):
            digest.update(content[start : start + _CHUNK_BYTES].data)
        return digest.hexdigest()

    def _state_of(self, location: str) -> FileState | None:
        try:
            with self._open(location, "") as file:
                return _state(os.fstat(file.fileno()))
        except ModelError:
            return None

    def _open(self, location: str, name: str) -> BinaryIO:
        """The file of a location.

        Raises:
            ModelError: there is none in a folder that is allowed.
        """
        if self.folder is None:
            raise ModelError(
                f"{name} lies in an external file, but the model has no folder",
                found=location,
                remedy="pass the model's path instead of its bytes",
            )
        refusal: ModelError | None = None
        for folder in (self.folder, *self.roots):
            try:
                return _open_beneath(folder, location, name, is_own=folder is self.folder)
            except ModelError as error:
                refusal = refusal or error
        assert refusal is not None
        return self._open_where_it_is(location, name, refusal)

    def _open_where_it_is(self, location: str, name: str, refusal: ModelError) -> BinaryIO:
        """The file that a location leads to by links, `..` or an absolute path, if its real folder is allowed.

        Raises:
            ModelError: the refusal given, where it is not.
        """
        if self.folder is None or not self.roots:
            raise refusal
        try:
            places = [Path(os.path.realpath(folder / location)) for folder in (self.folder, *self.roots)]
        except (OSError, ValueError) as error:
            raise _unreadable(name, location, error) from error
        for place in places:
            for root in (*self.roots, self.folder):
                real = Path(os.path.realpath(root))
                if place.is_relative_to(real) and place != real and place.exists():
                    return _open_beneath(real, str(place.relative_to(real)), name, is_own=root is self.folder)
        raise refusal


def _open_beneath(folder: Path, location: str, name: str, is_own: bool) -> BinaryIO:
    """The regular file at a relative location below a folder, without a link on the way.

    Raises:
        ModelError: there is no such file.
    """
    parts = Path(location).parts
    if not parts or os.path.isabs(location) or ".." in parts:
        raise _outside(name, location)
    open_parts = _open_by_descriptors if _HAS_FOLDER_DESCRIPTORS else _open_by_names
    try:
        descriptor = open_parts(folder, parts)
    except _LinkError as error:
        raise ModelError(
            f"the external file of {name} is reached through a link", found=location, remedy=REMEDY
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(name, location, error) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or (is_own and status.st_nlink > 1):
        os.close(descriptor)
        raise ModelError(
            f"the external file of {name} is no plain file",
            expected="a regular file with one hard link",
            found=location,
            remedy=REMEDY,
        )
    return os.fdopen(descriptor, "rb")


class _LinkError(OSError):
    """A link on the way."""


def _open_by_descriptors(folder: Path, parts: Sequence[str]) -> int:
    """Every part relative to the folder opened before it."""
    current = os.open(folder, _READ | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            below = _open_unlinked(part, _READ | os.O_DIRECTORY, current)
            os.close(current)
            current = below
        return _open_unlinked(parts[-1], _READ_AT_ONCE, current)
    finally:
        os.close(current)


def _open_unlinked(part: str, flags: int, folder: int) -> int:
    try:
        return os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in _LINK_ERRORS or stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
            raise _LinkError(error.errno, error.strerror) from error
        raise


def _open_by_names(folder: Path, parts: Sequence[str]) -> int:
    """Where the system opens nothing relative to a folder: no part is a link before, nor is the file another after."""
    path = folder
    for part in parts:
        path = path / part
        before = path.lstat()
        if stat.S_ISLNK(before.st_mode):
            raise _LinkError(errno.ELOOP, "a link")
    if not stat.S_ISREG(before.st_mode):
        raise OSError(errno.EINVAL, "no regular file")
    descriptor = os.open(path, _READ_AT_ONCE)
    opened, real = os.fstat(descriptor), Path(os.path.realpath(path))
    if _identity(opened) != _identity(before) or real != Path(os.path.realpath(folder), *parts):
        os.close(descriptor)
        raise _LinkError(errno.ELOOP, "the file was replaced while it was opened")
    return descriptor


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _state(status: os.stat_result) -> FileState:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev


def _mapped(file: BinaryIO, offset: int, length: int) -> Array:
    if length == 0:
        return np.empty(0, np.uint8)
    return np.memmap(file, np.uint8, "r", offset, (length,))


def _outside(name: str, location: str) -> ModelError:
    return ModelError(
        f"{name} lies outside the model's folder",
        expected="a relative path without ..",
        found=location or "nothing",
        remedy=REMEDY,
    )


def _unreadable(name: str, location: str, error: Exception) -> ModelError:
    reason = error.strerror if isinstance(error, OSError) else error
    return ModelError(f"the external file of {name} cannot be read", found=f"{location}: {reason}", remedy=REMEDY)
