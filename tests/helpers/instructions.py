"""Every instruction of a model, as machine code and as interpreted, on the same memory.

The interpreter runs the program in checked mode (memory poisoned, padding lanes asserted zero); each instruction is
also run alone as machine code, on a copy of its buffers made just before.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glowstone import Model
from glowstone.backends.interpreter import Interpreter
from glowstone.tools.stepping import IsolatedInstructions


def largest_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Difference in units of the last place of the largest value; infinite where NaN and infinities differ."""
    if np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f"):
        return 0.0
    finite = np.isfinite(expected)
    if expected.dtype.kind != "f" or not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    unit = np.spacing(np.abs(expected[finite]).max())
    return float(np.abs(found[finite].astype(np.float64) - expected[finite].astype(np.float64)).max() / unit)


def assert_instructions_agree(model: Model, inputs: Mapping[str, np.ndarray]) -> None:
    """Fail at the first instruction that is off by more than its operation's bound."""
    plan = model.engine.reference_plan()
    machine = IsolatedInstructions(model, plan)
    compared = []

    def after(number, instruction, show) -> None:
        machine.run(instruction)
        outputs = {view.buffer for view in instruction.outputs}
        for buffer, copy in machine.copies.items():
            error = largest_error(copy, show(buffer.view()).reshape(-1))
            bound = instruction.operation.ulp_bound if buffer in outputs else 0.0
            assert error <= bound, f"{number} {instruction.operation.name} {instruction.names}: {error} ulp in {buffer}"
        compared.append(number)

    Interpreter(plan.program, plan.memory).run(inputs, before=machine.before, after=after)
    assert compared == list(range(len(plan.instructions)))
