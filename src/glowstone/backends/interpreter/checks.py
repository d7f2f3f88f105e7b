"""What the interpreter checks and poisons around every instruction.

Memory that a program may not rely on holds 0xFF bytes: NaN in every float type, -1 or the largest value in integers.
So a read of what was never written, or of a buffer after its last use, shows in the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.backends.interpreter.executor import Bytes
from glowstone.errors import InternalError
from glowstone.lir.buffer import Buffer, BufferKind, View
from glowstone.lir.instruction import Instruction
from glowstone.lir.program import Dealloc, Program
from glowstone.table import BASE_ARENA, Address

POISON = 0xFF

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class MemoryChecks:
    """Padding lanes and poison for the runs of one program."""

    def __init__(self, program: Program, addresses: dict[Buffer, Address], bases: Sequence[Bytes]) -> None:
        self._instructions = list(program.instructions())
        self._addresses = addresses
        self._bases = bases
        self._dying = _dying_buffers(program)
        self._masks: dict[Buffer, Mask] = {}

    def poison_all(self, outputs: Sequence[Buffer]) -> None:
        """Before a run: the whole arena and the outputs."""
        self._bases[BASE_ARENA][:] = POISON
        for buffer in outputs:
            self._bytes(buffer)[:] = POISON

    def check_inputs(self, number: int) -> None:
        """Before an instruction: padding lanes that it reads are zero.

        Raises:
            InternalError: one is not.
        """
        instruction = self._instructions[number]
        self._check_padding(number, instruction, instruction.inputs)

    def check_outputs(self, number: int) -> None:
        """After an instruction: padding lanes that it wrote are zero.

        Raises:
            InternalError: one is not.
        """
        instruction = self._instructions[number]
        self._check_padding(number, instruction, instruction.outputs)

    def poison_dead(self, number: int) -> None:
        """After an instruction: the buffers that it was the last to use."""
        for buffer in self._dying.get(number, ()):
            self._bytes(buffer)[:] = POISON

    def _check_padding(self, number: int, instruction: Instruction, views: Sequence[View]) -> None:
        for view in views:
            if view.buffer.channels is None or not view.size:
                continue
            values = view.array(self._bytes(view.buffer).view(view.element.dtype))
            padding = view.array(self._mask(view.buffer))
            if np.any(values[padding] != 0):
                raise InternalError(
                    f"padding lanes of {view.buffer.name} are not zero",
                    node=", ".join(instruction.names) or None,
                    operator=f"instruction {number}, {instruction.operation.name}",
                    found=values[padding][values[padding] != 0][0],
                )

    def _mask(self, buffer: Buffer) -> Mask:
        """True for every padding element of a blocked buffer, flat."""
        if buffer not in self._masks:
            assert buffer.channels is not None
            blocks, lanes = buffer.shape[1], buffer.shape[-1]
            inner = (1,) * (len(buffer.shape) - 3)
            channel = np.arange(blocks * lanes).reshape(1, blocks, *inner, lanes)
            self._masks[buffer] = np.broadcast_to(channel >= buffer.channels, buffer.shape).reshape(-1)
        return self._masks[buffer]

    def _bytes(self, buffer: Buffer) -> Bytes:
        address = self._addresses[buffer]
        return self._bases[address.base][address.offset : address.offset + buffer.bytes]


def _dying_buffers(program: Program) -> dict[int, list[Buffer]]:
    """Activation buffers by the number of the instruction after which they are deallocated."""
    result: dict[int, list[Buffer]] = {}
    number = -1
    for statement in program.body:
        if isinstance(statement, Instruction):
            number += 1
        elif isinstance(statement, Dealloc) and statement.buffer.kind is BufferKind.ACTIVATION:
            result.setdefault(number, []).append(statement.buffer)
    return result
