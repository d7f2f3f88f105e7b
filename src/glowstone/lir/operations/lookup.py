"""Searches among sorted keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.scalar.search import found_keys


@operation
class Lookup(Operation):
    """`y[n]` is the value of the key that `x[n]` equals; the last value where there is none. NaN equals NaN.

    Operands: y [N], x [N], keys [K] with K > 0 that rise (NaN last), values [K + 1].
    """

    moves_data: ClassVar[bool] = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN, Access.IN)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, keys, values = views
        require(all(view.rank == 1 for view in views) and y.shape == x.shape, f"{y.shape} from {x.shape}")
        require(keys.shape[0] > 0 and values.shape[0] == keys.shape[0] + 1, f"{values.shape} for {keys.shape}")
        require(x.element is keys.element and y.element is values.element, f"{y.element} from {x.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, keys, values = arrays
        y[...] = values[found_keys(x, keys)]
