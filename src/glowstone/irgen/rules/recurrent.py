"""Recurrences: one instruction for all steps of a direction."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Recurrence as RecurrenceOperation
from glowstone.ops import Recurrence


@generates(Recurrence)
def generate_recurrence(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, Recurrence)
    sources = [generator.view(application.operand(number)) for number in range(len(application.operands))]
    results = [generator.result(value) for value in application.node.results]
    parameters = len(sources) - 3 - len(operator.states)
    operation = RecurrenceOperation(operator.gates, operator.states, parameters, operator.factor, operator.reverse)
    generator.emit(operation, *results, *sources)
