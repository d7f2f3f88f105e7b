"""Tensors that follow from a few numbers the host knows: data of the plan."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.ops import Drawn, MelWeightMatrix, Range, Window
from glowstone.ops.constant import known_array
from glowstone.support.budget import budget

WORKING_BYTES = 16
"""What computing a number takes, besides the number: it is computed in float64 or i64, from its position."""


@generates(Drawn, MelWeightMatrix, Range, Window)
def generate_known(generator: Generator, application: Application) -> None:
    """Numbers too many for the host to pass about.

    Raises:
        LimitError: too many for the budget of compiling.
    """
    budget().take_bytes(application.result.type.size * WORKING_BYTES, "numbers that follow from few")
    arrays = [known_array(operand, "of a number") for operand in application.operands if operand is not None]
    (result,) = application.operator.evaluate(*arrays)
    generator.bind(application.result, generator.plan_constant(result))
