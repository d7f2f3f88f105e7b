"""Fused nodes: an anchor operator with an elementwise epilogue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone import scalar
from glowstone.errors import ShapeError
from glowstone.graph import Builder, ErrorSample, Operand, Operator, Sample, Value, operator
from glowstone.ops.convolution import Conv
from glowstone.ops.element_sets import ANY, NUMBERS
from glowstone.ops.elementwise import Map, check_layout
from glowstone.ops.linear import MatMul
from glowstone.scalar import Expression, Input, Literal, apply
from glowstone.types import ElementType, TensorType, broadcast_shapes

Array = np.ndarray[Any, np.dtype[Any]]


@operator
class Fused(Operator):
    """`epilogue` of the anchor's result (input 0) and extra operands (inputs 1, 2, ...), element by element.

    Operands: the anchor's `anchor_arity`, then the extras, each of which broadcasts to the anchor's result.
    """

    operands = (Operand("x", ANY, optional=True, variadic=True),)
    anchor: Operator = MatMul()
    anchor_arity: int = 2
    epilogue: Expression = Input(ElementType.F32, 0)

    def infer(self, *operands: Value) -> tuple[TensorType, ...]:
        self.anchor.check_operands(operands[: self.anchor_arity])
        (result,) = self.anchor.infer(*operands[: self.anchor_arity])
        extras = operands[self.anchor_arity :]
        Map(self.epilogue, 1 + len(extras)).scalar_expression((result.element, *(extra.element for extra in extras)))
        for extra in extras:
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

    def decompose(self, builder: Builder, *operands: Any) -> Value:
        """Its two parts: backends fuse what they have kernels for."""
        result = builder.emit(self.anchor, *operands[: self.anchor_arity])
        extras = operands[self.anchor_arity :]
        return builder.emit(Map(self.epilogue, 1 + len(extras)), result, *extras)

    @classmethod
    def samples(cls) -> Sequence[Sample]:
        random = np.random.default_rng(12)

        def normal(*shape: int) -> Array:
            return random.standard_normal(shape).astype(np.float32)

        x0, x1, x2 = (Input(ElementType.F32, index) for index in range(3))
        relu = apply("max", apply("add", x0, x1), Literal(ElementType.F32, 0.0))
        residual = apply("add", apply("mul", x0, x1), x2)
        same = Conv(pads=(1, 1, 1, 1))
        numbers = random.integers(0, 9, (3, 3))
        typed = [
            (apply("add", Input(element, 0), Input(element, 1)), numbers.astype(element.dtype))
            for element in sorted(NUMBERS - {ElementType.F32}, key=str)
        ]
        chosen = apply("select", Input(ElementType.BOOL, 1), x0, Literal(ElementType.F32, 0.0))
        return [
            *(Sample(cls(MatMul(), 2, total), (array, array, array)) for total, array in typed),
            Sample(cls(MatMul(), 2, chosen), (normal(3, 4), normal(4, 5), np.arange(5) > 2)),
            Sample(cls(MatMul(), 2, relu), (normal(3, 4), normal(4, 5), normal(5))),
            Sample(cls(MatMul(), 2, apply("less", x0, x1)), (normal(3, 4), normal(4, 5), normal(3, 1))),
            Sample(
                cls(same, 3, residual),
                (normal(2, 9, 5, 6), normal(4, 9, 3, 3), normal(4), normal(4, 1, 1), normal(2, 4, 5, 6)),
            ),
        ]

    @classmethod
    def error_samples(cls) -> Sequence[ErrorSample]:
        one = np.ones((2, 2), np.float32)
        return [
            ErrorSample(cls(), (one, one, np.ones((3, 2, 2), np.float32)), "larger than the result"),
            ErrorSample(cls(), (one, np.ones((3, 2), np.float32)), "inner extents differ"),
        ]
