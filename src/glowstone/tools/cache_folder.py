"""The cache as a folder of files: how much it holds, and clearing it while others may be using it."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class FolderUsage:
    """A folder, the number of regular files in it at any depth, and their bytes."""

    folder: Path
    files: int
    size: int


def measure_folder(folder: Path) -> FolderUsage:
    """Count what the folder holds. A folder that does not exist holds nothing; files may vanish meanwhile."""
    sizes = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and not path.is_symlink():
                sizes.append(path.stat().st_size)
    return FolderUsage(folder, len(sizes), sum(sizes))


def clear_folder(folder: Path) -> FolderUsage:
    """Remove all that is in the folder, and the folder; returns what was removed.

    It is renamed first: another process sees either the whole cache or none, and files that are mapped stay readable.
    """
    usage = measure_folder(folder)
    if not folder.exists():
        return usage
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as grave:
        folder.rename(Path(grave) / folder.name)
        shutil.rmtree(Path(grave) / folder.name, ignore_errors=True)
    return usage
