"""Control flow: instructions that decide which instructions are executed next.

    LoopBegin ... LoopEnd                  what stands between is executed once for each pass
    Branch ... Otherwise ... Join          one of two parts

Their operands are the values that they read and, in the place of all that is executed between them, the buffers that
live on both sides of a border: what is read or written between them, and used outside as well. So for the passes over a
program a region reads and writes these buffers at its borders, and nothing is moved across. Buffers used only within a
region are used in it as in a straight program.

A *window* is a buffer that moves along another one: `LoopBegin` lays it on the first row, `LoopEnd` moves it to the
next. They become control records of the table, not calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from glowstone.lir.buffer import BufferKind, View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.types import ElementType


class Control(Operation):
    """Base: an instruction that becomes control records. `held` are buffers that live across the region's border."""

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        raise AssertionError("control flow is executed by the walk over the table")


@operation
class LoopBegin(Control):
    """Executes what follows up to its `LoopEnd` as many times as the count says, if the condition holds.

    Operands: the count (i64), the condition (bool) where `conditional`, per window the window and the rows that it
    moves along, then what is held. Integers: per window its move from pass to pass, in elements of the rows' buffer.
    """

    conditional: bool
    windows: tuple[Access, ...]
    """How the rows under each window are used."""
    held: tuple[Access, ...]

    @property
    def accesses(self) -> tuple[Access, ...]:
        heads = (Access.IN,) * (2 if self.conditional else 1)
        pairs = tuple(access for rows in self.windows for access in (Access.OUT, rows))
        return (*heads, *pairs, *self.held)

    @property
    def first_window(self) -> int:
        """Number of the first window's operand."""
        return 2 if self.conditional else 1

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        _verify_single(views[0], ElementType.I64)
        if self.conditional:
            _verify_single(views[1], ElementType.BOOL)
        require(len(integers) == len(self.windows), f"{len(integers)} moves of {len(self.windows)} windows")
        for number in range(len(self.windows)):
            window, rows = views[self.first_window + 2 * number : self.first_window + 2 * number + 2]
            require(window.buffer.kind is BufferKind.WINDOW, f"{window.buffer.name} is no window")
            require(window.element is rows.element, f"a window of {window.element} on {rows.element}")


@operation
class LoopEnd(Control):
    """Goes round again while passes are left and the condition, where `conditional`, holds.

    Operands: the condition, then what is held, the rows under windows among it.
    """

    conditional: bool
    held: tuple[Access, ...]

    @property
    def accesses(self) -> tuple[Access, ...]:
        return ((Access.IN,) if self.conditional else ()) + self.held

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        if self.conditional:
            _verify_single(views[0], ElementType.BOOL)


@operation
class Branch(Control):
    """Executes what follows up to its `Otherwise` if the condition holds, else what follows that up to its `Join`."""

    held: tuple[Access, ...]

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.IN, *self.held)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        _verify_single(views[0], ElementType.BOOL)


@operation
class Otherwise(Control):
    """Ends the first part of a `Branch` and begins the second."""

    held: tuple[Access, ...]

    @property
    def accesses(self) -> tuple[Access, ...]:
        return self.held

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        """Anything can be held."""


@operation
class Join(Otherwise):
    """Ends a `Branch`."""


def _verify_single(view: View, element: ElementType) -> None:
    require(view.size == 1 and view.element is element, f"{view.element}{list(view.shape)} is no single {element}")
