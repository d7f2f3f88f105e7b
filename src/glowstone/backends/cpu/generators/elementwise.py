"""Bodies of elementwise, fill and plain copy kernels."""

from __future__ import annotations

from collections.abc import Sequence

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.nest import emit_nest
from glowstone.backends.cpu.generators.rows import emit_row
from glowstone.backends.cpu.ir_types import Value
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.vector_math import emit_expressions
from glowstone.scalar import Expression, inputs_of


def emit_elementwise(emitter: Emitter, expressions: Sequence[Expression]) -> None:
    """Every expression of the inputs at each position, stored to its output."""
    count = len(expressions)
    used = sorted({value.index for expression in expressions for value in inputs_of(expression)})

    def emit_run(operands: list[InnerOperand], length: Value | int) -> None:
        involved = [*operands[:count], *(operands[count + index] for index in used)]
        constant = [index for index in used if operands[count + index].inner is InnerStride.ZERO]
        # loaded once as a scalar: no store of this run can change it, but LLVM cannot know
        fixed = {index: operands[count + index].load_single() for index in constant}

        def emit_vectors(index: Value, lanes: int, mask: Value | None) -> None:
            inputs = {
                number: operands[count + number].spread(fixed[number], lanes)
                if number in fixed
                else operands[count + number].load(index, lanes, mask)
                for number in used
            }
            results = emit_expressions(emitter, expressions, inputs, lanes)
            for operand, result in zip(operands[:count], results, strict=True):
                operand.store(result, index, lanes, mask)

        emit_row(emitter, involved, length, emit_vectors)

    emit_nest(emitter, emit_run)
