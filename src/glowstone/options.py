"""Every option, with its environment variable.

In: what the caller gave, and the environment. Out: one frozen `Options`. An argument beats the environment, the
environment beats the default. Reading options touches no file.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

import platformdirs

from glowstone.errors import InputError

NUMERICS: Final = ("relaxed", "strict")
_MEBIBYTE: Final = 1 << 20
_SUFFIXES: Final = {"k": 1 << 10, "m": _MEBIBYTE, "g": 1 << 30, "t": 1 << 40}
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off", ""})


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in _TRUE | _FALSE:
        raise ValueError("a boolean: 1, true, yes, on or 0, false, no, off")
    return text in _TRUE


def _bytes(value: object) -> int:
    """A number of bytes, given as an integer or as text with an optional suffix k, m, g or t (powers of 1024)."""
    text = str(value).strip().lower()
    scale = _SUFFIXES.get(text[-1:], 1)
    digits = text[:-1] if scale > 1 else text
    if isinstance(value, bool) or not digits.isdecimal():
        raise ValueError("a number of bytes, such as 1048576 or 512m")
    return int(digits) * scale


def _optional_bytes(value: object) -> int | None:
    return None if value is None else _bytes(value)


def _optional_path(value: object) -> Path | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str | os.PathLike):
        raise ValueError("a path")
    return Path(value).expanduser()


def _count(value: object) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not text.isdecimal() or int(text) < 1:
        raise ValueError("a number, 1 or more")
    return int(text)


def _optional_count(value: object) -> int | None:
    return None if value is None else _count(value)


def _seconds(value: object) -> float:
    try:
        seconds = float(str(value))
    except ValueError:
        seconds = 0.0
    if isinstance(value, bool) or not 0 < seconds < math.inf:
        raise ValueError("seconds, more than 0")
    return seconds


def _paths(value: object) -> tuple[Path, ...]:
    """Folders as a sequence or as text with the system's path separator between; empty ones are dropped."""
    if isinstance(value, str):
        value = [part for part in value.split(os.pathsep) if part]
    if not isinstance(value, list | tuple) or not all(isinstance(path, str | os.PathLike) for path in value):
        raise ValueError(f"paths, as a list or with {os.pathsep} between")
    return tuple(Path(path).expanduser() for path in value)


def _names(value: object) -> tuple[str, ...]:
    """Names as a sequence or as text with commas between; empty ones are dropped."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple | set | frozenset) or not all(isinstance(name, str) for name in value):
        raise ValueError("names, as a list or with commas between")
    return tuple(sorted({name.strip() for name in value} - {""}))


def _option(default: Any, variable: str, parse: Callable[[object], object], help_text: str) -> Any:
    """A field of `Options` with its environment variable, its parser and one line of help."""
    return field(default=default, metadata={"variable": variable, "parse": parse, "help": help_text})


@dataclass(frozen=True)
class Options:
    """How to compile, apart from what the arguments of `glowstone.compile` say. Immutable and comparable."""

    dump: Path | None = _option(
        None, "GLOWSTONE_DUMP", _optional_path, "folder for what every stage makes: graphs, program, plan, LLVM IR"
    )
    check: bool = _option(False, "GLOWSTONE_CHECK", _boolean, "verify before and after every pass")
    skip_passes: tuple[str, ...] = _option((), "GLOWSTONE_SKIP_PASSES", _names, "optional passes to leave out")
    time_passes: bool = _option(False, "GLOWSTONE_TIME_PASSES", _boolean, "log the seconds of every pass")
    cache_dir: Path | None = _option(
        None, "GLOWSTONE_CACHE_DIR", _optional_path, "folder of the cache; the user's cache folder by default"
    )
    cache_limit_bytes: int = _option(
        2048 * _MEBIBYTE, "GLOWSTONE_CACHE_LIMIT", _bytes, "bytes the cache may hold before its oldest entries go"
    )
    memory_limit: int | None = _option(
        None, "GLOWSTONE_MEMORY_LIMIT", _optional_bytes, "bytes of planned memory; half of the machine's by default"
    )
    compile_processes: int | None = _option(
        None,
        "GLOWSTONE_COMPILE_PROCESSES",
        _optional_count,
        "processes that compile the kernels of a large model; the physical cores, at most 4, by default",
    )
    external_data_roots: tuple[Path, ...] = _option(
        (), "GLOWSTONE_EXTERNAL_DATA_ROOTS", _paths, "folders besides the model's own that external data may lie in"
    )
    compile_seconds: float = _option(
        600.0, "GLOWSTONE_COMPILE_SECONDS", _seconds, "seconds that compiling, at one shape, may take"
    )
    compile_memory: int = _option(
        2048 * _MEBIBYTE,
        "GLOWSTONE_COMPILE_MEMORY",
        _bytes,
        "bytes that compiling may allocate for constants, besides four times what the model's files hold",
    )
    fold_value_limit: int = _option(
        128 * _MEBIBYTE,
        "GLOWSTONE_FOLD_VALUE_LIMIT",
        _bytes,
        "bytes of one value computed at compile time; larger ones are left to the run",
    )
    fold_limit: int = _option(
        512 * _MEBIBYTE,
        "GLOWSTONE_FOLD_LIMIT",
        _bytes,
        "bytes of all values computed at compile time, besides four times what the model's files hold",
    )
    node_limit: int = _option(
        500_000, "GLOWSTONE_NODE_LIMIT", _count, "nodes of a model after functions are expanded and loops unrolled"
    )
    function_byte_limit: int = _option(
        512 * _MEBIBYTE, "GLOWSTONE_FUNCTION_BYTE_LIMIT", _bytes, "bytes of a model's functions after expansion"
    )
    nesting_limit: int = _option(
        32, "GLOWSTONE_NESTING_LIMIT", _count, "depth of graphs in graphs, functions in functions, types in types"
    )
    attribute_limit: int = _option(
        64 * _MEBIBYTE, "GLOWSTONE_ATTRIBUTE_LIMIT", _count, "numbers, or bytes of text, that an attribute may hold"
    )

    @staticmethod
    def resolve(overrides: Mapping[str, object] | None = None, environment: Mapping[str, str] | None = None) -> Options:
        """The options in force: `overrides` by field name, then `environment` (`os.environ` if None), then defaults.

        Raises:
            InputError: an unknown name (the message lists the known ones), or a value that cannot be read.
        """
        overrides = {} if overrides is None else overrides
        environment = os.environ if environment is None else environment
        known = {option.name for option in fields(Options)}
        unknown = sorted(set(overrides) - known)
        if unknown:
            raise InputError(
                f"unknown option {', '.join(map(repr, unknown))}", expected=", ".join(sorted(known)), found=unknown[0]
            )
        values: dict[str, Any] = {}
        for option in fields(Options):
            variable = option.metadata["variable"]
            if option.name in overrides:
                values[option.name] = _parsed(option.name, option.metadata["parse"], overrides[option.name])
            elif variable in environment:
                values[option.name] = _parsed(variable, option.metadata["parse"], environment[variable])
        return Options(**values)

    def cache_folder(self) -> Path:
        """The folder of compiled models: `cache_dir`, else one in this user's cache folder. It need not exist."""
        return self.cache_dir or Path(platformdirs.user_cache_dir("glowstone", appauthor=False)) / "compiled"


def option_table() -> list[tuple[str, str, object, str]]:
    """Name, environment variable, default and meaning of every option, for the documentation and the command line."""
    return [(one.name, one.metadata["variable"], one.default, one.metadata["help"]) for one in fields(Options)]


def _parsed(name: str, parse: Callable[[object], object], value: object) -> object:
    try:
        return parse(value)
    except ValueError as error:
        raise InputError(f"option {name} cannot be read", expected=str(error), found=repr(value)) from None
