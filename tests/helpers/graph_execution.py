"""Graphs run without a model file: as machine code of any target, and by the interpreter with all its checks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glowstone.api.compiling import compile_engine, make_settings
from glowstone.api.model import Model
from glowstone.backends.cpu.native.emit import emit_run_loop
from glowstone.backends.cpu.target import Target
from glowstone.backends.interpreter import Interpreter, InterpreterBackend
from glowstone.compiler import Plan, Settings, compile_template, plan_shape
from glowstone.graph import Graph, rebuild
from glowstone.options import Options
from glowstone.runtime.kernel_library import KernelLibrary
from glowstone.runtime.native import NativeCode, native_code

Arrays = dict[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]
MEMORY_LIMIT = 1 << 30


class GraphSource:
    """Stands where the compiler expects a model: gives copies of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def graph(self, shapes: Shapes | None = None, known: Mapping[str, np.ndarray] | None = None) -> Graph:
        return rebuild(self._graph, shapes)

    def graph_once(self, graph: Graph) -> Callable[[Shapes, Mapping[str, np.ndarray]], Graph]:
        return self.graph


class OneObject:
    """A store of kernels that were compiled together."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def get(self, symbol: str) -> bytes | None:
        return self._content if symbol.encode() in self._content else None

    def put(self, symbol: str, content: bytes) -> None:
        """Nothing is kept."""


@functools.cache
def _run_loop() -> NativeCode:
    return native_code(lambda: emit_run_loop(Target.host()))


def compile_graph(
    graph: Graph,
    *,
    target: Target | None = None,
    numerics: str = "relaxed",
    skip_passes: Sequence[str] = (),
    library: KernelLibrary | None = None,
    check: bool = True,
) -> Model:
    """The graph as machine code, every pass checked; `library` shares kernels between graphs of one target."""
    target = target or Target.host()
    settings = make_settings(target, numerics, Options(check=check, skip_passes=tuple(skip_passes)), MEMORY_LIMIT)
    engine = compile_engine(GraphSource(graph), settings, library or KernelLibrary(target), None)  # type: ignore[arg-type]
    return Model(engine, target, _run_loop(), threads=1)


def plan_graph(graph: Graph, target: Target) -> Plan:
    """All of compilation but the machine code."""
    settings = make_settings(target, "relaxed", Options(), MEMORY_LIMIT)
    return plan_shape(compile_template(graph, {}, settings), None, settings)


def interpret_graph(graph: Graph, inputs: Mapping[str, np.ndarray]) -> Arrays:
    """Compiled for the interpreter and run in NumPy: padding and the use of memory are checked."""
    settings = Settings(InterpreterBackend())
    plan = plan_shape(compile_template(graph, {}, settings), None, settings)
    results = Interpreter(plan.program, plan.memory).run(inputs)
    return {name.removeprefix("out."): array for name, array in results.items()}
