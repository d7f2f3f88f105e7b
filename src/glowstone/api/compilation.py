"""`glowstone.compile`: from a model file to a `Model`, through the cache or the compiler."""

from __future__ import annotations

import gc
import hashlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from glowstone import importer
from glowstone.api.engine import Engine, Signature
from glowstone.api.machine import compiler_version, host_target, kernel_store, machine_memory, open_cache, run_loop
from glowstone.api.model import Model
from glowstone.api.saved_model import SavedModel, save
from glowstone.api.value_model import Specialize, ValueModel
from glowstone.backends.cpu.backend import CpuBackend
from glowstone.backends.cpu.target import Target
from glowstone.compiler import NUMERICS, Settings
from glowstone.errors import InputError, ModelError, UnsupportedError
from glowstone.graph import Graph, UnknownValueError
from glowstone.importer import ModelFile, ModelSource
from glowstone.options import Options
from glowstone.runtime.cache import Cache
from glowstone.runtime.kernel_library import KernelLibrary, Progress
from glowstone.runtime.operating_system import release_free_memory
from glowstone.runtime.threads import default_threads
from glowstone.types import Shape

Array = np.ndarray[Any, np.dtype[Any]]

logger = logging.getLogger("glowstone")

MOST_THREADS = 64


def compile(
    model: ModelSource,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Array] | None = None,
    backend: str = "cpu",
    target: str = "host",
    threads: int | None = None,
    numerics: str = "relaxed",
    tuning: str | os.PathLike[str] | None = None,
    cache: bool = True,
    memory_limit: int | None = None,
    options: Mapping[str, object] | None = None,
) -> Model:
    """Compile a model to machine code.

    Args:
        model: a path, the bytes of a model, or an onnx.ModelProto.
        shapes: the reference shape by input name. Not a restriction: another shape specializes from the template.
        constants: inputs fixed at compile time.
        backend: "cpu".
        target: "host", or "triple/cpu/features" of this machine's kind.
        threads: how many threads a run uses; by default the physical cores that this process may use.
        numerics: "relaxed", or "strict": every output is a sum of exactly the products of the specification.
        tuning: a tuning file; None for the rules alone.
        cache: use the cache on disk.
        memory_limit: most bytes of planned memory; by default half of what the control group or the machine has.
        options: see `glowstone.Options`.

    Raises:
        ModelError: the file is no valid model.
        UnsupportedError: it uses operators or types that are not there.
        ShapeError: a shape does not fit it.
        LimitError: planned memory is above the limit.
        InputError: an argument of this function is wrong.
    """
    request = Request(
        model, shapes, constants, backend, target, threads, numerics, tuning, cache, memory_limit, options
    )
    return compile_request(request)


@dataclass(frozen=True)
class Request:
    """The arguments of `compile`."""

    model: ModelSource
    shapes: Mapping[str, Sequence[int]] | None = None
    constants: Mapping[str, Array] | None = None
    backend: str = "cpu"
    target: str = "host"
    threads: int | None = None
    numerics: str = "relaxed"
    tuning: str | os.PathLike[str] | None = None
    cache: bool = True
    memory_limit: int | None = None
    options: Mapping[str, object] | None = None


def compile_request(request: Request, progress: Progress | None = None) -> Model:
    """`compile`, telling `progress` how many of how many kernels are ready."""
    options = Options.resolve(request.options)
    if request.numerics not in NUMERICS:
        raise InputError("unknown numerics", expected=" or ".join(NUMERICS), found=request.numerics)
    if request.tuning is not None:
        raise UnsupportedError("tuning files are not supported", expected="tuning=None", found=str(request.tuning))
    store = open_cache(options) if request.cache else None
    target = _target(request.backend, request.target, store)
    count = _threads(request.threads)
    limit = request.memory_limit or options.memory_limit or machine_memory() // 2
    settings = Settings(CpuBackend(target, request.numerics == "strict"), request.numerics, options, limit)
    source = _Source(request.model, dict(request.shapes or {}), dict(request.constants or {}))
    model = _model(request, source, settings, store, count, progress)
    model.recipe = lambda: (compile_request, (replace(request, model=source.portable()),))
    return model


def _model(
    request: Request,
    source: _Source,
    settings: Settings,
    store: Cache | None,
    threads: int,
    progress: Progress | None,
) -> Model:
    """A model with an engine, or one that compiles when the values that decide shapes arrive."""
    backend = settings.backend
    assert isinstance(backend, CpuBackend)
    target = backend.target
    library = KernelLibrary(target, kernel_store(store, target))
    try:
        engine = _engine(source, settings, library, store, progress)
    except UnknownValueError as error:
        signature = source.signature() if error.inputs else None
        if signature is None:
            raise
        return ValueModel(signature, error.inputs, threads, _specializer(request, progress))
    return Model(engine, target, run_loop(store, target), threads)


def _specializer(request: Request, progress: Progress | None) -> Specialize:
    """Compiles the request with the values of more inputs fixed."""

    def specialize(values: Mapping[str, Array], shapes: Mapping[str, Shape]) -> Model:
        constants = {**(request.constants or {}), **values}
        wanted = {**shapes, **{name: shape for name, shape in (request.shapes or {}).items() if name in shapes}}
        return compile_request(replace(request, constants=constants, shapes=wanted), progress)

    return specialize


def _engine(
    source: _Source, settings: Settings, library: KernelLibrary, store: Cache | None, progress: Progress | None
) -> Engine:
    """From the cache, or compiled and put there. A dump of the stages needs them to happen."""
    if store is None or settings.options.dump is not None:
        return _from_source(source, settings, library, progress)
    entry = source.key(settings)
    engine = _from_cache(store, entry, source, settings, library)
    if engine is None:
        engine = _from_source(source, settings, library, progress)
        store.put(entry, *save(engine, source.external_files()))
    return engine


def _target(backend: str, text: str, store: Cache | None) -> Target:
    if backend != "cpu":
        raise InputError("unknown backend", expected="cpu", found=backend)
    if text == "host":
        return host_target(store)
    try:
        return Target.parse(text)
    except ValueError as error:
        raise InputError("target cannot be read", expected="host, or triple/cpu/features", found=text) from error


def _threads(threads: int | None) -> int:
    if threads is None:
        return default_threads()
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise InputError("threads out of range", expected=f"1 to {MOST_THREADS}", found=threads)
    return threads


def _from_cache(store: Cache, entry: str, source: _Source, settings: Settings, library: KernelLibrary) -> Engine | None:
    content = store.get(entry)
    if content is None:
        return None
    with settings.stage("load from cache"):
        saved = SavedModel.read(content)
        if not source.has_files(saved.record.external_files):
            return None
        engine = Engine(saved.record.signature, saved.record.reference, source.graph, settings, library)
        saved.restore(engine)
        source.forget_bytes()
    return engine


def _from_source(source: _Source, settings: Settings, library: KernelLibrary, progress: Progress | None) -> Engine:
    with settings.stage("import"):
        graph = source.graph()
    reference = tuple(value.shape for value in graph.inputs)
    engine = Engine(Signature.of(graph), reference, source.graph_once(graph), settings, library)
    del graph
    engine.executable(reference, progress)
    gc.collect()  # graphs are full of cycles and hold the weights as the file has them
    release_free_memory()
    if settings.options.time_passes:
        for name, seconds in settings.passes.items():
            logger.info("pass %s: %.2f ms", name, 1000 * seconds)
    return engine


class _Source:
    """The model as it was given, for the first compilation and for another template later."""

    def __init__(self, model: ModelSource, shapes: dict[str, Sequence[int]], constants: dict[str, Array]) -> None:
        self._model = model
        self._shapes = {name: _extents(name, shape) for name, shape in shapes.items()}
        self._constants = {name: np.asarray(array) for name, array in constants.items()}
        self._digest: str | None = None
        self._held: bytes | None = None
        """The file's bytes between the first read and the first import."""
        self._locations: list[str] = []

    def graph(self) -> Graph:
        """Import the model.

        Raises:
            ModelError: the model is not valid, or not what it was when it was compiled.
        """
        opened = self._open()
        self._locations = importer.external_locations(opened.proto.graph)
        return importer.import_model(opened, self._shapes, self._constants)

    def graph_once(self, graph: Graph) -> Callable[[], Graph]:
        """A function that gives the graph that is already there the first time, and imports it again later."""
        waiting = [graph]
        return lambda: waiting.pop() if waiting else self.graph()

    def signature(self) -> Signature | None:
        """Inputs and outputs as the file declares them; None where it leaves out an output's type or rank."""
        opened = self._open()
        declared = importer.declared_inputs(opened)
        outputs = importer.declared_outputs(opened)
        if outputs is None:
            return None
        inputs = tuple((name, *entry) for name, entry in declared.items() if name not in self._constants)
        return Signature(inputs, tuple((name, *entry) for name, entry in outputs.items()))

    def portable(self) -> bytes:
        """The model as one message, weights and all.

        Raises:
            ModelError: the model cannot be read any more, or is not what it was when it was compiled.
        """
        opened = self._open()
        data, _, _ = importer.read_bytes(self._model)
        whole = importer.with_data_inside(opened)
        return data if data is not None and whole is opened.proto else _serialized(whole)

    def key(self, settings: Settings) -> str:
        """Name of the cache entry: everything that decides the compiled bytes."""
        data, _, _ = importer.read_bytes(self._model)
        self._held = data
        self._digest = _digest(_serialized(self._model) if data is None else data)
        constants = {
            name: (str(array.dtype), array.shape, _digest(np.ascontiguousarray(array)))
            for name, array in sorted(self._constants.items())
        }
        parts = (
            self._digest,
            sorted(self._shapes.items()),
            constants,
            settings.backend.identity,
            settings.numerics,
            settings.memory_limit,
            settings.options.skip_passes,
            compiler_version(),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest() + ".model"

    def forget_bytes(self) -> None:
        """The file's bytes are not needed: should the model be imported after all, it is read again."""
        self._held = None

    def _open(self) -> ModelFile:
        name, folder = importer.locate(self._model)
        data, self._held = self._held, None
        if data is None:
            data, _, _ = importer.read_bytes(self._model)
            if data is not None and self._digest is not None and _digest(data) != self._digest:
                raise ModelError(
                    "the model file was changed after it was compiled", file=name, remedy="compile it again"
                )
        return importer.parse_model(self._model if data is None else data, name, folder)

    def external_files(self) -> tuple[tuple[str, str], ...]:
        """Path and digest of every file with external data, as of the last import."""
        _, folder = importer.locate(self._model)
        if folder is None:
            return ()
        return tuple((location, _digest((folder / location).read_bytes())) for location in self._locations)

    def has_files(self, files: tuple[tuple[str, str], ...]) -> bool:
        """Whether the files with external data are there and unchanged."""
        if not files:
            return True
        _, folder = importer.locate(self._model)
        if folder is None:
            return False
        return all(_file_digest(folder / location) == digest for location, digest in files)


def _extents(name: str, shape: Sequence[int]) -> Shape:
    if any(isinstance(extent, bool) or not isinstance(extent, int | np.integer) or extent < 0 for extent in shape):
        raise InputError(f"shape of {name!r} cannot be read", expected="integers, 0 or more", found=list(shape))
    return tuple(int(extent) for extent in shape)


def _serialized(model: Any) -> bytes:
    if not hasattr(model, "SerializeToString"):
        raise ModelError("not a model", expected="a path, bytes or an onnx.ModelProto", found=type(model).__name__)
    serialized: bytes = model.SerializeToString(deterministic=True)
    return serialized


def _digest(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()


def _file_digest(path: Path) -> str | None:
    try:
        return _digest(path.read_bytes())
    except OSError:
        return None
