"""Every instruction of the three models, as machine code and as interpreted, on the same memory.

The interpreter runs the program in checked mode (memory poisoned, padding lanes asserted zero); each instruction is
also run alone as machine code, on a copy of its buffers made just before.
"""

from __future__ import annotations

import numpy as np
from helpers.inputs import encoder_inputs

from glowstone.backends.interpreter import Interpreter
from glowstone.compiler import Plan
from glowstone.lir.table import FIRST_ARGUMENT_BASE, Address, TableEntry, encode
from glowstone.runtime.executable import address_of
from glowstone.runtime.runner import Runner, prepare
from glowstone.tools import recognizer, resnet50

LINE_BYTES = 64


def aligned_copy(array: np.ndarray) -> np.ndarray:
    raw = np.zeros(array.nbytes + LINE_BYTES, np.uint8)
    start = -raw.ctypes.data % LINE_BYTES
    copy = raw[start : start + array.nbytes].view(array.dtype)
    copy[:] = array.reshape(-1)
    return copy


class MachineCode:
    """Runs one instruction at a time on copies of its buffers."""

    def __init__(self, model, plan: Plan) -> None:
        engine = model._engine
        self._code = model._code
        self._planner = engine.settings.backend.planner
        self._kernels = engine.library.indices(plan.keys)
        self._library = engine.library
        self.copies = {}

    def before(self, number, instruction, show) -> None:
        buffers = dict.fromkeys(view.buffer for view in instruction.operands)
        self.copies = {buffer: aligned_copy(show(buffer.view())) for buffer in buffers}

    def run(self, instruction) -> None:
        call = self._planner.plan(instruction)
        addresses = {buffer: Address(FIRST_ARGUMENT_BASE + i, 0) for i, buffer in enumerate(self.copies)}
        words = encode([TableEntry(instruction, call, self._kernels[call.key])], addresses)
        library = self._library
        table = prepare(words, library.addresses, FIRST_ARGUMENT_BASE + len(self.copies), library.keep_alive)
        runner = Runner(self._code, table, 1, str)
        for base, copy in enumerate(self.copies.values(), FIRST_ARGUMENT_BASE):
            runner.bases[base] = address_of(copy)
        runner.run()


def largest_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Difference in units of the last place of the largest value; infinite where NaN and infinities differ."""
    if np.array_equal(found, expected, equal_nan=expected.dtype.kind == "f"):
        return 0.0
    finite = np.isfinite(expected)
    if expected.dtype.kind != "f" or not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
        return float("inf")
    unit = np.spacing(np.abs(expected[finite]).max())
    return float(np.abs(found[finite].astype(np.float64) - expected[finite].astype(np.float64)).max() / unit)


def assert_instructions_agree(model, inputs) -> None:
    plan = model._engine.reference_plan()
    machine = MachineCode(model, plan)
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


def test_sentence_encoder(encoder_model):
    assert_instructions_agree(encoder_model, encoder_inputs(1, 128))


def test_recognizer(recognizer_model):
    image = recognizer.prepare(recognizer.render_line("Glowstone 42"), 320)
    assert_instructions_agree(recognizer_model, {recognizer.INPUT_NAME: image})


def test_resnet50(resnet_model):
    assert_instructions_agree(resnet_model, {resnet50.INPUT_NAME: resnet50.sample_image(0)})
