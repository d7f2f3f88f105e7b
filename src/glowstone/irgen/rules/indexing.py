"""Gather as [outer, A, inner]."""

from __future__ import annotations

import math

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Gather as GatherOperation
from glowstone.ops import Gather
from glowstone.types import normalize_axis


@generates(Gather)
def generate_gather(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, Gather)
    x, indices = application.operand(0), application.operand(1)
    axis = normalize_axis(operator.axis, x.rank)
    outer, inner = math.prod(x.shape[:axis]), math.prod(x.shape[axis + 1 :])
    source = generator.reshaped(generator.view(x), (outer, x.shape[axis], inner))
    positions = generator.reshaped(generator.view(indices), (indices.type.size,))
    out = generator.result(application.result).reshape((outer, indices.type.size, inner))
    assert out is not None
    generator.emit(GatherOperation(), out, source, positions)
