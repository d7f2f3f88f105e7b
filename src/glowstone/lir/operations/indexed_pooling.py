"""Pooling that says where it found what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.convolution import windows


@operation
class PoolWithIndices(Operation):
    """Largest value of every window, and where it stands in the input.

    Operands: y and indices (int64), then x, of shape [N, C, spatial]. Integers: the padding before each spatial axis.
    A position counts the elements of x [N, C, spatial] in row-major order, or with the spatial axes in reverse where
    `column_major`. The first of equal values counts; a window wholly outside gives the lowest value and -1.
    """

    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    column_major: bool = False
    integer_names: ClassVar[tuple[str, ...]] = ("pad",)

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.OUT, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, indices, x = views
        spatial = len(self.window)
        require(y.rank == x.rank == spatial + 2, f"ranks {y.rank}, {x.rank}")
        require(len(self.strides) == len(self.dilations) == len(integers) == spatial, "one number per spatial axis")
        require(y.shape == indices.shape and y.shape[:2] == x.shape[:2], f"{y.shape}, {indices.shape} from {x.shape}")
        require(indices.element.value == "i64" and y.element is x.element, f"{y.element}, {indices.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, indices, x = arrays
        spatial = x.shape[2:]
        size = math.prod(spatial)
        numbers = np.arange(size).reshape(spatial, order="F" if self.column_major else "C")
        planes = size * np.arange(math.prod(x.shape[:2])).reshape((*x.shape[:2], *[1] * len(spatial)))
        places = numbers + planes
        y[...] = -np.inf if x.dtype.kind not in "iu" else np.iinfo(x.dtype).min
        indices[...] = -1
        for _, outs, ins in windows(spatial, y.shape[2:], self.window, self.strides, self.dilations, integers):
            target: Any = (..., *outs)
            source: Any = (..., *ins)
            value, best = x[source], y[target]
            takes = (indices[target] < 0) | (~(value <= best) & (best == best))
            y[target] = np.where(takes, value, best)
            indices[target] = np.where(takes, places[source], indices[target])
