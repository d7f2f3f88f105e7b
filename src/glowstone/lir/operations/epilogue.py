"""The epilogue: a scalar expression applied to every result of an anchor operation as it is stored.

Input 0 of the expression is the anchor's result; input 1 + i is extra operand i, a view of the result's shape
(broadcast with stride 0 where it is per channel or scalar). None is the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import require
from glowstone.scalar import Expression, evaluate, inputs_of

Array = np.ndarray[Any, np.dtype[Any]]


def extra_count(epilogue: Expression | None) -> int:
    """How many extra operands the epilogue reads."""
    if epilogue is None:
        return 0
    return max((value.index for value in inputs_of(epilogue)), default=0)


def verify_epilogue(epilogue: Expression | None, result: View, extras: Sequence[View]) -> None:
    """Check types and shapes of the extra operands.

    Raises:
        ValueError: an extra operand has not the result's shape or not the type the expression reads.
    """
    if epilogue is None:
        return
    require(epilogue.element is result.element, f"epilogue gives {epilogue.element}, result is {result.element}")
    for value in inputs_of(epilogue):
        if value.index > 0:
            extra = extras[value.index - 1]
            require(extra.element is value.element, f"extra operand {value.index - 1} is {extra.element}")
            require(extra.shape == result.shape, f"extra operand {extra.shape} is not of shape {result.shape}")


def apply_epilogue(epilogue: Expression | None, result: Array, extras: Sequence[Array]) -> Array:
    """The results to store."""
    return result if epilogue is None else evaluate(epilogue, [result, *extras])
