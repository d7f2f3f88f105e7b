"""Programs as text: declarations and a body without lifetimes, before and after a pass."""

from collections.abc import Callable

import numpy as np
import pytest

from glowstone.backends.interpreter import Interpreter
from glowstone.lir import BufferKind, Program
from glowstone.lir.lifetimes import place_lifetimes
from glowstone.lir.parser import parse_program
from glowstone.lir.printer import print_statement
from glowstone.lir.verifier import verify_program

Rewrite = Callable[[Callable[[Program], bool], str, str], list[str]]


def outputs_of(program: Program) -> list[np.ndarray]:
    """What the program computes from inputs that depend on their names alone."""
    arrays = {
        buffer.name: np.random.default_rng(buffer.size).normal(size=buffer.shape).astype(buffer.element.dtype)
        for buffer in program.inputs
    }
    return list(Interpreter(program).run(arrays).values())


@pytest.fixture
def rewrite() -> Rewrite:
    """`rewrite(pass, declarations, body)` gives the instructions after the pass, having checked all that must hold.

    Declarations that the body does not name are left out.
    """

    def apply(function: Callable[[Program], bool], declarations: str, body: str) -> list[str]:
        used = [line for line in declarations.splitlines() if line and f"{line.split(':')[0].split()[1]}[" in body]
        program = parse_program("\n".join(["glowstone.lir 1", *used, "{", body, "}"]))
        place_lifetimes(program)
        verify_program(program)
        for buffer in program.buffers_of(BufferKind.CONSTANT):
            buffer.data = np.arange(buffer.size).reshape(buffer.shape).astype(buffer.element.dtype)
        expected = outputs_of(program)
        before = [print_statement(statement) for statement in program.instructions()]
        changed = function(program)
        after = [print_statement(statement) for statement in program.instructions()]
        assert changed is (before != after)
        verify_program(program)
        for found, wanted in zip(outputs_of(program), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        return after

    return apply
