"""A process that compiles and runs damaged models, one at a time, on request.

In: on standard input a line `depth seed path` per model; `plan` stops before machine code, `machine` compiles and runs.
Out: on standard output a line with the outcome as JSON (see `Reply`). Outcomes are `refused` (by an error of
Glowstone's when compiled), `planned`, `compiled` (not run: its inputs would be large), `stopped` (by such an error when
run), `ran`, and `fault`. A process of its own, for a model may also crash it or never end.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import glowstone
from glowstone.api.compiling import make_settings
from glowstone.api.model import TensorInfo
from glowstone.backends.cpu.target import Target
from glowstone.compiler import compile_template, plan_shape
from glowstone.errors import GlowstoneError, InternalError, UnknownValueError
from glowstone.importer import import_model, open_model
from glowstone.options import Options
from glowstone.support.budget import limited

MEMORY_LIMIT = 256 << 20
"""Of planned memory, in bytes."""
ADDRESS_SPACE = 4 << 30
"""Bytes that may be mapped beyond what is mapped when the process has started."""
CHECKED_ONE_OF = 4
"""Models compiled to machine code, of which one is verified after every pass."""
RUNS = 2
"""Of a model, at extents of symbolic dimensions of their own."""
MOST_FED_BYTES = 1 << 24
"""A model whose inputs are larger is not run."""
LARGEST_NOMINAL = 4
"""Of symbolic dimensions."""
SHARE_OF_ANY_INTEGERS = 0.15
"""Of inputs of integers; others get small ones, for they may be indices."""
SHARE_OF_NO_NUMBERS = 0.1
"""Of inputs of floats that have NaN, infinities or zeros."""
PACKAGE = Path(glowstone.__file__).parent


@dataclass
class Reply:
    """`place` is the deepest line of Glowstone in a fault; `seconds` are of the processor."""

    outcome: str
    error: str = ""
    place: str = ""
    detail: str = ""
    seconds: float = 0.0


def attempt(depth: str, seed: int, path: Path) -> Reply:
    """What becomes of a model."""
    stage = "refused"
    try:
        if depth == "plan":
            return _planned(path)
        checked = {"check": seed % CHECKED_ONE_OF == 0}
        model = glowstone.compile(path, cache=False, threads=1, memory_limit=MEMORY_LIMIT, options=checked)
        stage = "stopped"
        for number in range(RUNS):
            feeds = _feeds(model.inputs, np.random.default_rng([seed, number]))
            if feeds is None:
                return Reply("compiled")
            model.run(feeds)
    except GlowstoneError as error:
        if isinstance(error, InternalError) or not error.message:
            return _fault(error)
        if stage == "refused" and error.file is None:
            return Reply("fault", "no file named", _place(error), str(error))
        return Reply(stage, type(error).__name__)
    except Exception as error:
        return _fault(error)
    return Reply("ran")


def _planned(path: Path) -> Reply:
    """All of compilation but machine code."""
    with limited(Options()):
        return _planned_within(path)


def _planned_within(path: Path) -> Reply:
    try:
        graph = import_model(open_model(path))
    except UnknownValueError:
        glowstone.compile(path, cache=False, threads=1, memory_limit=MEMORY_LIMIT)  # in steps: no code before a run
        return Reply("planned")
    settings = make_settings(Target.host(), "relaxed", Options(), MEMORY_LIMIT)
    try:
        plan_shape(compile_template(graph, {}, settings), None, settings)
    except GlowstoneError as error:
        raise error.with_context(file=str(path)) from error.__cause__
    return Reply("planned")


def _fault(error: BaseException) -> Reply:
    detail = "".join(traceback.format_exception(error))
    return Reply("fault", type(error).__name__, _place(error), detail)


def _place(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, InternalError) and error.__cause__ else error
    frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if frame.filename.startswith(str(PACKAGE))]
    return f"{Path(frames[-1].filename).relative_to(PACKAGE)}:{frames[-1].name}" if frames else ""


def _feeds(inputs: Sequence[TensorInfo], random: np.random.Generator) -> dict[str, Any] | None:
    """A value for every input; None where they would be large."""
    symbols: dict[str, int] = {}
    budget = MOST_FED_BYTES
    feeds = {}
    for info in inputs:
        shape = info.shape if info.has_rank else ("",) * int(random.integers(3))
        extents = [_extent(dimension, symbols, random) for dimension in shape]
        budget -= int(np.prod([float(extent) for extent in extents])) * info.dtype.itemsize
        if budget < 0:
            return None
        feeds[info.name] = _value(info, extents, random)
    return feeds


def _extent(dimension: int | str, symbols: dict[str, int], random: np.random.Generator) -> int:
    if isinstance(dimension, int):
        return dimension
    drawn = int(random.integers(LARGEST_NOMINAL + 1))
    return symbols.setdefault(dimension, drawn) if dimension else drawn


def _value(info: TensorInfo, shape: Sequence[int], random: np.random.Generator) -> Any:
    array = _array(info.dtype, shape, random)
    if "seq" in info.kind:
        return [array] * int(random.integers(3))
    return None if info.kind.startswith("optional") and random.random() < 0.5 else array


def _array(dtype: np.dtype[Any], shape: Sequence[int], random: np.random.Generator) -> np.ndarray:
    if dtype.hasobject:
        return random.choice(np.array(["", "a", "word", "1.5", "é"], object), shape)
    count = int(np.prod(shape))
    if dtype.kind in "iu" and random.random() < SHARE_OF_ANY_INTEGERS:
        return np.frombuffer(random.bytes(count * dtype.itemsize), dtype).reshape(shape)
    if dtype.kind in "iub":
        return random.integers(0 if dtype.kind != "i" else -3, 2 if dtype.kind == "b" else 5, shape).astype(dtype)
    array = random.standard_normal(shape) * 10.0 ** random.integers(-1, 3)
    if random.random() < SHARE_OF_NO_NUMBERS:
        array = np.where(random.random(shape) < 0.3, random.choice([np.nan, np.inf, -np.inf, 0]), array)
    with warnings.catch_warnings(action="ignore"):
        return np.asarray(array).astype(dtype)


def main() -> None:
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    _limit_memory()
    warnings.simplefilter("error")
    for line in sys.stdin:
        depth, seed, path = line.rstrip("\n").split(" ", 2)
        start = time.process_time()
        reply = attempt(depth, int(seed), Path(path))
        reply.seconds = time.process_time() - start
        gc.collect(0)
        replies.write(json.dumps(asdict(reply)) + "\n")
        replies.flush()


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    main()
