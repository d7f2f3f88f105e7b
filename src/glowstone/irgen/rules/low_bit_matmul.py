"""Matrix products with packed weights."""

from __future__ import annotations

from glowstone.irgen.generator import Application, Generator
from glowstone.irgen.rules.table import generates
from glowstone.lir import LowBitMatMul as LowBitMatMulOperation
from glowstone.ops import LowBitMatMul


@generates(LowBitMatMul)
def generate_low_bit_matmul(generator: Generator, application: Application) -> None:
    operator = application.operator
    assert isinstance(operator, LowBitMatMul)
    operands = [generator.view(application.operand(index)) for index in range(len(operator.operands))]
    out = generator.result(application.result)
    generator.emit(LowBitMatMulOperation(operator.bits, operator.block), out, *operands)
