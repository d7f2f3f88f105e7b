"""Running sums and products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.matmul import wide
from glowstone.lir.strides import has_unit_inner_stride

MODES = ("sum", "prod")


@operation
class Cumulative(Operation):
    """`y[o, r, i]` is the sum or product of `x[o, s, i]` over s <= r.

    Over s < r where `exclusive`; counted from the end where `reverse`. Operands: y, x of shape [outer, R, inner].
    """

    mode: str
    exclusive: bool = False
    reverse: bool = False
    ulp_bound: ClassVar[float] = 256.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN)

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        return ((0, 1),)

    def accepts(self, operand: int, view: View) -> bool:
        return has_unit_inner_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x = views
        require(self.mode in MODES, f"mode {self.mode}")
        require(y.rank == 3 and y.shape == x.shape, f"{y.shape} from {x.shape}")
        require(y.element is x.element, f"{y.element} from {x.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x = arrays
        with np.errstate(all="ignore"):
            y[...] = accumulated(x, 1, self.mode, self.exclusive, self.reverse)


def accumulated(x: Array, axis: int, mode: str, exclusive: bool, reverse: bool) -> Array:
    """Running sums or products along an axis, floats in float64."""
    terms = np.moveaxis(wide(x), axis, 0)
    if reverse:
        terms = terms[::-1]
    accumulate = np.cumsum if mode == "sum" else np.cumprod
    running = np.asarray(accumulate(terms, axis=0, dtype=terms.dtype))
    if exclusive and len(running):
        first = np.full_like(running[:1], 0 if mode == "sum" else 1)
        running = np.concatenate([first, running[:-1]])
    return np.moveaxis(running[::-1] if reverse else running, 0, axis)
