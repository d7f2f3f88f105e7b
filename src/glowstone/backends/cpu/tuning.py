"""Choices between equivalent kernels: made by rules, or read from a tuning file that `glowstone tune` measured.

A *case* is what a choice depends on: the sizes of one convolution or product at the reference shape. A file names cases
and what to take for each; a case that it does not name follows the rules. The same file gives the same code.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from glowstone.backends.cpu.winograd_transforms import FILTERINGS
from glowstone.errors import InputError

FORMAT: Final = 2
DIRECT: Final = "direct"
WINOGRAD: Final[Mapping[str, int]] = {f"winograd_{tile}x{tile}": tile for tile in FILTERINGS}
"""Tile sizes by the name of the algorithm."""
MOST_BLOCKS: Final = 4
PANELS: Final = (8, 16, 24, 32)


@dataclass(frozen=True)
class ConvolutionCase:
    """A convolution of images: channels, groups, window, and extents of the output."""

    inputs: int
    outputs: int
    groups: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    images: int
    height: int
    width: int


@dataclass(frozen=True)
class ProductCase:
    """A product [rows, depth] by constant [depth, columns]."""

    rows: int
    depth: int
    columns: int


@dataclass(frozen=True)
class ConvolutionChoice:
    """`algorithm` is direct or one of `WINOGRAD`; `blocks` are the channel blocks of a direct register tile."""

    algorithm: str = DIRECT
    blocks: int = 1


@dataclass(frozen=True)
class ProductChoice:
    """Columns of a packed panel."""

    panel: int


Case = ConvolutionCase | ProductCase
Choice = ConvolutionChoice | ProductChoice
_KINDS: Final[Mapping[str, tuple[type[Any], type[Any]]]] = {
    "convolution": (ConvolutionCase, ConvolutionChoice),
    "product": (ProductCase, ProductChoice),
}


@dataclass(frozen=True)
class Tuning:
    """Choices by case, for one target."""

    choices: Mapping[Case, Choice] = field(default_factory=dict)

    def convolution(self, case: ConvolutionCase) -> ConvolutionChoice | None:
        """What to take, or None where the rules decide."""
        choice = self.choices.get(case)
        return choice if isinstance(choice, ConvolutionChoice) else None

    def product(self, case: ProductCase) -> ProductChoice | None:
        """What to take, or None where the rules decide."""
        choice = self.choices.get(case)
        return choice if isinstance(choice, ProductChoice) else None

    @property
    def digest(self) -> str:
        """Tells files apart whose choices differ."""
        return hashlib.sha256(json.dumps(self._entries()).encode()).hexdigest() if self.choices else ""

    def write(self, path: Path, target: str) -> None:
        """Write a tuning file for a target, as its text."""
        content = {"format": FORMAT, "target": target, "choices": self._entries()}
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")

    def _entries(self) -> list[dict[str, Any]]:
        names = {case: name for name, (case, _) in _KINDS.items()}
        made = [{names[type(case)]: asdict(case), "take": asdict(take)} for case, take in self.choices.items()]
        return sorted(made, key=json.dumps)


def read_tuning(path: Path, target: str) -> Tuning:
    """The tuning file for a target.

    Raises:
        InputError: it cannot be read, is no tuning file, or was measured for another target.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version, measured, entries = content["format"], content["target"], content["choices"]
        if version != FORMAT:
            raise ValueError(f"format {version}, not {FORMAT}")
        choices = dict(_parsed(entry) for entry in entries)
    except OSError as error:
        raise InputError("the tuning file cannot be read", file=str(path), found=str(error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            "not a tuning file",
            file=str(path),
            found=f"{type(error).__name__}: {error}",
            remedy="make one with glowstone tune",
        ) from error
    if measured != target:
        raise InputError(
            "the tuning file is for another target",
            file=str(path),
            expected=target,
            found=measured,
            remedy="tune on this machine",
        )
    return Tuning(choices)


def _parsed(entry: Mapping[str, Any]) -> tuple[Case, Choice]:
    (kind,) = set(entry) - {"take"}
    case_type, choice_type = _KINDS[kind]
    case, choice = _made(case_type, entry[kind]), _made(choice_type, entry["take"])
    if isinstance(choice, ConvolutionChoice):
        if choice.algorithm not in (DIRECT, *WINOGRAD) or not 1 <= choice.blocks <= MOST_BLOCKS:
            raise ValueError(f"unknown choice {choice}")
    elif choice.panel not in PANELS:
        raise ValueError(f"unknown choice {choice}")
    return case, choice


def _made(kind: type[Any], values: Mapping[str, Any]) -> Any:
    """A case or choice from its fields: integers, texts, and pairs of integers."""
    if set(values) != {one.name for one in fields(kind)}:
        raise ValueError(f"fields {sorted(values)} for {kind.__name__}")
    made = {}
    for name, value in values.items():
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, int) and part > 0 for part in parts) and not isinstance(value, str):
            raise ValueError(f"{name} is {value!r}")
        made[name] = tuple(value) if isinstance(value, list) else value
    return kind(**made)
