"""Templates and plans of one model: what turns a shape into something that runs.

A template is chosen by the shape alone, never by the history of calls: first the one at the reference shape, then one
at the canonical shape of the call's class (extents 0, 1 or more), then one at the very shape. Where values of inputs
decide shapes, they are part of what is called the shape here.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from glowstone.api.bundling import write_executable_bundle
from glowstone.api.engine import Call, Engine, Shapes, Signature
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.target import Target
from glowstone.compiler import Plan, Settings, Template, compile_template, plan_shape
from glowstone.errors import GlowstoneError, LimitError
from glowstone.graph import Graph
from glowstone.graph.operator import Array
from glowstone.lir import BufferKind
from glowstone.runtime.arena import Bytes, aligned_bytes
from glowstone.runtime.executable import Argument, Executable
from glowstone.runtime.kernel_library import Progress
from glowstone.runtime.operating_system import release_free_memory
from glowstone.runtime.runner import prepare
from glowstone.support.budget import budget, limited
from glowstone.table import FIRST_ARGUMENT_BASE
from glowstone.types import Shape

Import = Callable[[Mapping[str, Shape], Mapping[str, Array]], Graph]
"""Imports at shapes of inputs, and values of those that decide shapes, by name."""

PLANS_BETWEEN_COLLECTIONS = 32
"""What a plan was made from is full of cycles; Python by itself may leave it until it is a quarter of all objects."""
MOST_TEMPLATES = 16
"""Templates kept besides that of the reference shape; the oldest go."""


@dataclass(eq=False)
class Ready:
    """A template with the block of weights that its plans share."""

    template: Template
    block: Bytes


class Saved(Protocol):
    """What the cache held of a template."""

    keys: list[KernelKey]

    def ready(self) -> Ready:
        """The template."""


class Maker:
    """Makes executables for an engine. `source` gives the graph imported at shapes, for the first template and others:
    what a condition on shapes leaves out of one graph may be part of another.
    """

    def __init__(self, engine: Engine, source: Import, settings: Settings) -> None:
        self.settings = settings
        self._engine = engine
        self._source = source
        self._plan: Plan | None = None
        self._saved: Saved | None = None
        self._templates: dict[Call, Callable[[], Ready] | Ready] = {}

    def executable(self, call: Call, progress: Progress | None) -> Executable:
        """What runs a call.

        Raises:
            GlowstoneError: the model cannot have these shapes, or planned memory is above the limit.
        """
        with limited(self.settings.options):
            return self._made(call, progress)

    def _made(self, call: Call, progress: Progress | None) -> Executable:
        engine = self._engine
        failure: GlowstoneError | None = None
        shapes, values = call
        for at in dict.fromkeys((engine.reference_call, (self._canonical(shapes), values), call)):
            try:
                ready = self.ready_template(at)
                plan = plan_shape(ready.template, self._named(shapes), self.settings, self._known(call))
            except LimitError:
                raise
            except GlowstoneError as error:  # a guard of this template fails: the next candidate
                failure = error
                continue
            engine.counters.plans += 1
            if call == engine.reference_call:
                self._plan = plan
            executable = self._executable(plan, ready.block, progress)
            del plan
            if engine.counters.plans % PLANS_BETWEEN_COLLECTIONS == 0:
                gc.collect()
                release_free_memory()
            return executable
        assert failure is not None
        raise failure

    def ready_template(self, at: Call) -> Ready:
        """The template made for a call; compiled on first use, together with its block of weights."""
        entry = self._templates.get(at)
        if entry is None:
            entry = self._compile(at)
        elif callable(entry):
            entry = entry()
        self._templates[at] = entry
        if len(self._templates) > 1 + MOST_TEMPLATES:
            del self._templates[next(call for call in self._templates if call != self._engine.reference_call)]
        return entry

    def adopt(self, saved: Saved) -> None:
        """Take the template of the reference shape and the kernel keys, which the cache held."""
        self._saved = saved
        self._templates[self._engine.reference_call] = saved.ready

    def saved_keys(self) -> Sequence[KernelKey]:
        """Keys of the kernels that came from the cache, by index."""
        return () if self._saved is None else self._saved.keys

    def reference_plan(self) -> Plan:
        """The plan at the reference shape."""
        if self._plan is None:
            call = self._engine.reference_call
            ready = self.ready_template(call)
            self._plan = plan_shape(ready.template, self._named(call[0]), self.settings, self._known(call))
        return self._plan

    def write_bundle(self, target: Target, folder: Path, name: str) -> tuple[Path, Path]:
        """See `Model.write_bundle`."""
        engine = self._engine
        keys = tuple(key for _, _, key in engine.library.objects())
        return write_executable_bundle(engine.executable(engine.reference), keys, target, folder, name)

    def _compile(self, at: Call) -> Ready:
        """The full pipeline. Planning once at the template's own shape settles which constants there are."""
        self._engine.counters.pipeline_runs += 1
        known = self._known(at)
        source = self._source(self._named(at[0]), known)
        template = compile_template(source, self._named(at[0]), self.settings, known)
        plan_shape(template, None, self.settings)
        with self.settings.stage("pack constants"):
            budget().take_bytes(template.constants.bytes, "the weights as the code reads them")
            block = aligned_bytes(template.constants.bytes)
            template.constants.freeze(block)
        self._engine.counters.templates += 1
        return Ready(template, block)

    def _dump_kernels(self, plan: Plan) -> None:
        dump = self.settings.dump
        for key in plan.keys if dump.is_on else ():
            for ending, text in self.settings.backend.kernel_texts(key).items():
                dump.write(f"{getattr(key, 'symbol', 'kernel')}{ending}", text)

    def _canonical(self, shapes: Shapes) -> Shapes:
        """The reference shape with the extents that are 0 or 1 in `shapes` set to those."""
        engine = self._engine
        return tuple(
            tuple(
                extent if extent <= 1 or not isinstance(dimension, str) else max(reference, 2)
                for extent, reference, dimension in zip(shape, reference_shape, dims, strict=True)
            )
            for shape, reference_shape, (_, _, dims) in zip(
                shapes, engine.reference, engine.signature.inputs, strict=True
            )
        )

    def _named(self, shapes: Shapes) -> Mapping[str, Shape]:
        names = [name for name, _, _ in self._engine.signature.inputs]
        return dict(zip(names, shapes, strict=True))

    def _known(self, call: Call) -> Mapping[str, Array]:
        """Values of the deciding inputs, by name."""
        known = {}
        for number, elements in zip(self._engine.deciding, call[1], strict=True):
            name, element, _ = self._engine.signature.inputs[number]
            known[name] = np.frombuffer(elements, element.dtype).reshape(call[0][number])
        return known

    def _executable(self, plan: Plan, block: Bytes, progress: Progress | None) -> Executable:
        library = self._engine.library
        with self.settings.stage("kernels"):
            indices = library.indices(plan.keys, progress)
            self._dump_kernels(plan)
        with self.settings.stage("encode"):
            words = plan.encode(indices)
            inputs, outputs = _arguments(plan)
            bases = FIRST_ARGUMENT_BASE + len(inputs) + len(outputs)
            table = prepare(words, library.addresses, bases, library.keep_alive)
        return Executable(
            table,
            block,
            _plan_constants(plan),
            plan.addresses.arena_bytes,
            inputs,
            outputs,
            tuple(instruction.names for instruction in plan.instructions),
            tuple(instruction.operation.name for instruction in plan.instructions),
        )


def signature_of(graph: Graph) -> Signature:
    """Inputs and outputs as the model declares them."""
    return Signature(
        tuple((value.name, value.element, dims) for value, dims in zip(graph.inputs, graph.dimensions, strict=True)),
        tuple(
            (name, value.element, dims)
            for name, value, dims in zip(graph.output_names, graph.outputs, graph.output_dimensions, strict=True)
        ),
    )


def _arguments(plan: Plan) -> tuple[tuple[Argument, ...], tuple[Argument, ...]]:
    inputs = tuple(Argument(buffer.name, buffer.element.dtype, buffer.shape) for buffer in plan.program.inputs)
    outputs = tuple(
        Argument(buffer.name.removeprefix("out."), buffer.element.dtype, buffer.shape)
        for buffer in plan.program.outputs
    )
    return inputs, outputs


def _plan_constants(plan: Plan) -> Bytes:
    budget().take_bytes(plan.addresses.plan_constant_bytes, "the constants of one shape")
    block = aligned_bytes(plan.addresses.plan_constant_bytes)
    block[:] = 0
    for buffer in plan.program.buffers_of(BufferKind.PLAN_CONSTANT):
        assert buffer.data is not None
        start = plan.addresses.addresses[buffer].offset
        block[start : start + buffer.bytes].view(buffer.element.dtype)[:] = buffer.data.reshape(-1)
    return block
