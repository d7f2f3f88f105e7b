"""Tensors that follow from a few numbers the host knows: data of the plan."""

from __future__ import annotations

from glowstone.graph import Value
from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.ops import MelWeightMatrix, Range, Window
from glowstone.ops.constant import known_array


@generates(Range)
def generate_range(generator: Generator, application: Application) -> None:
    _generate_known(generator, application, application.operands)


@generates(Window)
def generate_window(generator: Generator, application: Application) -> None:
    _generate_known(generator, application, application.operands)


@generates(MelWeightMatrix)
def generate_mel_weight_matrix(generator: Generator, application: Application) -> None:
    _generate_known(generator, application, application.operands)


def _generate_known(generator: Generator, application: Application, operands: tuple[Value | None, ...]) -> None:
    """Numbers too many for the host to pass about."""
    arrays = [known_array(operand, "of a number") for operand in operands if operand is not None]
    generator.bind(application.result, generator.plan_constant(application.operator.reference(*arrays)))
