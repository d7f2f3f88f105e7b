"""Pooling over regions."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir.operations.regions import RoiAlign as RoiAlignOperation
from glowstone.lir.operations.regions import RoiPool
from glowstone.ops import MaxRoiPool, RoiAlign


@generates(RoiAlign)
def generate_roi_align(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, RoiAlign)
    views = [generator.view(operand) for operand in application.operands if operand is not None]
    out = generator.result(application.result)
    if out.size:
        operation = RoiAlignOperation(operator.pooling, operator.half_pixel, operator.points, operator.scale)
        generator.emit(operation, out, *views)


@generates(MaxRoiPool)
def generate_max_roi_pool(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, MaxRoiPool)
    views = [generator.view(operand) for operand in application.operands if operand is not None]
    out = generator.result(application.result)
    if out.size:
        generator.emit(RoiPool(operator.scale), out, *views)
