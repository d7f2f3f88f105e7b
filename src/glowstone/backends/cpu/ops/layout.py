"""Changes between the plain and the channel-blocked layout. Arrays in `reference` are logical: nothing moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.errors import ModelError
from glowstone.graph import Operand, Operator, Sample, Value, operator
from glowstone.ops.element_sets import ALL
from glowstone.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]

BLOCKED_RANK = 4


@operator
class ToBlocked(Operator):
    """x [N, C, H, W] with its channels in blocks of `block`."""

    operands = (Operand("x", ALL),)
    block: int = 8

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        if x.rank != BLOCKED_RANK or x.type.channel_block is not None:
            raise ModelError("only a plain value of rank 4 can be blocked", found=str(x.type))
        return (x.type.with_channel_block(self.block),)

    def reference(self, x: Array) -> Array:
        return x

    def known(self, *operands: Value | None) -> None:
        return None

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        return [Sample(cls(8), (np.arange(60, dtype=np.float32).reshape(1, 5, 3, 4),))]


@operator
class FromBlocked(Operator):
    """x in the plain layout."""

    operands = (Operand("x", ALL),)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (x,) = operands
        if x.type.channel_block is None:
            raise ModelError("the value is not blocked", found=str(x.type))
        return (x.type.with_channel_block(None),)

    def reference(self, x: Array) -> Array:
        return x

    def known(self, *operands: Value | None) -> None:
        return None
