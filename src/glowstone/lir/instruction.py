"""One step of a program: an operation applied to views."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from glowstone.lir.buffer import Buffer, View
from glowstone.lir.operation import Access, Operation


@dataclass(eq=False)
class Instruction:
    """An operation, its operands (outputs first), its run-time integers, and the ONNX names it came from."""

    operation: Operation
    operands: tuple[View, ...]
    integers: tuple[int, ...] = ()
    names: tuple[str, ...] = ()

    def accessed(self) -> Iterator[tuple[View, Access]]:
        return zip(self.operands, self.operation.accesses, strict=True)

    @property
    def outputs(self) -> tuple[View, ...]:
        return tuple(view for view, access in self.accessed() if access.writes)

    @property
    def inputs(self) -> tuple[View, ...]:
        return tuple(view for view, access in self.accessed() if access.reads)

    def buffers(self) -> set[Buffer]:
        return {view.buffer for view in self.operands}

    def verify(self) -> None:
        """Check the operands against the operation.

        Raises:
            ValueError: they do not fit; the message names the operation.
        """
        accesses = self.operation.accesses
        if len(accesses) != len(self.operands):
            raise ValueError(f"{self.operation.name} takes {len(accesses)} operands, not {len(self.operands)}")
        for view, access in self.accessed():
            if view.size and not 0 <= view.offset <= view.last < view.buffer.size:
                raise ValueError(f"{self.operation.name}: {view} leaves its buffer of {view.buffer.size} elements")
            if access.writes and view.buffer.kind.is_read_only:
                raise ValueError(f"{self.operation.name} writes {view.buffer.kind.value} {view.buffer.name}")
        for index, view in enumerate(self.operands):
            if not self.operation.accepts(index, view):
                raise ValueError(f"{self.operation.name} does not accept the strides of operand {index}, {view}")
        try:
            self.operation.verify(self.operands, self.integers)
        except ValueError as error:
            raise ValueError(f"{self.operation.name}: {error}") from error
