"""The table of calls: the byte form of a program that the interpreter, machine code and bundles share.

In: a program, an address for every buffer, and what the backend says of every instruction (`KernelCall`).
Out: an immutable array of little-endian int64 words. `glowstone/table.py` has its layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glowstone.lir.buffer import Buffer
from glowstone.lir.control_table import ControlEncoder
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations.control import Control
from glowstone.table import HEADER_WORDS, NO_CALL, WORDS, Address, KernelCall, Record, Words


@dataclass(frozen=True)
class TableEntry:
    """An instruction before encoding. Control instructions are no calls."""

    instruction: Instruction
    call: KernelCall
    kernel: int


def plan_calls(plan: Callable[[Instruction], KernelCall], instructions: Iterable[Instruction]) -> list[KernelCall]:
    """What a backend's `plan` says of every instruction; `NO_CALL` for those of control flow."""
    return [NO_CALL if isinstance(entry.operation, Control) else plan(entry) for entry in instructions]


def encode(entries: Sequence[TableEntry], addresses: Mapping[Buffer, Address]) -> Words:
    """Encode instructions in order, closed by an END record."""
    words: list[int] = []
    control = ControlEncoder(words, addresses)
    for number, entry in enumerate(entries):
        if entry.call is NO_CALL:
            control.add(entry.instruction)
        else:
            words.extend(_call_record(number, entry.instruction, entry.call, entry.kernel, addresses))
    words.extend((Record.END, 2))
    return np.array(words, dtype="<i8")


def _call_record(
    number: int, instruction: Instruction, call: KernelCall, kernel: int, addresses: Mapping[Buffer, Address]
) -> list[int]:
    record = [Record.CALL, 0, kernel, call.units, call.grain, call.scratch, call.cost, number]
    for view in instruction.operands:
        address = addresses[view.buffer]
        record += (address.base, address.offset + view.offset * view.element.size)
        record += view.shape
        record += view.strides
    record += instruction.integers
    record += call.derived
    record[WORDS] = len(record)
    return record


@dataclass(frozen=True)
class DecodedOperand:
    """An operand read back from a record: address, extents and strides (elements)."""

    address: Address
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def decode_operands(record: Words, ranks: Sequence[int]) -> tuple[list[DecodedOperand], tuple[int, ...]]:
    """The operands of a call record and the integers behind them (run-time, then derived)."""
    operands = []
    position = HEADER_WORDS
    for rank in ranks:
        base, offset = (int(word) for word in record[position : position + 2])
        extents = tuple(int(word) for word in record[position + 2 : position + 2 + rank])
        strides = tuple(int(word) for word in record[position + 2 + rank : position + 2 + 2 * rank])
        operands.append(DecodedOperand(Address(base, offset), extents, strides))
        position += 2 + 2 * rank
    return operands, tuple(int(word) for word in record[position : int(record[WORDS])])
