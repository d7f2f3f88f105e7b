"""Convolution in the plain layout, and the window arithmetic that blocked forms share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.epilogue import apply_epilogue, extra_count, verify_epilogue
from glowstone.lir.operations.matmul import wide
from glowstone.lir.strides import has_dense_planes, is_blocked_epilogue_operand
from glowstone.scalar import Expression

WEIGHTS = 2
"""Operand number of the weights of every convolution and packed product; extra operands follow."""


@operation
class Convolution(Operation):
    """`y[n, o, p] = epilogue(sum over i, k of x[n, i, p * strides + k * dilations - pads] * w[o, i, k])`, in groups.

    Operands: y [N, O, spatial], x [N, I, spatial], w [O, I / groups, kernel], extras. Integers: the padding before
    each spatial axis; what lies outside x is zero.
    """

    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int
    epilogue: Expression | None = None
    ulp_bound: ClassVar[float] = 64.0
    integer_names: ClassVar[tuple[str, ...]] = ("pad",)

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT,) + (Access.IN,) * (2 + extra_count(self.epilogue))

    @cached_property
    def in_place(self) -> tuple[tuple[int, int], ...]:
        return tuple((0, 3 + index) for index in range(extra_count(self.epilogue)))

    def accepts(self, operand: int, view: View) -> bool:
        if operand == WEIGHTS:
            return view.is_contiguous
        return is_blocked_epilogue_operand(view) if operand > WEIGHTS else has_dense_planes(view)

    def multiply_adds(self, views: Sequence[View]) -> int:
        return views[0].size * math.prod(views[WEIGHTS].shape[1:])

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x, w, *extras = views
        spatial = y.rank - 2
        require(y.rank == x.rank == w.rank and spatial >= 1, f"ranks {y.rank}, {x.rank}, {w.rank}")
        require(len(integers) == len(self.strides) == len(self.dilations) == spatial, "one number per spatial axis")
        require(y.shape[0] == x.shape[0] and y.shape[1] == w.shape[0], f"{y.shape} from {x.shape} by {w.shape}")
        require(x.shape[1] == w.shape[1] * self.groups, f"{x.shape[1]} channels, weights for {w.shape[1]}")
        verify_epilogue(self.epilogue, y, extras)

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x, w, *extras = arrays
        sums = convolve(x, w, y.shape[2:], self.strides, self.dilations, integers, self.groups)
        y[...] = apply_epilogue(self.epilogue, sums.astype(y.dtype), extras)


def windows(
    source: Sequence[int],
    target: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]]:
    """For every position in the kernel: (position, slices of the target, slices of the source) that meet."""
    for position in itertools.product(*map(range, kernel)):
        outs, ins = [], []
        for axis, k in enumerate(position):
            shift = k * dilations[axis] - pads[axis]
            low = max(0, -(shift // strides[axis]))
            high = min(target[axis], (source[axis] - 1 - shift) // strides[axis] + 1)
            start = low * strides[axis] + shift
            count = max(high - low, 0)
            outs.append(slice(low, low + count))
            ins.append(slice(start, start + (count - 1) * strides[axis] + 1, strides[axis]) if count else slice(0, 0))
        yield position, tuple(outs), tuple(ins)


def convolve(
    x: Array,
    w: Array,
    spatial: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
    pads: Sequence[int],
    groups: int,
) -> Array:
    """Grouped convolution with float64 sums: x [N, I, ...], w [O, I / groups, ...] to [N, O, spatial]."""
    batch, outputs = x.shape[0], w.shape[0]
    x, w = wide(x), wide(w)
    grouped_x = x.reshape(batch, groups, x.shape[1] // groups, *x.shape[2:])
    grouped_w = w.reshape(groups, outputs // groups, *w.shape[1:])
    sums = np.zeros((batch, groups, outputs // groups, *spatial), x.dtype)
    for position, outs, ins in windows(x.shape[2:], spatial, w.shape[2:], strides, dilations, pads):
        source: Any = (..., *ins)
        target: Any = (..., *outs)
        part = grouped_x[source]
        if part.size:
            flat = part.reshape(batch, groups, part.shape[2], -1)
            tap: Any = (..., *position)
            taps = grouped_w[tap]
            product = np.matmul(taps[None], flat).reshape(batch, groups, outputs // groups, *part.shape[3:])
            sums[target] += product
    return sums.reshape(batch, outputs, *spatial)
