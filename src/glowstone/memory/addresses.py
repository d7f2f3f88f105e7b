"""An address for every buffer of a program.

In: a program and its memory plan. Out: base number and byte offset per buffer, as the table of calls wants them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from glowstone.errors import InternalError
from glowstone.lir.buffer import Buffer, BufferKind
from glowstone.lir.operations.control import LoopBegin
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
    per input, output and window.
    """
    addresses = {buffer: Address(BASE_ARENA, offset) for buffer, offset in plan.offsets.items()}
    ends = {BASE_CONSTANTS: 0, BASE_PLAN_CONSTANTS: 0}
    for buffer, offset in (constant_offsets or {}).items():
        addresses[buffer] = Address(BASE_CONSTANTS, offset)
        ends[BASE_CONSTANTS] = max(ends[BASE_CONSTANTS], offset + buffer.bytes)
    arguments = [*program.inputs, *program.outputs]
    addresses.update((buffer, Address(base, 0)) for base, buffer in enumerate(arguments, FIRST_ARGUMENT_BASE))
    kinds = {BufferKind.CONSTANT: BASE_CONSTANTS, BufferKind.PLAN_CONSTANT: BASE_PLAN_CONSTANTS}
    for buffer in program.buffers():
        if buffer in addresses or buffer.kind is BufferKind.WINDOW:
            continue
        if buffer.kind in kinds:
            base = kinds[buffer.kind]
            addresses[buffer] = Address(base, ends[base])
            ends[base] += -(-buffer.bytes // ALIGNMENT) * ALIGNMENT
        else:
            raise InternalError(f"no base for {buffer.kind.value} buffer {buffer.name}")
    _place_windows(program, addresses, FIRST_ARGUMENT_BASE + len(arguments))
    return AddressMap(addresses, ends[BASE_CONSTANTS], ends[BASE_PLAN_CONSTANTS], plan.arena_bytes)


def _place_windows(program: Program, addresses: dict[Buffer, Address], base: int) -> None:
    """Give every window a base, which the walk over the table moves, and the offset of its rows in theirs."""
    for instruction in program.instructions():
        operation = instruction.operation
        if not isinstance(operation, LoopBegin):
            continue
        for number in range(len(operation.windows)):
            first = operation.first_window + 2 * number
            window, rows = instruction.operands[first : first + 2]
            start = addresses[rows.buffer].offset + rows.offset * rows.element.size
            addresses[window.buffer] = Address(base, start)
            base += 1
