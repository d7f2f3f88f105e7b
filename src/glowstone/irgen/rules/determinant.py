"""Determinants over one axis of matrices."""

from __future__ import annotations

import math

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Determinant
from glowstone.ops import Det


@generates(Det)
def generate_determinant(generator: Generator, application: Application) -> None:
    x = application.operand(0)
    count, size = math.prod(x.shape[:-2]), x.shape[-1]
    source = generator.reshaped(generator.view(x), (count, size, size))
    out = generator.result(application.result).reshape((count,))
    assert out is not None, "a fresh buffer is contiguous"
    generator.emit(Determinant(), out, source)
