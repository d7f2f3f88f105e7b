"""How a blocked convolution addresses the extra operands of its epilogue: compiled in, decided here."""

from __future__ import annotations

from glowstone.lir.buffer import View
from glowstone.lir.instruction import Instruction

OUTPUT, CHANNEL, OWN = "output", "channel", "own"
"""Like the output; the same for all pixels; by strides of its own."""
FIRST_EXTRA = 3
"""Number of the first extra operand, after y, x and w."""
PIXEL_AXES = (0, 2, 3)


def extra_kinds(instruction: Instruction) -> tuple[str, ...]:
    """How each extra operand of a blocked convolution is addressed."""
    y = instruction.operands[0]
    return tuple(_kind(y, extra) for extra in instruction.operands[FIRST_EXTRA:])


def _kind(y: View, extra: View) -> str:
    moving = [axis for axis in PIXEL_AXES if y.shape[axis] != 1]
    if all(extra.strides[axis] == 0 for axis in moving):
        return CHANNEL
    if all(extra.strides[axis] == y.strides[axis] for axis in moving):
        return OUTPUT
    return OWN
