"""What the compiler did with a model, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from glowstone.api.engine import Engine
from glowstone.table import NO_CALL, KernelCall

if TYPE_CHECKING:
    from glowstone.compiler import Plan, Settings


def build_report(engine: Engine) -> dict[str, Any]:
    """Stages with seconds, kernels, memory, instructions at the reference shape, counters.

    A model that came from the cache is planned again here, so the report is complete either way.
    """
    plan = engine.reference_plan()
    instructions = [
        {
            "name": ", ".join(instruction.names),
            "operation": instruction.operation.name,
            "kernel": kernel_name(call),
            "algorithm": algorithm(call.key, instruction.operation.name),
            "cost_ns": call.cost,
            "units": call.units,
        }
        for instruction, call in zip(plan.instructions, plan.calls, strict=True)
    ]
    return {
        **_timings(engine.settings),
        "reference_shapes": {
            name: list(shape) for (name, _, _), shape in zip(engine.signature.inputs, engine.reference, strict=True)
        },
        "kernels": sorted({str(entry["kernel"]) for entry in instructions} - {""}),
        "memory": memory_report(plan, engine),
        "instructions": instructions,
        "counters": {**vars(engine.counters), "kernels_compiled": engine.library.compiled},
        "host_steps": 0,  # every instruction of a table is a generated kernel
    }


def plan_summary(parts: Sequence[Mapping[str, Any]], settings: Settings) -> dict[str, Any]:
    """The reports of parts as one: their instructions one after another, and the most memory that one of them needs."""
    names = ("arena_bytes", "bound_bytes", "constants_bytes", "plan_constants_bytes", "scratch_bytes_per_thread")
    join = {"constants_bytes": sum, "plan_constants_bytes": sum}
    return {
        **_timings(settings),
        "kernels": sorted({kernel for part in parts for kernel in part["kernels"]}),
        "memory": {name: join.get(name, max)([0, *(part["memory"][name] for part in parts)]) for name in names},
        "instructions": [entry for part in parts for entry in part["instructions"]],
    }


def _timings(settings: Settings) -> dict[str, Any]:
    return {
        "backend": settings.backend.name,
        "stages": [{"name": name, "seconds": seconds} for name, seconds in settings.stages.items()],
        "passes": [{"name": name, "seconds": seconds} for name, seconds in settings.passes.items()],
    }


def memory_report(plan: Plan, engine: Engine) -> dict[str, int]:
    """Bytes of the arena and its bound, of weights, and of scratch per thread."""
    return {
        "arena_bytes": plan.memory.arena_bytes,
        "bound_bytes": plan.memory.bound,
        "constants_bytes": plan.addresses.constant_bytes,
        "plan_constants_bytes": plan.addresses.plan_constant_bytes,
        "scratch_bytes_per_thread": max((call.scratch for call in plan.calls), default=0),
    }


def kernel_name(call: KernelCall) -> str:
    """The symbol of the kernel that a call runs; empty for control flow, which runs none."""
    return "" if call is NO_CALL else str(getattr(call.key, "symbol", call.key))


def algorithm(key: object, operation: str) -> str:
    """A word or two for how the kernel works: the operation with the variant that was chosen."""
    variant = getattr(key, "variant", ())
    return " ".join([operation, *map(str, variant)]) if variant else operation
