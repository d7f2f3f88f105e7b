"""The recurrence of linear attention."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import LinearRecurrence as LinearRecurrenceOperation
from glowstone.ops import LinearRecurrence


@generates(LinearRecurrence)
def generate_linear_recurrence(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, LinearRecurrence)
    sources = [generator.view(operand) for operand in application.operands if operand is not None]
    results = [generator.result(value) for value in application.node.results]
    generator.emit(LinearRecurrenceOperation(operator.decays, operator.corrects), *results, *sources)
