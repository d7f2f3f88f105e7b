"""Operations whose addresses depend on data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from glowstone.errors import ExecutionError
from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.strides import has_unit_last_stride


@operation
class Gather(Operation):
    """`y[o, j, i] = x[o, indices[j], i]`; an index counts from the back where negative.

    Operands: y [outer, J, inner], x [outer, A, inner], indices [J] (i32 or i64). An index outside [-A, A) is an error
    (status INDEX_OUT_OF_RANGE with the index as value); the kernel then reads element 0.
    """

    moves_data: ClassVar[bool] = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return has_unit_last_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, indices = views
        require(y.rank == x.rank == 3 and indices.rank == 1, f"ranks {y.rank}, {x.rank}, {indices.rank}")
        fits = (y.shape[0], y.shape[1], y.shape[2]) == (x.shape[0], indices.shape[0], x.shape[2])
        require(fits, f"{y.shape} from {x.shape} at {indices.shape}")
        require(indices.element.is_integer, f"indices are {indices.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, indices = arrays
        bad = (indices < -x.shape[1]) | (indices >= x.shape[1])
        if bad.any() and y.size:
            raise ExecutionError(
                "index out of range",
                operator="Gather",
                expected=f"{-x.shape[1]} to {x.shape[1] - 1}",
                found=int(indices[bad][0]),
            )
        if y.size:
            y[...] = x[:, indices]
