"""The straight line: from an imported graph to a template, and from a template to the plan of one shape.

    source graph -> canonical -> legal -> laid out        `compile_template`, once per model (or per failed guard)
    template at a shape -> program -> planned -> encoded  `plan_shape`, once per shape

In: a `Graph` from the importer. Out: `Template`, then `Plan`s that all share the template's constants.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from glowstone.backends.backend import Backend, is_legal
from glowstone.errors import InputError
from glowstone.graph import Graph, Node, print_graph, rebuild, verify_graph
from glowstone.graph.operator import Array
from glowstone.graph_passes import CANONICAL, LOWERED, RELAXED_ONLY
from glowstone.irgen import ConstantPool, Generator, schedule
from glowstone.lir import Instruction, Program
from glowstone.lir.printer import print_program
from glowstone.lir.table import TableEntry, encode, plan_calls
from glowstone.lir.verifier import verify_program
from glowstone.lir_passes.pipeline import low_level_passes
from glowstone.lowering import check_legal, decompose
from glowstone.memory import AddressMap, MemoryPlan, assign_addresses, check_plan, plan_memory
from glowstone.options import Options
from glowstone.support.pass_manager import Dump, PassManager, step_names
from glowstone.support.stage_dump import StageDump
from glowstone.table import NO_CALL, KernelCall, Words
from glowstone.types import Shape

logger = logging.getLogger("glowstone")


@dataclass
class Settings:
    """What decides how a model is compiled, besides the model and its shapes; and where time goes.

    Raises:
        InputError: the options leave out a pass that there is not.
    """

    backend: Backend
    numerics: str = "relaxed"
    options: Options = field(default_factory=Options)
    memory_limit: int | None = None
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds by stage, added up over all compilations of the model."""
    passes: dict[str, float] = field(default_factory=dict)
    """Seconds by pass, added up likewise."""
    dump: StageDump = field(init=False)

    def __post_init__(self) -> None:
        _check_passes(self.options.skip_passes, self.backend)
        self.dump = StageDump(self.options.dump)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
        self.stages[name] = self.stages.get(name, 0.0) + seconds
        logger.debug("%s: %.1f ms", name, 1000 * seconds)

    @property
    def skipped(self) -> frozenset[str]:
        """Names of passes to leave out."""
        skipped = frozenset(self.options.skip_passes)
        return skipped | RELAXED_ONLY if self.numerics == "strict" else skipped


@dataclass(eq=False)
class Template:
    """A model compiled at a reference shape, up to the last graph pass. Immutable after `plan_shape` at that shape."""

    graph: Graph
    order: tuple[int, ...]
    """Positions in `graph.nodes`, in the order of execution: chosen at the reference shape, for all shapes."""
    constants: ConstantPool


@dataclass(eq=False)
class Plan:
    """A template at one shape, ready to encode: the program, where everything lies, and what the backend calls."""

    program: Program
    memory: MemoryPlan
    addresses: AddressMap
    instructions: list[Instruction]
    calls: list[KernelCall]

    def encode(self, kernels: Mapping[object, int]) -> Words:
        """The table of calls, given the index of every kernel key."""
        entries = [
            TableEntry(instruction, call, kernels.get(call.key, 0))
            for instruction, call in zip(self.instructions, self.calls, strict=True)
        ]
        return encode(entries, self.addresses.addresses)

    @property
    def keys(self) -> list[object]:
        """The distinct kernel keys, in order of first use."""
        return list(dict.fromkeys(call.key for call in self.calls if call is not NO_CALL))


def compile_template(
    source: Graph, shapes: Mapping[str, Shape], settings: Settings, known: Mapping[str, Array] | None = None
) -> Template:
    """Run every graph stage at the reference shape. The source graph is left as it is.

    `known` are values of inputs that decide shapes, by name.

    Raises:
        GlowstoneError: the model cannot have these shapes, or the backend cannot run it.
    """
    backend = settings.backend
    with settings.stage("infer"):
        graph = rebuild(source, shapes, known)
    if settings.dump.is_on:
        settings.dump.write("imported.ir", print_graph(graph))
    manager = _graph_manager(settings)
    with settings.stage("graph passes"):
        manager.run(graph, CANONICAL)
    with settings.stage("lowering"):
        manager.run(graph, [lower])
        check_legal(graph, lambda node: is_legal(backend, node), backend.name)
        manager.run(graph, LOWERED)
    with settings.stage("backend passes"):
        manager.run(graph, backend.graph_passes())
    with settings.stage("schedule"):
        position = {node: index for index, node in enumerate(graph.nodes)}
        order = tuple(position[node] for node in schedule(graph))
    return Template(graph, order, ConstantPool())


def plan_shape(
    template: Template,
    shapes: Mapping[str, Shape] | None,
    settings: Settings,
    known: Mapping[str, Array] | None = None,
) -> Plan:
    """From the template to a plan of one shape: infer again, schedule and generate, optimize, place in memory.

    `known` are values of inputs that decide shapes, by name. Without shapes the plan is that of the template itself.

    Raises:
        GlowstoneError: an operator of the template refuses the shape (a guard of the template fails), or planned memory
            is above the limit.
    """
    with settings.stage("specialize"):
        graph = template.graph if shapes is None else rebuild(template.graph, shapes, known)
    with settings.stage("generate"):
        nodes = graph.nodes
        order = [nodes[index] for index in template.order]
        program = Generator(graph, order, settings.backend.rules, template.constants).run()
    with settings.stage("low-level passes"):
        _program_manager(settings).run(program, low_level_passes(settings.backend.program_passes()))
    with settings.stage("memory"):
        memory = plan_memory(program, limit=settings.memory_limit)
        if settings.options.check:
            check_plan(program, memory)
        addresses = assign_addresses(program, memory, template.constants.offsets())
    with settings.stage("select kernels"):
        instructions = list(program.instructions())
        calls = plan_calls(settings.backend.planner.plan, instructions)
    plan = Plan(program, memory, addresses, instructions, calls)
    if settings.dump.is_on:
        settings.dump.write("program.ir", print_program(program))
        settings.dump.write("memory_plan.txt", _print_plan(plan))
    return plan


def optional_passes(backend: Backend) -> tuple[str, ...]:
    """Every name that the option `skip_passes` knows, in the order of the pipelines: passes, and groups that repeat."""
    names = [one.__name__ for one in (*CANONICAL, *LOWERED, *backend.graph_passes())]
    names += [name for step in low_level_passes(backend.program_passes()) for name in step_names(step)]
    return tuple(dict.fromkeys(names))


def _check_passes(names: Sequence[str], backend: Backend) -> None:
    known = optional_passes(backend) if names else ()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            f"option skip_passes names unknown passes {', '.join(map(repr, unknown))}",
            expected=", ".join(known),
            found=unknown[0],
        )


def lower(graph: Graph) -> bool:
    """Decompose everything that has a decomposition: what is left is primitive."""
    return decompose(graph, _is_primitive)


def _is_primitive(node: Node) -> bool:
    return not node.operands


def _graph_manager(settings: Settings) -> PassManager[Graph]:
    return PassManager(
        "graph",
        verify=verify_graph,
        print=print_graph,
        checked=settings.options.check,
        dump=_dump(settings.dump, "graph"),
        skip=settings.skipped,
        timings=settings.passes,
        parts=Graph.nested,
    )


def _program_manager(settings: Settings) -> PassManager[Program]:
    return PassManager(
        "program",
        verify=verify_program,
        print=print_program,
        checked=settings.options.check,
        dump=_dump(settings.dump, "program"),
        skip=settings.skipped,
        timings=settings.passes,
    )


def _dump(dump: StageDump, kind: str) -> Dump | None:
    """What a pass manager calls after every pass that changed something."""
    if not dump.is_on:
        return None
    return lambda _, name, text: dump.write(f"{kind}_{name}.ir", text)


def _print_plan(plan: Plan) -> str:
    """Offset, size and name of every activation buffer, and the arena against its bound."""
    offsets = sorted(plan.memory.offsets.items(), key=lambda entry: (entry[1], entry[0].name))
    lines = [f"{offset:>12} {buffer.bytes:>12} {buffer.name}" for buffer, offset in offsets]
    return "\n".join([f"arena {plan.memory.arena_bytes} bytes, bound {plan.memory.bound}", *lines, ""])
