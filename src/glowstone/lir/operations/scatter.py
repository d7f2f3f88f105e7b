"""Reading and writing single elements, or rows, at places that data names.

An index counts from the back where negative. One outside its axis is an error (status INDEX_OUT_OF_RANGE with the index
as value): nothing is written for it, and element 0 is read in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from glowstone.errors import ExecutionError
from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.strides import has_unit_last_stride

COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "none": lambda _, update: update,
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
"""What is stored, of the element there and the update, by reduction."""


def checked(indices: Array, extent: int, name: str) -> Array:
    """Indices counted from the front.

    Raises:
        ExecutionError: one is outside [-extent, extent).
    """
    bad = (indices < -extent) | (indices >= extent)
    if np.any(bad):
        raise ExecutionError(
            "index out of range",
            operator=name,
            expected=f"{-extent} to {extent - 1}",
            found=int(np.asarray(indices)[bad].flat[0]),
        )
    return np.where(indices < 0, indices + extent, indices)


def off_axis(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    """The extents but that of the axis."""
    return (*shape[:axis], *shape[axis + 1 :])


@operation
class GatherElements(Operation):
    """`y[i] = x[i with axis at indices[i]]`. Operands: y, x, indices of one rank; x has y's extents off the axis.

    Unless `checked` the indices are in range and not negative, because the host made them.
    """

    axis: int
    checked: bool = True
    moves_data: ClassVar[bool] = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, indices = views
        require(y.shape == indices.shape and y.rank == x.rank > self.axis, f"{y.shape}, {x.shape}, {indices.shape}")
        require(off_axis(y.shape, self.axis) == off_axis(x.shape, self.axis), f"{y.shape} from {x.shape}")
        require(x.shape[self.axis] > 0 or y.size == 0, "nothing to take elements from")
        require(indices.element.is_integer, f"indices are {indices.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, indices = arrays
        if y.size:
            places = checked(indices, x.shape[self.axis], self.name)
            y[...] = np.take_along_axis(x, places, axis=self.axis)


@operation
class GatherND(Operation):
    """`y[b, q] = x[b, indices[b, q, 0], indices[b, q, 1] ...]`, rows of S elements.

    Operands: y [B, Q, S], x [B, D1 .. Dk, S], indices [B, Q, k].
    """

    moves_data: ClassVar[bool] = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return has_unit_last_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, indices = views
        require(y.rank == indices.rank == 3 and x.rank >= 2, f"ranks {y.rank}, {x.rank}, {indices.rank}")
        require(indices.shape == (*y.shape[:2], x.rank - 2), f"{y.shape} at {indices.shape}")
        require((y.shape[0], y.shape[2]) == (x.shape[0], x.shape[-1]), f"{y.shape} from {x.shape}")
        require(x.size > 0 or y.size == 0, "nothing to take elements from")
        require(indices.element.is_integer, f"indices are {indices.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, indices = arrays
        if y.size:
            places = [checked(indices[..., axis], x.shape[1 + axis], self.name) for axis in range(x.ndim - 2)]
            y[...] = x[(np.arange(x.shape[0])[:, None], *places)]


@operation
class ScatterElements(Operation):
    """`y[i with axis at indices[i]]` combined with `updates[i]`, in row-major order of i.

    Operands: y, indices, updates of one rank; indices and updates have one shape, off the axis within y's.
    `reduction` is one of `COMBINE`.
    """

    axis: int
    reduction: str = "none"

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.INOUT, Access.IN, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, indices, updates = views
        require(self.reduction in COMBINE, f"reduction {self.reduction}")
        require(indices.shape == updates.shape, f"{updates.shape} at {indices.shape}")
        require(y.rank == indices.rank > self.axis, f"ranks {y.rank}, {indices.rank}")
        pairs = zip(off_axis(indices.shape, self.axis), off_axis(y.shape, self.axis), strict=True)
        require(all(mine <= theirs for mine, theirs in pairs), f"{indices.shape} in {y.shape}")
        require(y.element is updates.element, f"{updates.element} into {y.element}")
        require(indices.element.is_integer, f"indices are {indices.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, indices, updates = arrays
        places = checked(indices, y.shape[self.axis], self.name)
        combine = COMBINE[self.reduction]
        with np.errstate(all="ignore"):
            for step in range(indices.shape[self.axis]):
                at = tuple(slice(step, step + 1) if axis == self.axis else slice(None) for axis in range(y.ndim))
                box = tuple(slice(0, extent) for extent in off_axis(indices.shape, self.axis))
                target = y[(*box[: self.axis], slice(None), *box[self.axis :])]
                before = np.take_along_axis(target, places[at], axis=self.axis)
                np.put_along_axis(target, places[at], combine(before, updates[at]), axis=self.axis)


@operation
class ScatterND(Operation):
    """Row `y[indices[q, 0], indices[q, 1] ...]` combined with `updates[q]`, in order of q.

    Operands: y [D1 .. Dk, S], indices [Q, k], updates [Q, S]. `reduction` is one of `COMBINE`.
    """

    reduction: str = "none"

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.INOUT, Access.IN, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return has_unit_last_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, indices, updates = views
        require(self.reduction in COMBINE, f"reduction {self.reduction}")
        require(indices.rank == updates.rank == 2 and y.rank >= 1, f"ranks {indices.rank}, {updates.rank}")
        require(indices.shape == (updates.shape[0], y.rank - 1), f"{updates.shape} at {indices.shape}")
        require(updates.shape[1] == y.shape[-1], f"{updates.shape} into {y.shape}")
        require(y.element is updates.element, f"{updates.element} into {y.element}")
        require(indices.element.is_integer, f"indices are {indices.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, indices, updates = arrays
        if y.size == 0 and updates.size == 0:
            return
        places = [checked(indices[:, axis], y.shape[axis], self.name) for axis in range(y.ndim - 1)]
        combine = COMBINE[self.reduction]
        with np.errstate(all="ignore"):
            for number in range(len(updates)):
                row = tuple(int(place[number]) for place in places)
                y[row] = combine(y[row], updates[number])
