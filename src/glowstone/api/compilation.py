"""`glowstone.compile`: from a model file to a `Model`, through the cache or the compiler.

On a cache hit nothing of the compiler is imported: `compiling.py` is its door.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from glowstone.api.engine import Engine
from glowstone.api.machine import compiler_version, host_target, kernel_store, machine_memory, open_cache, run_loop
from glowstone.api.model import Model
from glowstone.api.saved_model import SavedModel, save
from glowstone.api.source import Source
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import Tuning, read_tuning
from glowstone.errors import GlowstoneError, InputError, UnknownValueError
from glowstone.options import NUMERICS, Options
from glowstone.runtime.cache import Cache
from glowstone.runtime.kernel_library import KernelLibrary, Progress
from glowstone.runtime.native import NativeCode
from glowstone.runtime.threads import default_threads
from glowstone.support.budget import limited
from glowstone.support.collection import collection_paused
from glowstone.support.model_source import ModelSource
from glowstone.types import GivenShapes

if TYPE_CHECKING:
    from glowstone.api.maker import Maker
    from glowstone.compiler import Settings

Array = np.ndarray[Any, np.dtype[Any]]

Whole = Callable[[Mapping[str, Any]], tuple[Model, Mapping[str, Any]]]
"""Makes one program for inputs: a model, and those of the inputs that it still takes."""

MOST_THREADS = 64


def compile(
    model: ModelSource,
    *,
    shapes: GivenShapes | None = None,
    constants: Mapping[str, Array] | None = None,
    backend: str = "cpu",
    target: str = "host",
    threads: int | None = None,
    numerics: str = "relaxed",
    tuning: str | os.PathLike[str] | None = None,
    cache: bool = True,
    memory_limit: int | None = None,
    external_data_roots: Sequence[str | os.PathLike[str]] | None = None,
    options: Mapping[str, object] | None = None,
) -> Model:
    """Compile a model to machine code.

    Args:
        model: a path, the bytes of a model, or an onnx.ModelProto.
        shapes: reference shapes by input, and extents by symbolic dimension: `{"x": (4, "length"), "length": 32}`.
            Not a restriction: another shape specializes from the template.
        constants: inputs fixed at compile time.
        backend: "cpu".
        target: "host", or "triple/cpu/features" of this machine's kind.
        threads: how many threads a run uses; by default the physical cores that this process may use.
        numerics: "relaxed", or "strict": every output is a sum of exactly the products of the specification.
        tuning: a file that `glowstone tune` wrote on this machine; by default choices are made by the rules alone.
        cache: use the cache on disk.
        memory_limit: most bytes of planned memory; by default half of what the control group or the machine has.
        external_data_roots: folders besides the model's own that its external data may lie in.
        options: see `glowstone.Options`.

    Raises:
        ModelError: the file is no valid model, or reaches for files that it may not read.
        UnsupportedError: it uses operators or types that are not there.
        ShapeError: a shape does not fit it.
        LimitError: planned memory, or what compiling takes, is above a limit of the options.
        InputError: an argument of this function is wrong.
    """
    if external_data_roots is not None:
        options = {**(options or {}), "external_data_roots": external_data_roots}
    request = Request(
        model, shapes, constants, backend, target, threads, numerics, tuning, cache, memory_limit, options
    )
    return compile_request(request)


@dataclass(frozen=True)
class Request:
    """The arguments of `compile`."""

    model: ModelSource
    shapes: GivenShapes | None = None
    constants: Mapping[str, Array] | None = None
    backend: str = "cpu"
    target: str = "host"
    threads: int | None = None
    numerics: str = "relaxed"
    tuning: str | os.PathLike[str] | Tuning | None = None
    cache: bool = True
    memory_limit: int | None = None
    options: Mapping[str, object] | None = None


def compile_request(request: Request, progress: Progress | None = None) -> Model:
    """`compile`, telling `progress` how many of how many kernels are ready."""
    options = Options.resolve(request.options)
    with limited(options):
        return _compiled(request, options, progress)


def _compiled(request: Request, options: Options, progress: Progress | None) -> Model:
    if request.numerics not in NUMERICS:
        raise InputError("unknown numerics", expected=" or ".join(NUMERICS), found=request.numerics)
    store = open_cache(options) if request.cache else None
    target = _target(request.backend, request.target, store)
    threads = _threads(request.threads)
    limit = request.memory_limit or options.memory_limit or machine_memory() // 2
    source = Source(request.model, request.shapes, request.constants, options.external_data_roots)
    tuning = _tuning(request.tuning, target)
    library = KernelLibrary(target, kernel_store(store, target))
    job = _Job(source, target, request.numerics, options, limit, library, tuning)
    code = run_loop(store, target)
    try:
        model = job.model(store, code, threads, progress, _whole(request, progress))
    except GlowstoneError as error:
        raise error.with_context(file=source.name) from error.__cause__
    model.recipe = lambda: (compile_request, (replace(request, model=source.portable(), tuning=tuning),))
    return model


def _whole(request: Request, progress: Progress | None) -> Whole:
    """Compiles the request with the values of inputs that decide shapes fixed."""

    def whole(inputs: Mapping[str, Any]) -> tuple[Model, Mapping[str, Any]]:
        from glowstone import importer  # the door to the compiler

        options = Options.resolve(request.options)
        source = Source(request.model, request.shapes, request.constants, options.external_data_roots)
        with limited(options):
            fixed = importer.deciding_inputs(source.file(), {**inputs, **source.constants})
        constants = {**source.constants, **{name: inputs[name] for name in fixed if name in inputs}}
        left = {name: value for name, value in inputs.items() if name not in constants}
        shapes = {name: np.shape(value) for name, value in left.items()}
        return compile_request(replace(request, constants=constants, shapes=shapes), progress), left

    return whole


@dataclass(frozen=True)
class _Job:
    """One compilation: all that decides its result."""

    source: Source
    target: Target
    numerics: str
    options: Options
    memory_limit: int
    library: KernelLibrary
    tuning: Tuning

    def model(
        self, store: Cache | None, code: NativeCode, threads: int, progress: Progress | None, whole: Whole
    ) -> Model:
        """The model as one graph; in steps where shapes depend on data, or values are no tensors."""
        try:
            return Model(self.engine(store, progress), self.target, code, threads)
        except UnknownValueError:
            return self.stepped(code, threads, whole)

    def engine(self, store: Cache | None, progress: Progress | None) -> Engine:
        """From the cache, or compiled and put there. A dump of the stages needs them to happen."""
        if store is None or self.options.dump is not None:
            return self._compiled(progress)
        entry = self.source.key(
            store,
            self.target.text,
            self.numerics,
            self.memory_limit,
            self.options.skip_passes,
            self.options.fold_value_limit,
            self.options.fold_limit,
            self.tuning.digest,
            compiler_version(),
        )
        engine = self._loaded(store, entry)
        if engine is None:
            engine = self._compiled(progress)
            parts = self.source.external_parts()
            if parts is not None:
                store.put(entry, *save(engine, parts))
        return engine

    def _loaded(self, store: Cache, entry: str) -> Engine | None:
        content = store.get(entry)
        if content is None:
            return None
        saved = SavedModel.read(content)
        if not self.source.has_parts(saved.record.external_parts):
            return None
        engine = Engine(saved.record.signature, saved.record.reference, self.library, self._make_later(saved))
        saved.restore(engine)
        self.source.forget_bytes()
        return engine

    def _make_later(self, saved: SavedModel) -> Callable[[Engine], Maker]:
        def make(engine: Engine) -> Maker:
            from glowstone.api import compiling  # the door to the compiler

            return compiling.maker_of_saved(self.source, saved, self._settings)(engine)

        return make

    def _compiled(self, progress: Progress | None) -> Engine:
        with collection_paused:
            from glowstone.api import compiling  # the door to the compiler

            return compiling.compile_engine(self.source, self._settings(), self.library, progress)

    def stepped(self, code: NativeCode, threads: int, whole: Whole) -> Model:
        """A model that runs in steps."""
        from glowstone.api import compiling  # the door to the compiler

        return compiling.compile_stepped(self.source, self._settings(), self.library, code, threads, whole)

    def _settings(self) -> Settings:
        from glowstone.api import compiling  # the door to the compiler

        return compiling.make_settings(self.target, self.numerics, self.options, self.memory_limit, self.tuning)


def _target(backend: str, text: str, store: Cache | None) -> Target:
    if backend != "cpu":
        raise InputError("unknown backend", expected="cpu", found=backend)
    if text == "host":
        return host_target(store)
    try:
        return Target.parse(text)
    except ValueError as error:
        raise InputError("target cannot be read", expected="host, or triple/cpu/features", found=text) from error


def _tuning(given: str | os.PathLike[str] | Tuning | None, target: Target) -> Tuning:
    if given is None:
        return Tuning()
    return given if isinstance(given, Tuning) else read_tuning(Path(given), target.text)


def _threads(threads: int | None) -> int:
    if threads is None:
        return default_threads()
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise InputError("threads out of range", expected=f"1 to {MOST_THREADS}", found=threads)
    return threads
