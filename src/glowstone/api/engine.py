"""Templates and executables of one model: what turns a shape into something that runs.

A template is chosen by the shape alone, never by the history of calls: first the one at the reference shape, then one
at the canonical shape of the call's class (extents 0, 1 or more), then one at the very shape.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from glowstone.compiler import Plan, Settings, Template, compile_template, plan_shape
from glowstone.errors import GlowstoneError, LimitError
from glowstone.graph import Dimension, Graph
from glowstone.lir import BufferKind
from glowstone.lir.table import FIRST_ARGUMENT_BASE
from glowstone.runtime.arena import ArenaPool, Bytes, aligned_bytes
from glowstone.runtime.executable import Argument, Executable
from glowstone.runtime.fork import ForkSafeLock
from glowstone.runtime.kernel_library import KernelLibrary, Progress
from glowstone.runtime.runner import prepare
from glowstone.types import ElementType, Shape

MOST_EXECUTABLES = 32
"""Shapes kept ready; the least recently used go."""

Shapes = tuple[Shape, ...]
"""One shape per input, in order."""


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs as the model declares them: name, element type, dimensions (a text where symbolic)."""

    inputs: tuple[tuple[str, ElementType, tuple[Dimension, ...]], ...]
    outputs: tuple[tuple[str, ElementType, tuple[Dimension, ...]], ...]

    @staticmethod
    def of(graph: Graph) -> Signature:
        return Signature(
            tuple(
                (value.name, value.element, dims) for value, dims in zip(graph.inputs, graph.dimensions, strict=True)
            ),
            tuple(
                (name, value.element, dims)
                for name, value, dims in zip(graph.output_names, graph.outputs, graph.output_dimensions, strict=True)
            ),
        )

    @property
    def is_dynamic(self) -> bool:
        """Whether any input has a symbolic dimension."""
        return any(isinstance(dimension, str) for _, _, dims in self.inputs for dimension in dims)


@dataclass
class Counters:
    """What happened since the model was compiled or loaded."""

    templates: int = 0
    pipeline_runs: int = 0
    plans: int = 0


@dataclass(eq=False)
class Ready:
    """A template with the block of weights that its plans share."""

    template: Template
    block: Bytes


class Engine:
    """One model. `source` gives the imported graph again when a second template is needed."""

    def __init__(
        self,
        signature: Signature,
        reference: Shapes,
        source: Callable[[], Graph],
        settings: Settings,
        library: KernelLibrary,
    ) -> None:
        self.signature = signature
        self.reference = reference
        self.settings = settings
        self.library = library
        self.arenas = ArenaPool()
        self.counters = Counters()
        self.plans: dict[Shapes, Plan] = {}
        """The plan at the reference shape, kept for reports and bundles; absent after a load from the cache."""
        self._source = source
        self._templates: dict[Shapes, Callable[[], Ready] | Ready] = {}
        self._executables: OrderedDict[Shapes, Executable] = OrderedDict()
        self._lock = ForkSafeLock()

    def executable(self, shapes: Shapes, progress: Progress | None = None) -> Executable:
        """What runs these shapes; made on first use.

        Raises:
            GlowstoneError: the model cannot have these shapes, or planned memory is above the limit.
        """
        with self._lock:
            found = self._executables.get(shapes)
            if found is None:
                found = self._make(shapes, progress)
                self._executables[shapes] = found
                while len(self._executables) > MOST_EXECUTABLES:
                    self._executables.popitem(last=False)
            else:
                self._executables.move_to_end(shapes)
            return found

    def ready_template(self, at: Shapes) -> Ready:
        """The template made at these shapes; compiled on first use, together with its block of weights."""
        entry = self._templates.get(at)
        if entry is None:
            entry = self._compile(at)
        elif callable(entry):
            entry = entry()
        self._templates[at] = entry
        return entry

    def adopt(self, executable: Executable, template: Callable[[], Ready]) -> None:
        """Take what the cache held: the executable at the reference shape and, when it is wanted, its template."""
        self._executables[self.reference] = executable
        self._templates[self.reference] = template
        self.counters.templates += 1

    def reference_plan(self) -> Plan:
        """The plan at the reference shape, made again where the executable came from the cache."""
        with self._lock:
            if self.reference not in self.plans:
                ready = self.ready_template(self.reference)
                self.plans[self.reference] = plan_shape(ready.template, self._named(self.reference), self.settings)
            return self.plans[self.reference]

    def _make(self, shapes: Shapes, progress: Progress | None) -> Executable:
        failure: GlowstoneError | None = None
        for at in dict.fromkeys((self.reference, self._canonical(shapes), shapes)):
            try:
                ready = self.ready_template(at)
                plan = plan_shape(ready.template, self._named(shapes), self.settings)
            except LimitError:
                raise
            except GlowstoneError as error:  # a guard of this template fails: the next candidate
                failure = error
                continue
            self.counters.plans += 1
            if shapes == self.reference:
                self.plans[shapes] = plan
            return self._executable(plan, ready.block, progress)
        assert failure is not None
        raise failure

    def _compile(self, at: Shapes) -> Ready:
        """The full pipeline. Planning once at the template's own shape settles which constants there are."""
        self.counters.pipeline_runs += 1
        template = compile_template(self._source(), self._named(at), self.settings)
        plan_shape(template, None, self.settings)
        with self.settings.stage("pack constants"):
            block = aligned_bytes(template.constants.bytes)
            template.constants.freeze(block)
        self.counters.templates += 1
        return Ready(template, block)

    def _dump_kernels(self, plan: Plan) -> None:
        dump = self.settings.dump
        for key in plan.keys if dump.is_on else ():
            for ending, text in self.settings.backend.kernel_texts(key).items():
                dump.write(f"{getattr(key, 'symbol', 'kernel')}{ending}", text)

    def _canonical(self, shapes: Shapes) -> Shapes:
        """The reference shape with the extents that are 0 or 1 in `shapes` set to those."""
        return tuple(
            tuple(
                extent if extent <= 1 or not isinstance(dimension, str) else max(reference, 2)
                for extent, reference, dimension in zip(shape, reference_shape, dims, strict=True)
            )
            for shape, reference_shape, (_, _, dims) in zip(shapes, self.reference, self.signature.inputs, strict=True)
        )

    def _named(self, shapes: Shapes) -> Mapping[str, Shape]:
        return {name: shape for (name, _, _), shape in zip(self.signature.inputs, shapes, strict=True)}

    def _executable(self, plan: Plan, block: Bytes, progress: Progress | None) -> Executable:
        with self.settings.stage("kernels"):
            indices = self.library.indices(plan.keys, progress)
            self._dump_kernels(plan)
        with self.settings.stage("encode"):
            words = plan.encode(indices)
            inputs, outputs = _arguments(plan)
            bases = FIRST_ARGUMENT_BASE + len(inputs) + len(outputs)
            table = prepare(words, self.library.addresses, bases, self.library.keep_alive)
        return Executable(
            table,
            block,
            _plan_constants(plan),
            plan.addresses.arena_bytes,
            inputs,
            outputs,
            tuple(instruction.names for instruction in plan.instructions),
        )


def _arguments(plan: Plan) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
    inputs = tuple(Argument(buffer.name, buffer.element.dtype, buffer.shape) for buffer in plan.program.inputs)
    outputs = tuple(
        Argument(buffer.name.removeprefix("out."), buffer.element.dtype, buffer.shape)
        for buffer in plan.program.outputs
    )
    return inputs, outputs


def _plan_constants(plan: Plan) -> Bytes:
    block = aligned_bytes(plan.addresses.plan_constant_bytes)
    block[:] = 0
    for buffer in plan.program.buffers_of(BufferKind.PLAN_CONSTANT):
        assert buffer.data is not None
        start = plan.addresses.addresses[buffer].offset
        block[start : start + buffer.bytes].view(buffer.element.dtype)[:] = buffer.data.reshape(-1)
    return block


def shapes_of(named: Mapping[str, Shape], signature: Signature) -> Shapes:
    """Shapes by input name, in order."""
    return tuple(tuple(named[name]) for name, _, _ in signature.inputs)
