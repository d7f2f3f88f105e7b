"""Fused nodes: an anchor operator with an elementwise epilogue."""

from __future__ import annotations

from typing import Any

import numpy as np

from glowstone import scalar
from glowstone.errors import ShapeError
from glowstone.graph import Operand, Operator, Value, operator
from glowstone.ops.element_sets import ALL
from glowstone.ops.elementwise import check_layout
from glowstone.ops.linear import MatMul
from glowstone.scalar import Expression, Input
from glowstone.types import ElementType, TensorType, broadcast_shapes

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class Fused(Operator):
    """`epilogue` of the anchor's result (input 0) and extra operands (inputs 1, 2, ...), element by element.

    Operands: the anchor's `anchor_arity`, then the extras, each of which broadcasts to the anchor's result.
    """

    operands = (Operand("x", ALL, optional=True, variadic=True),)
    anchor: Operator = MatMul()
    anchor_arity: int = 2
    epilogue: Expression = Input(ElementType.F32, 0)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        (result,) = self.anchor.infer(*operands[: self.anchor_arity])
        for extra in operands[self.anchor_arity :]:
            if broadcast_shapes(result.shape, extra.shape) != result.shape:
                raise ShapeError(
                    "an epilogue operand is larger than the result",
                    expected=list(result.shape),
                    found=list(extra.shape),
                )
            check_layout(extra.type, result.shape, result.channel_block)
        return (result.with_element(self.epilogue.element),)

    def reference(self, *operands: Any) -> Array:
        result = np.asarray(self.anchor.reference(*operands[: self.anchor_arity]))
        fused = scalar.evaluate(self.epilogue, [result, *operands[self.anchor_arity :]])
        return np.broadcast_to(fused, result.shape)
