"""Pooling over windows of the axes between the first two and, in a blocked layout, the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from glowstone.lir.buffer import View
from glowstone.lir.operation import Access, Array, Operation, operation, require
from glowstone.lir.operations.convolution import windows
from glowstone.lir.operations.matmul import wide
from glowstone.lir.strides import has_dense_planes
from glowstone.types import is_float_dtype


@operation
class Pool(Operation):
    """Largest value, mean or sum of every window.

    Operands: y, x of shape [N, C, spatial], or [N, blocks, spatial, lanes] where `blocked`. Integers: the padding
    before each spatial axis. `mode` is "max", "average" or "sum"; an average divides by the elements inside the input,
    or by those inside input and padding where `count_include_pad` (then the padding after each axis follows in the
    integers). A window wholly outside gives the lowest value or 0.
    """

    mode: str
    window: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    count_include_pad: bool = False
    blocked: bool = False
    ulp_bound: ClassVar[float] = 16.0
    integer_names: ClassVar[tuple[str, ...]] = ("pad",)

    @property
    def accesses(self) -> tuple[Access, ...]:
        return (Access.OUT, Access.IN)

    def accepts(self, operand: int, view: View) -> bool:
        return has_dense_planes(view)

    def verify(self, views: Sequence[View], integers: Sequence[int]) -> None:
        y, x = views
        spatial = len(self.window)
        require(self.mode in ("max", "average", "sum"), f"mode {self.mode}")
        require(y.rank == x.rank == spatial + 2 + self.blocked, f"ranks {y.rank}, {x.rank}")
        require(len(self.strides) == len(self.dilations) == spatial, "one number per spatial axis")
        require(len(integers) == spatial * (2 if self.count_include_pad else 1), "padding of every spatial axis")
        require(y.shape[:2] == x.shape[:2], f"{y.shape} from {x.shape}")
        require(not self.blocked or y.shape[-1] == x.shape[-1], "lanes differ")

    def interpret(self, arrays: Sequence[Array], integers: Sequence[int]) -> None:
        y, x = arrays
        if self.blocked:
            y, x = np.moveaxis(y, -1, 2), np.moveaxis(x, -1, 2)
        count = len(self.window)
        spatial_in, spatial_out = x.shape[-count:], y.shape[-count:]
        pads = integers[:count]
        if self.mode == "max":
            lowest = -np.inf if is_float_dtype(x.dtype) else np.iinfo(x.dtype).min
            result = np.full(y.shape, lowest, x.dtype)
            for _, outs, ins in windows(spatial_in, spatial_out, self.window, self.strides, self.dilations, pads):
                target, source = _indices(outs, ins)
                np.maximum(result[target], x[source], out=result[target])
            y[...] = result
            return
        sums = np.zeros(y.shape, wide(x).dtype)
        counts = np.zeros(spatial_out, np.int64)
        for _, outs, ins in windows(spatial_in, spatial_out, self.window, self.strides, self.dilations, pads):
            target, source = _indices(outs, ins)
            sums[target] += x[source]
            counts[outs] += 1
        if self.mode == "sum":
            y[...] = sums
            return
        if self.count_include_pad:
            padded = [size + sum(integers[axis::count]) for axis, size in enumerate(spatial_in)]
            counts[...] = 0
            none = (0,) * count
            for _, outs, _ in windows(padded, spatial_out, self.window, self.strides, self.dilations, none):
                counts[outs] += 1
        y[...] = sums / np.maximum(counts, 1)


def _indices(outs: tuple[slice, ...], ins: tuple[slice, ...]) -> tuple[Any, Any]:
    """NumPy indices of the trailing axes in output and input."""
    return (..., *outs), (..., *ins)
