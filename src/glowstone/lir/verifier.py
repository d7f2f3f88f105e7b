"""What must hold of every program.

In: a program. Out: nothing, or `VerificationError` that names the statement.
"""

from __future__ import annotations

from collections.abc import Iterator

from glowstone.errors import GlowstoneError
from glowstone.lir.buffer import Buffer, BufferKind, View
from glowstone.lir.control_flow import verify_regions
from glowstone.lir.instruction import Instruction
from glowstone.lir.operation import Access
from glowstone.lir.operations.control import Control
from glowstone.lir.overlap import is_injective, overlaps, same_elements
from glowstone.lir.program import Alloc, Dealloc, Program

_UNDEFINED_AT_FIRST = (BufferKind.ACTIVATION, BufferKind.OUTPUT)


class VerificationError(GlowstoneError, ValueError):
    """A program breaks a rule of the low-level representation."""


def verify_program(program: Program) -> None:
    """Check instructions, lifetimes, aliasing and that nothing is read before it is written.

    Raises:
        VerificationError: the first rule broken; `node` says which statement.
    """
    _verify_arguments(program)
    try:
        verify_regions(list(program.instructions()))
    except ValueError as error:
        raise VerificationError(str(error)) from error
    state = _Walk()
    for number, statement in enumerate(program.body):
        try:
            if isinstance(statement, Alloc):
                state.alloc(statement.buffer)
            elif isinstance(statement, Dealloc):
                state.dealloc(statement.buffer)
            else:
                state.execute(statement)
        except ValueError as error:
            raise VerificationError(str(error), node=_place(number, statement)) from error
    if state.live:
        names = ", ".join(buffer.name for buffer in state.live)
        raise VerificationError("activation buffers without dealloc", found=names)
    for buffer in program.outputs:
        if buffer.size and buffer not in state.written:
            raise VerificationError("an output is never written", found=buffer.name)


def verify_aliasing(instruction: Instruction) -> None:
    """An output may share memory with an input only as exactly the same view and where the operation allows it.

    Raises:
        ValueError: two operands overlap that must not, or an output names an element twice.
    """
    outputs, inputs = _numbered(instruction, writes=True), _numbered(instruction, writes=False)
    allowed = set(instruction.operation.in_place)
    for place, (number, output) in enumerate(outputs):
        if not is_injective(output):
            raise ValueError(f"output {output} names an element twice")
        for other_number, other in outputs[place + 1 :]:
            if overlaps(output, other):
                raise ValueError(f"outputs {number} and {other_number} overlap: {output} and {other}")
        for input_number, source in inputs:
            if overlaps(output, source):
                if not same_elements(output, source):
                    raise ValueError(f"output {output} overlaps input {source}")
                if (number, input_number) not in allowed:
                    raise ValueError(f"output {number} may not be in place of input {input_number}: {output}")


def _numbered(instruction: Instruction, *, writes: bool) -> list[tuple[int, View]]:
    """Operands that are written, or those only read, with their numbers."""
    operands = enumerate(instruction.accessed())
    return [(number, view) for number, (view, access) in operands if access.writes is writes]


def _verify_arguments(program: Program) -> None:
    for kind, buffers in ((BufferKind.INPUT, program.inputs), (BufferKind.OUTPUT, program.outputs)):
        for buffer in buffers:
            if buffer.kind is not kind:
                raise VerificationError(f"an {kind.value} of another kind", found=f"{buffer.kind.value} {buffer.name}")
    arguments = {*program.inputs, *program.outputs}
    for buffer in program.buffers():
        if buffer.kind in (BufferKind.INPUT, BufferKind.OUTPUT) and buffer not in arguments:
            raise VerificationError(f"an {buffer.kind.value} buffer the program does not list", found=buffer.name)
        if buffer.data is not None and (buffer.data.shape, buffer.data.dtype) != (buffer.shape, buffer.element.dtype):
            found = f"{buffer.data.dtype}{list(buffer.data.shape)}"
            raise VerificationError(f"the data of {buffer.name} do not fit", expected=buffer.shape, found=found)


class _Walk:
    """What is live and what has been written, statement after statement."""

    def __init__(self) -> None:
        self.live: dict[Buffer, None] = {}
        self.dead: set[Buffer] = set()
        self.written: dict[Buffer, list[View]] = {}

    def alloc(self, buffer: Buffer) -> None:
        if buffer.kind is not BufferKind.ACTIVATION:
            raise ValueError(f"alloc of {buffer.kind.value} {buffer.name}")
        if buffer in self.live or buffer in self.dead:
            raise ValueError(f"second alloc of {buffer.name}")
        self.live[buffer] = None

    def dealloc(self, buffer: Buffer) -> None:
        if buffer not in self.live:
            raise ValueError(f"dealloc of {buffer.name}, which is not live")
        del self.live[buffer]
        self.dead.add(buffer)

    def execute(self, instruction: Instruction) -> None:
        for buffer in sorted(instruction.buffers(), key=lambda buffer: buffer.name):
            if buffer.kind is BufferKind.ACTIVATION and buffer not in self.live:
                raise ValueError(f"{buffer.name} is used outside its alloc and dealloc")
        instruction.verify()
        if not isinstance(instruction.operation, Control):
            verify_aliasing(instruction)
        for view in self._needed(instruction):
            if view.size and view.buffer.kind in _UNDEFINED_AT_FIRST and not self._may_be_written(view):
                raise ValueError(f"{view} is read before anything is written there")
        for view in instruction.outputs:
            if view.size:
                self.written.setdefault(view.buffer, []).append(view)

    @staticmethod
    def _needed(instruction: Instruction) -> Iterator[View]:
        """Views whose content the instruction relies on: not of buffers that a region may only write."""
        for view, access in instruction.accessed():
            is_border = isinstance(instruction.operation, Control)
            if access is Access.IN or (access is Access.INOUT and not is_border):
                yield view

    def _may_be_written(self, view: View) -> bool:
        return any(overlaps(view, written) for written in self.written.get(view.buffer, ()))


def _place(number: int, statement: object) -> str:
    if not isinstance(statement, Instruction):
        return f"statement {number}"
    names = f" ({', '.join(statement.names)})" if statement.names else ""
    return f"statement {number}, {statement.operation.name}{names}"
