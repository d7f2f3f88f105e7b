"""Reductions over one axis, and the normalizations built on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.epilogue import apply_epilogue, extra_count, verify_epilogue
from glowstone.lir.operations.matmul import wide
from glowstone.lir.strides import has_unit_inner_stride, has_unit_last_stride, is_epilogue_operand
from glowstone.scalar import Expression
from glowstone.types import is_float_dtype

REDUCTIONS = ("sum", "mean", "max", "min", "prod")


@operation
class Reduce(Operation):
    """`y[o, i] = epilogue(reduction over r of x[o, r, i])`.

    Operands: y [outer, inner], x [outer, R, inner], extras. Sums of floats are carried in fixed chunks and a fixed
    tree; a mean over no elements is NaN, a sum 0, a product 1; max and min propagate NaN.
    """

    mode: str
    epilogue: Expression | None = None
    ulp_bound: ClassVar[float] = 64.0

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT,) + (Access.IN,) * (1 + extra_count(self.epilogue))

    def accepts(self, operand: int, view: View) -> bool:
        return is_epilogue_operand(view) if operand > 1 else has_unit_inner_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, *extras = views
        require(self.mode in REDUCTIONS, f"mode {self.mode}")
        require(y.rank == 2 and x.rank == 3 and y.shape == (x.shape[0], x.shape[2]), f"{y.shape} from {x.shape}")
        verify_epilogue(self.epilogue, y, extras)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, *extras = arrays
        with np.errstate(all="ignore"):
            result = _reduce(self.mode, x).astype(y.dtype)
        y[...] = apply_epilogue(self.epilogue, result, extras)


def _reduce(mode: str, x: Array) -> Array:
    if mode == "sum":
        return np.asarray(wide(x).sum(axis=1, dtype=wide(x).dtype))
    if mode == "prod":
        return np.asarray(wide(x).prod(axis=1, dtype=wide(x).dtype))
    if mode == "mean":
        total = wide(x).sum(axis=1)
        return np.asarray(total / np.float64(x.shape[1]))
    is_float = is_float_dtype(x.dtype)
    if mode == "max":
        lowest = -np.inf if is_float else np.iinfo(x.dtype).min
        return np.asarray(np.maximum.reduce(x, axis=1, initial=lowest))
    highest = np.inf if is_float else np.iinfo(x.dtype).max
    return np.asarray(np.minimum.reduce(x, axis=1, initial=highest))


@operation
class Softmax(Operation):
    """`y[o, r, i] = exp(x[o, r, i] - max over r) / sum over r`. Operands: y, x of shape [outer, R, inner]."""

    ulp_bound: ClassVar[float] = 64.0

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
        require(y.rank == 3 and y.shape == x.shape, f"{y.shape} from {x.shape}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x = arrays
        if x.size == 0:
            return
        with np.errstate(all="ignore"):
            powers = np.exp(wide(x) - x.max(axis=1, keepdims=True))
            y[...] = powers / powers.sum(axis=1, keepdims=True)


@operation
class LayerNorm(Operation):
    """`y[o, r] = (x[o, r] - mean) / sqrt(variance + epsilon) * scale[o, r] + bias[o, r]`, over r.

    Operands: y, x, scale, bias of shape [outer, R]; scale and bias are usually broadcast (stride 0 over outer).
    """

    epsilon: float
    ulp_bound: ClassVar[float] = 64.0

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN, Access.IN, Access.IN)

    @property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        return ((0, 1),)

    def accepts(self, operand: int, view: View) -> bool:
        return has_unit_last_stride(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        for view in views:
            require(view.rank == 2 and view.shape == views[0].shape, f"{view.shape} among {views[0].shape}")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, scale, bias = arrays
        if x.size == 0:
            return
        with np.errstate(all="ignore"):
            centred = wide(x) - wide(x).mean(axis=1, keepdims=True)
            variance = (centred * centred).mean(axis=1, keepdims=True)
            y[...] = centred / np.sqrt(variance + self.epsilon) * scale + bias
