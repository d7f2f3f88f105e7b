"""Matrix product with weights packed ahead."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone.backends.cpu.ops.zero_padding import zero_padded
from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Value, operator
from glowstone.ops.element_sets import FLOATS
from glowstone.types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class PackedMatMul(Operator):
    """a [..., K] times weights [K, columns], packed as [ceil(columns / panel), K, panel]."""

    operands = (Operand("a", FLOATS), Operand("b", FLOATS))
    columns: int = 8
    panel: int = 8

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        a, b = operands
        if a.shape[-1:] != b.shape[1:2]:
            raise ShapeError("inner extents differ", expected=b.shape[1], found=str(a.type))
        return (a.type.with_shape((*a.shape[:-1], self.columns)),)

    def pack(self, b: Array) -> Array:
        """Weights [K, columns] in panels of columns, zero beyond the last."""
        inner, columns = b.shape
        panels = -(-columns // self.panel)
        padded = zero_padded(b, (inner, panels * self.panel))
        return np.ascontiguousarray(padded.reshape(inner, panels, self.panel).transpose(1, 0, 2))

    def unpack(self, b: Array) -> Array:
        """The inverse of `pack`."""
        return b.transpose(1, 0, 2).reshape(b.shape[1], -1)[:, : self.columns]

    def reference(self, a: Array, b: Array) -> Array:
        return np.asarray(np.matmul(a.astype(np.float64), self.unpack(b).astype(np.float64))).astype(a.dtype)
