"""The stages that a graph goes through, and each pass by its name.

In: a model, or the text of a graph or program. Out: the graph at a stage, or the text after the passes named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from glowstone import importer
from glowstone.api.machine import host_target, open_cache
from glowstone.backends.cpu.backend import CpuBackend
from glowstone.compiler import lower
from glowstone.errors import InputError
from glowstone.graph import Graph, Tensor, parse_graph, print_graph, verify_graph
from glowstone.graph.printer import HEADER as GRAPH_HEADER
from glowstone.graph_passes import CANONICAL, LOWERED
from glowstone.lir import Program
from glowstone.lir.parser import parse_program
from glowstone.lir.printer import HEADER as PROGRAM_HEADER
from glowstone.lir.printer import print_program
from glowstone.lir.verifier import verify_program
from glowstone.lir_passes.pipeline import low_level_passes
from glowstone.options import Options
from glowstone.support.model_source import ModelSource
from glowstone.support.pass_manager import FixedPoint, Pass, PassManager, Step
from glowstone.types import GivenShapes

IR = TypeVar("IR")

STAGES: Final = ("imported", "canonical", "lowered", "compiled")
"""As imported; after the passes for every backend; after lowering; fused and laid out for this machine."""


def graph_at_stage(model: ModelSource, shapes: GivenShapes, stage: str) -> Graph:
    """The graph of a model at one of `STAGES`.

    Raises:
        GlowstoneError: the model is not valid, or cannot have these shapes.
    """
    graph = importer.import_model(importer.open_model(model), shapes)
    manager = PassManager("graph", verify=verify_graph, print=print_graph, parts=Graph.nested)
    for name, passes in graph_passes_by_stage().items():
        manager.run(graph, passes)
        if name == stage:
            break
    return graph


def graph_passes_by_stage() -> dict[str, Sequence[Pass[Graph]]]:
    """The passes that lead to each stage from the one before."""
    compiled = tuple(_backend().graph_passes())
    return {"imported": (), "canonical": CANONICAL, "lowered": (lower, *LOWERED), "compiled": compiled}


def run_passes(text: str, passes: Sequence[str], tensors: Mapping[str, Tensor]) -> str:
    """The text after the passes named, in this order, each checked.

    Args:
        text: of a graph or a program, as the first word says.
        passes: names of passes, or of groups that repeat.
        tensors: large constants of a graph by printed digest.

    Raises:
        ParseError: the text cannot be read.
        InputError: it is neither, or there is no such pass.
        InternalError: a pass failed; the error carries the text before it.
    """
    word = text.split(None, 1)[0] if text.strip() else ""
    if word == GRAPH_HEADER:
        graph = parse_graph(text, tensors)
        known: dict[str, Step[Graph]] = {
            one.__name__: one for group in graph_passes_by_stage().values() for one in group
        }
        return _run(graph, passes, known, verify_graph, print_graph, Graph.nested)
    if word == PROGRAM_HEADER:
        return _run(parse_program(text), passes, program_passes(), verify_program, print_program)
    raise InputError("not the text of a graph or program", expected=f"{GRAPH_HEADER} or {PROGRAM_HEADER}", found=word)


def _backend() -> CpuBackend:
    return CpuBackend(host_target(open_cache(Options.resolve())))


def program_passes() -> dict[str, Step[Program]]:
    """The low-level passes, and the groups that repeat, by name."""
    known: dict[str, Step[Program]] = {}
    for step in low_level_passes(_backend().program_passes()):
        if isinstance(step, FixedPoint):
            known[step.name] = step
            known.update((member.__name__, member) for member in step.passes)
        else:
            known[step.__name__] = step
    return known


def _run(
    ir: IR,
    passes: Sequence[str],
    known: Mapping[str, Step[IR]],
    verify: Callable[[IR], None],
    print: Callable[[IR], str],
    parts: Callable[[IR], Iterable[IR]] | None = None,
) -> str:
    unknown = [name for name in passes if name not in known]
    if unknown:
        raise InputError(f"no pass {unknown[0]!r}", expected=", ".join(known), found=unknown[0])
    manager = PassManager("passes", verify=verify, print=print, checked=True, parts=parts)
    manager.run(ir, [known[name] for name in passes])
    return print(ir)
