"""An address for every buffer of a program.

In: a program and its memory plan. Out: base number and byte offset per buffer, as the table of calls wants them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from glowstone.errors import InternalError
from glowstone.lir.buffer import Buffer, BufferKind
from glowstone.lir.program import Program
from glowstone.memory.planner import ALIGNMENT, MemoryPlan
from glowstone.table import BASE_ARENA, BASE_CONSTANTS, BASE_PLAN_CONSTANTS, FIRST_ARGUMENT_BASE, Address


@dataclass(frozen=True)
class AddressMap:
    """Addresses, and how many bytes stand behind the bases that are not arguments."""

    addresses: dict[Buffer, Address]
    constant_bytes: int
    plan_constant_bytes: int
    arena_bytes: int


def assign_addresses(
    program: Program, plan: MemoryPlan, constant_offsets: Mapping[Buffer, int] | None = None
) -> AddressMap:
    """Constants at the offsets given, else one after another in order of first mention; activations as planned; a base
    per input and output.
    """
    addresses = {buffer: Address(BASE_ARENA, offset) for buffer, offset in plan.offsets.items()}
    ends = {BASE_CONSTANTS: 0, BASE_PLAN_CONSTANTS: 0}
    for buffer, offset in (constant_offsets or {}).items():
        addresses[buffer] = Address(BASE_CONSTANTS, offset)
        ends[BASE_CONSTANTS] = max(ends[BASE_CONSTANTS], offset + buffer.bytes)
    for base, buffer in enumerate([*program.inputs, *program.outputs], FIRST_ARGUMENT_BASE):
        addresses[buffer] = Address(base, 0)
    kinds = {BufferKind.CONSTANT: BASE_CONSTANTS, BufferKind.PLAN_CONSTANT: BASE_PLAN_CONSTANTS}
    for buffer in program.buffers():
        if buffer in addresses:
            continue
        if buffer.kind in kinds:
            base = kinds[buffer.kind]
            addresses[buffer] = Address(base, ends[base])
            ends[base] += -(-buffer.bytes // ALIGNMENT) * ALIGNMENT
        else:
            raise InternalError(f"no base for {buffer.kind.value} buffer {buffer.name}")
    return AddressMap(addresses, ends[BASE_CONSTANTS], ends[BASE_PLAN_CONSTANTS], plan.arena_bytes)
