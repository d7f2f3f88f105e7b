"""A compiled model as a bundle: object file and C header for the reference shape."""

from __future__ import annotations

from pathlib import Path

from glowstone import bundle
from glowstone.backends.cpu.target import Target
from glowstone.runtime.executable import Argument, Executable
from glowstone.table import FIRST_ARGUMENT_BASE
from glowstone.types import ElementType


def write_executable_bundle(
    executable: Executable, keys: tuple[object, ...], target: Target, folder: Path, name: str
) -> tuple[Path, Path]:
    """Write `<name>.o` and `<name>.h`; returns their paths. `keys` are the kernels' by index.

    Raises:
        InputError, LimitError, UnsupportedError, OSError: as `bundle.write_bundle`.
    """
    return bundle.write_bundle(folder, _bundle(executable, keys, name), target)


def _bundle(executable: Executable, keys: tuple[object, ...], name: str) -> bundle.Bundle:
    table = executable.table
    return bundle.Bundle(
        name,
        table.words,
        keys,  # type: ignore[arg-type]
        [executable.constants.data],
        [executable.plan_constants.data],
        executable.arena_bytes,
        table.scratch_bytes,
        tuple(map(_argument, executable.inputs)),
        tuple(map(_argument, executable.outputs)),
        loop_slots=table.base_count - FIRST_ARGUMENT_BASE - len(executable.inputs) - len(executable.outputs),
        has_loops=table.has_loops,
    )


def _argument(argument: Argument) -> bundle.Argument:
    return bundle.Argument(argument.name, ElementType.from_dtype(argument.dtype), argument.shape)
