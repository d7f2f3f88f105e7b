"""Numbered files with what every stage of a compilation made, for people to read."""

from __future__ import annotations

from pathlib import Path


class StageDump:
    """Writes into a folder, which it makes. Without a folder it writes nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._count = 0

    @property
    def is_on(self) -> bool:
        """Whether anything is written: texts that cost time need not be made otherwise."""
        return self._folder is not None

    def write(self, name: str, text: str) -> None:
        """Write `text` into the next file: its number, then `name`, which ends in the kind of text (.ir, .ll, .s)."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._count += 1
        (self._folder / f"{self._count:03}_{name}").write_text(text, encoding="utf-8")
