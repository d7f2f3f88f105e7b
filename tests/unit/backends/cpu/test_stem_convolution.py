"""Stem convolution as machine code, against float64 convolution and against `interpret`."""

from __future__ import annotations

import numpy as np
import pytest
from blocked_layout import Operands, block, convolve, pack_stem, padding_lanes, random, unblock
from kernel_runner import run

from glowstone.backends.cpu.operations import StemConvolution
from glowstone.backends.cpu.register_tile import blocks_per_panel
from glowstone.backends.cpu.target import Target
from glowstone.lir import Instruction
from glowstone.scalar import parse_expression

LANES = Target.host().channel_block
TOLERANCE = 64 * 2.0**-23  # of the largest value
BIAS_PLUS = parse_expression("max(add(add(x0:f32, x1:f32), x2:f32), 0.25:f32)")
SIGMOID = parse_expression("div(1.0:f32, add(exp(sub(0.0:f32, x0:f32)), 1.0:f32))")

# batch, input channels, output channels, size, kernel, strides, dilations, pads (top, left, bottom, right)
CASES = [
    (1, 1, 1, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    (2, 3, 17, (20, 23), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),
    (1, 3, 16, (30, 29), (7, 7), (2, 2), (1, 1), (3, 3, 3, 3)),
    (1, 1, 65, (5, 6), (3, 3), (1, 1), (2, 1), (2, 1, 2, 1)),
    (1, 4, 24, (2, 3), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
    (1, 3, 8, (9, 300), (3, 3), (1, 3), (1, 2), (0, 1, 1, 0)),
    (0, 3, 16, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(("case", "with_epilogue"), [(case, True) for case in CASES] + [(CASES[1], False)], ids=str)
def test_against_float64(case, with_epilogue):
    batch, inputs, outputs, size, kernel, strides, dilations, pads = case
    x, weights = random(batch, inputs, *size, seed=1), random(outputs, inputs, *kernel, seed=2)
    expected = convolve(x, weights, strides, dilations, pads)
    panel = blocks_per_panel(Target.host(), -(-outputs // LANES))
    operands = Operands()
    output = operands.add(np.full_like(block(expected.astype(np.float32), LANES), np.nan))
    operands.add(x)
    operands.add(pack_stem(weights, LANES, panel))
    epilogue = None
    if with_epilogue:
        epilogue = BIAS_PLUS
        bias, residual = random(1, outputs, 1, 1, seed=3), random(*expected.shape, seed=4)
        operands.views[3:] = [operands.add(block(bias, LANES)).broadcast(output.shape)]
        operands.storages[output.buffer] = block(residual, LANES).reshape(-1)
        operands.add_view(output)  # in place
        expected = np.maximum(expected + bias + residual, 0.25)
    operation = StemConvolution(strides, dilations, kernel, inputs, panel, epilogue)
    instruction = Instruction(operation, tuple(operands.views), (pads[0], pads[1], outputs))
    result = run(instruction, operands.storages, unit_order=lambda units: reversed(range(units)))
    copies = {buffer: storage.copy() for buffer, storage in operands.storages.items()}
    arrays = [view.array(copies[view.buffer]) for view in instruction.operands]
    operation.interpret(arrays, instruction.integers)
    for actual in (result.arrays[0], arrays[0]):
        plain = unblock(actual, outputs)
        assert np.abs(plain - expected).max(initial=0) <= TOLERANCE * np.abs(expected).max(initial=1e-30)
        assert (padding_lanes(actual, outputs) == 0).all()


def test_long_epilogue_keeps_padding_lanes_zero():
    x, weights = random(2, 3, 9, 8, seed=1), random(17, 3, 3, 3, seed=2)
    expected = sigmoid(convolve(x, weights, (2, 1), (1, 1), (1, 1, 1, 1)))
    panel = blocks_per_panel(Target.host(), -(-17 // LANES))
    operands = Operands()
    operands.add(np.full_like(block(expected.astype(np.float32), LANES), np.nan))
    operands.add(x)
    operands.add(pack_stem(weights, LANES, panel))
    operation = StemConvolution((2, 1), (1, 1), (3, 3), 3, panel, SIGMOID)
    result = run(Instruction(operation, tuple(operands.views), (1, 1, 17)), operands.storages)
    np.testing.assert_allclose(unblock(result.arrays[0], 17), expected, rtol=0, atol=2e-6)
    assert (padding_lanes(result.arrays[0], 17) == 0).all()
