"""Operations that find elements by their order: positions of extrema, and the first so many of a sort.

NaN counts as larger than every number, as in NumPy's sort; of equal elements the first wins unless stated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.strides import has_unit_inner_stride
from glowstone.types import ElementType, is_float_dtype

EXTREMA = ("max", "min")


@operation
class ArgReduce(Operation):
    """`y[o, i]` is the r of the largest ("max") or smallest ("min") `x[o, r, i]`; the last one where `last`.

    Operands: y [outer, inner] of i64, x [outer, R, inner] with R > 0. A NaN is the extremum where there is one.
    """

    mode: str
    last: bool = False

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return has_unit_inner_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x = views
        require(self.mode in EXTREMA, f"mode {self.mode}")
        require(y.rank == 2 and x.rank == 3 and y.shape == (x.shape[0], x.shape[2]), f"{y.shape} from {x.shape}")
        require(y.element is ElementType.I64, f"positions are {y.element}")
        require(x.shape[1] > 0 or y.size == 0, "an extremum of nothing")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x = arrays
        if y.size:
            y[...] = position_of_extremum(x, 1, self.mode, self.last)


def position_of_extremum(x: Array, axis: int, mode: str, last: bool) -> Array:
    """Where along the axis the largest or smallest element is; the axis is left out."""
    find = np.argmax if mode == "max" else np.argmin
    if not last:
        return np.asarray(find(x, axis=axis))
    return np.asarray(x.shape[axis] - 1 - find(np.flip(x, axis), axis=axis))


@operation
class TopK(Operation):
    """The K largest (or smallest) elements along axis 1, in order, and their positions.

    Operands: values [outer, K, inner], positions [outer, K, inner] of i64, x [outer, R, inner] with K <= R. Any
    strides.
    """

    largest: bool = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.OUT, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        values, positions, x = views
        require(values.rank == x.rank == 3 and values.shape == positions.shape, f"{values.shape}, {positions.shape}")
        fits = values.shape[::2] == x.shape[::2] and values.shape[1] <= x.shape[1]
        require(fits, f"{values.shape} from {x.shape}")
        require(values.element is x.element, f"{values.element} from {x.element}")
        require(positions.element is ElementType.I64, f"positions are {positions.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        values, positions, x = arrays
        order = sorted_positions(x, 1, self.largest)[:, : values.shape[1]]
        positions[...] = order
        values[...] = np.take_along_axis(x, order, axis=1)


def sorted_positions(x: Array, axis: int, largest: bool) -> Array:
    """The stable order along the axis, largest or smallest first."""
    if is_float_dtype(x.dtype):
        x = x.astype(np.float64)
    if not largest:
        return np.argsort(x, axis=axis, kind="stable")
    flipped = np.argsort(np.flip(x, axis), axis=axis, kind="stable")  # equal ones last to first, so that flipping helps
    return np.asarray(x.shape[axis] - 1 - np.flip(flipped, axis))
