"""Lookups over one axis of elements, and couplings of pairs."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import Lookup as LookupOperation
from glowstone.lir import PairwiseCoupling as CouplingOperation
from glowstone.ops import Lookup, PairwiseCoupling


@generates(Lookup)
def generate_lookup(generator: Generator, application: Application) -> None:
    x, keys, values = (application.operand(number) for number in range(3))
    source = generator.reshaped(generator.view(x), (x.type.size,))
    out = generator.result(application.result).reshape((x.type.size,))
    assert out is not None, "a fresh buffer is contiguous"
    generator.emit(LookupOperation(), out, source, generator.view(keys), generator.view(values))


@generates(PairwiseCoupling)
def generate_coupling(generator: Generator, application: Application) -> None:
    pairs = generator.view(application.operand(0))
    generator.emit(CouplingOperation(), generator.result(application.result), pairs)
