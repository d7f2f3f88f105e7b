"""Digests of model files that were read before, so that loading a compiled model need not read the file again.

An entry is believed only while everything the system says of the file is as it was, and only if the file had not been
changed for a while when the entry was written: two changes within one tick of the clock look alike.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from pathlib import Path

from glowstone.runtime.cache import Cache

SETTLED_NANOSECONDS = 2_000_000_000
"""Longer than the coarsest clock of a file system in use."""


def known_digest(path: Path, store: Cache) -> str | None:
    """The digest of a file, where an entry can be believed."""
    content = store.get(_entry(path))
    if content is None:
        return None
    try:
        entry = json.loads(bytes(content))
        current = _state(path)
    except (OSError, ValueError):
        return None
    digest: str | None = entry["digest"] if entry["state"] == current else None
    return digest


def remember_digest(path: Path, digest: str, before: list[int] | None, store: Cache) -> None:
    """Enter a digest; `before` is the file's state before it was read."""
    try:
        state = _state(path)
    except OSError:
        return
    if state != before or time.time_ns() - max(state[1:3]) < SETTLED_NANOSECONDS:
        return
    store.put(_entry(path), json.dumps({"state": state, "digest": digest}).encode())


def file_state(path: Path) -> list[int] | None:
    """What the system says of a file; None where it says nothing."""
    try:
        return _state(path)
    except OSError:
        return None


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]


def _entry(path: Path) -> str:
    return "digest-" + hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest() + ".json"
