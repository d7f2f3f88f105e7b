"""Every elementwise operator becomes one `Elementwise` instruction of its scalar expression."""

from __future__ import annotations

import numpy as np

from glowstone import scalar
from glowstone.graph import Value
from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Elementwise as ElementwiseOperation
from glowstone.lir import View
from glowstone.ops import Elementwise
from glowstone.ops.constant import literal
from glowstone.scalar import Expression, Input, Literal
from glowstone.types import CHANNEL_AXIS, ElementType


@generates(Elementwise)
def generate_elementwise(generator: Generator, application: Application) -> None:
    operator, result = application.operator, application.result
    assert isinstance(operator, Elementwise)
    operands = [operand for operand in application.operands if operand is not None]
    expression = operator.scalar_expression(tuple(operand.element for operand in operands))
    expression, kept = with_literals(expression, operands)
    views = [generator.broadcast(operand, result.type) for operand in kept]
    if not keeps_padding_zero(expression, kept, result):
        mask = _lane_mask(generator, result)
        expression = masked(expression, len(views))
        views.append(mask)
    out = generator.result(result)
    generator.emit(ElementwiseOperation((expression,), len(views)), out, *views)


def with_literals(expression: Expression, operands: list[Value]) -> tuple[Expression, list[Value]]:
    """The expression with short constant numbers written into it, and the operands that are left, renumbered."""
    inputs: list[Expression] = []
    kept: list[Value] = []
    used = {value.index for value in scalar.inputs_of(expression)}
    for index, operand in enumerate(operands):
        number = literal(operand)
        if number is not None:
            inputs.append(number)
        elif index not in used:
            inputs.append(Literal(operand.element, 0))
        else:
            if operand in kept:
                inputs.append(Input(operand.element, kept.index(operand)))
                continue
            inputs.append(Input(operand.element, len(kept)))
            kept.append(operand)
    return scalar.substitute(expression, inputs), kept


def keeps_padding_zero(expression: Expression, operands: list[Value], result: Value) -> bool:
    """Whether padding lanes of a blocked result come out zero: none exist, or zeros give zero."""
    block = result.type.channel_block
    if block is None or result.shape[CHANNEL_AXIS] % block == 0:
        return True
    if any(operand.type.channel_block is None for operand in operands):
        return False  # a plain scalar is not zero in padding lanes
    zeros = [np.zeros((), operand.element.dtype) for operand in operands]
    return not any(scalar.evaluate(expression, zeros).tobytes())


def masked(expression: Expression, mask_index: int) -> Expression:
    """Zero where the mask (a bool input) is false."""
    mask = Input(ElementType.BOOL, mask_index)
    return scalar.apply("select", mask, expression, Literal(expression.element, 0))


def _lane_mask(generator: Generator, result: Value) -> View:
    """True in real lanes, false in padding lanes, stretched to the result."""
    _, blocks, *spatial, lanes = result.type.physical_shape
    real = np.arange(blocks * lanes) < result.shape[CHANNEL_AXIS]
    shaped = real.reshape(1, blocks, *[1] * len(spatial), lanes)
    return generator.plan_constant(shaped).broadcast(result.type.physical_shape)
