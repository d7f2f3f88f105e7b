"""The way through the compiler: engines that are compiled, and makers for engines that came from the cache.

Importing this module imports the whole compiler; `compilation.py` does so only when the cache has no answer.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping
from typing import Any

from glowstone import importer
from glowstone.api.engine import Engine
from glowstone.api.maker import Maker, signature_of
from glowstone.api.model import Model
from glowstone.api.saved_model import SavedModel
from glowstone.api.saved_template import SavedTemplate
from glowstone.api.source import Source
from glowstone.api.stepped_model import SteppedModel
from glowstone.api.steps import SteppedGraph
from glowstone.api.workshop import Workshop
from glowstone.backends.cpu.backend import CpuBackend
from glowstone.backends.cpu.compile_pool import CompilePool
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import Tuning
from glowstone.compiler import Settings
from glowstone.graph import Graph
from glowstone.options import Options
from glowstone.runtime.kernel_library import KernelLibrary, Progress
from glowstone.runtime.native import NativeCode
from glowstone.runtime.operating_system import release_free_memory
from glowstone.runtime.threads import default_threads
from glowstone.types import resolve_shapes

logger = logging.getLogger("glowstone")

LARGE_CONSTANTS = 1 << 20
"""Bytes of weights. With fewer, to look for memory that can be given back takes longer than it is worth."""
YOUNGEST = 0
"""Generation of all objects that were made while collection was paused."""
LEAST_NODES = 48
MOST_PROCESSES = 4
"""Each takes some 100 MB for as long as the compilation lasts."""


def make_settings(
    target: Target, numerics: str, options: Options, memory_limit: int, tuning: Tuning | None = None
) -> Settings:
    """How a model is compiled."""
    backend = CpuBackend(target, numerics == "strict", tuning or Tuning())
    return Settings(backend, numerics, options, memory_limit)


def compile_engine(source: Source, settings: Settings, library: KernelLibrary, progress: Progress | None) -> Engine:
    """Import the model and compile it at its reference shape.

    Raises:
        GlowstoneError: as `glowstone.compile`.
    """
    with settings.stage("import"):
        graph = source.graph()
    reference = tuple(value.shape for value in graph.inputs)
    graphs = source.graph_once(graph)
    engine = Engine(signature_of(graph), reference, library, lambda engine: Maker(engine, graphs, settings))
    processes = _processes(graph, settings.options)
    del graph
    with CompilePool(library.target, processes) as pool, library.compiling_in(pool):
        executable = engine.executable(reference, progress)
    if executable.constants.nbytes >= LARGE_CONSTANTS:
        gc.collect(YOUNGEST)  # graphs are full of cycles and hold the weights as the file has them
        release_free_memory()
    if settings.options.time_passes:
        for name, seconds in settings.passes.items():
            logger.info("pass %s: %.2f ms", name, 1000 * seconds)
    return engine


def _processes(graph: Graph, options: Options) -> int:
    """How many processes compile kernels: one for small models, whose kernels are ready before another has started."""
    if len(graph.nodes) < LEAST_NODES:
        return 1
    return options.compile_processes or default_threads(MOST_PROCESSES)


def compile_stepped(
    source: Source,
    settings: Settings,
    library: KernelLibrary,
    code: NativeCode,
    threads: int,
    whole: Callable[[Mapping[str, Any]], tuple[Model, Mapping[str, Any]]],
) -> Model:
    """A model that runs in steps; its parts are compiled when values first arrive there.

    Raises:
        GlowstoneError: the structure of the model is wrong, or it has operators that are not there.
    """
    file = source.file()
    importer.check_structure(file)
    inputs, outputs = importer.declared_ports(file)
    taken = [port for port in inputs if port.name not in source.constants]
    fixed = {
        port.name: source.constants[port.name].astype(port.dtype) for port in inputs if port.name in source.constants
    }
    graph = importer.FileGraph(file, file.proto.graph, None, fixed)
    reference = resolve_shapes(source.shapes, {port.name: port.dimensions for port in inputs}).shapes
    workshop = Workshop(settings, library, code, threads, reference)
    return SteppedModel((taken, outputs), SteppedGraph(graph, workshop), whole)


def maker_of_saved(source: Source, saved: SavedModel, settings: Callable[[], Settings]) -> Callable[[Engine], Maker]:
    """Makes the maker of an engine that came from the cache."""

    def make(engine: Engine) -> Maker:
        maker = Maker(engine, source.graph, settings())
        maker.adopt(SavedTemplate(saved.template, saved.block))
        return maker

    return make
