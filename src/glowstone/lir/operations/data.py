"""Operations that move data: copy and fill."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require


@operation
class Copy(Operation):
    """`out[i] = in[i]`; both sides strided, so this is also transpose, slice, concat and layout change."""

    data_parallel: ClassVar[bool] = True
    moves_data: ClassVar[bool] = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def is_fast(self, operand: int, view: View) -> bool:
        """A copy is as good as any other: it only must not become two."""
        return True

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        out, source = views
        require(out.shape == source.shape, f"shapes differ: {out.shape} and {source.shape}")
        require(out.element is source.element, f"element types differ: {out.element} and {source.element}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        arrays[0][...] = arrays[1]


@operation
class Fill(Operation):
    """`out[i] = value`, given as the bits of one element."""

    bits: int
    moves_data: ClassVar[bool] = True

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT,)

    def accepts(self, operand: int, view: View) -> bool:
        return True

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        require(0 <= self.bits < 1 << (8 * views[0].element.size), "the value has more bits than the element")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        out = arrays[0]
        out[...] = _from_bits(self.bits, out)


def _from_bits(bits: int, like: Array) -> Array:
    return np.frombuffer(bits.to_bytes(like.dtype.itemsize, "little"), like.dtype)[0]  # type: ignore[no-any-return]
