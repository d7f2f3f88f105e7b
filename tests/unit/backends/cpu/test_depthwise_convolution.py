"""Depthwise convolution as machine code, against float64 convolution and against `interpret`."""

from __future__ import annotations

import numpy as np
import pytest
from blocked_layout import Operands, block, convolve, pack_depthwise, padding_lanes, random, unblock
from kernel_runner import run

from glowstone.backends.cpu.operations import DepthwiseConvolution
from glowstone.backends.cpu.target import Target
from glowstone.lir import Instruction
from glowstone.scalar import parse_expression

LANES = Target.host().channel_block
TOLERANCE = 64 * 2.0**-23  # of the largest value

# batch, channels, size, kernel, strides, dilations, pads (top, left, bottom, right)
CASES = [
    (1, 1, (1, 1), (1, 1), (1, 1), (1, 1), (0, 0, 0, 0)),
    (2, 17, (7, 5), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
    (1, 8, (9, 13), (3, 3), (2, 2), (1, 1), (1, 1, 1, 1)),
    (1, 9, (8, 14), (3, 3), (2, 1), (1, 1), (0, 1, 1, 1)),
    (1, 16, (11, 20), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
    (3, 3, (2, 2), (5, 5), (1, 1), (1, 1), (2, 2, 2, 2)),
    (1, 8, (12, 12), (3, 3), (1, 1), (2, 3), (2, 3, 2, 3)),
    (1, 8, (1, 9), (1, 7), (3, 3), (1, 1), (0, 3, 0, 3)),
    (2, 10, (15, 9), (7, 7), (1, 1), (1, 1), (3, 3, 3, 3)),  # too large to unroll but for its columns
    (1, 11, (17, 31), (7, 7), (1, 2), (2, 1), (3, 3, 3, 3)),
    (1, 9, (4, 50), (2, 17), (1, 1), (1, 1), (0, 8, 1, 8)),  # too wide even for that
    (0, 8, (4, 4), (3, 3), (1, 1), (1, 1), (1, 1, 1, 1)),
]


@pytest.mark.parametrize(
    ("case", "floor"), [(case, 0.25) for case in CASES] + [(CASES[1], None), (CASES[9], 0.0), (CASES[1], 0.0)], ids=str
)
def test_against_float64(case, floor):
    """The epilogue, if there is a floor, keeps zero where that is 0."""
    batch, channels, size, kernel, strides, dilations, pads = case
    x, weights = random(batch, channels, *size, seed=1), random(channels, *kernel, seed=2)
    expected = convolve(x, weights[:, None], strides, dilations, pads, groups=channels)
    operands = Operands()
    output = operands.add(np.full_like(block(expected.astype(np.float32), LANES), np.nan))
    operands.add(block(x, LANES))
    operands.add(pack_depthwise(weights, LANES))
    epilogue = None
    if floor is not None:
        epilogue = parse_expression(f"max(add(add(x0:f32, x1:f32), x2:f32), {floor}:f32)")
        bias, residual = random(1, channels, 1, 1, seed=3), random(*expected.shape, seed=4)
        operands.views[3:] = [operands.add(block(bias, LANES)).broadcast(output.shape)]
        operands.storages[output.buffer] = block(residual, LANES).reshape(-1)
        operands.add_view(output)  # in place
        expected = np.maximum(expected + bias + residual, floor)
    operation = DepthwiseConvolution(strides, dilations, kernel, epilogue)
    instruction = Instruction(operation, tuple(operands.views), (pads[0], pads[1], channels))
    result = run(instruction, operands.storages, unit_order=lambda units: reversed(range(units)))
    copies = {buffer: storage.copy() for buffer, storage in operands.storages.items()}
    arrays = [view.array(copies[view.buffer]) for view in instruction.operands]
    operation.interpret(arrays, instruction.integers)
    for actual in (result.arrays[0], arrays[0]):
        plain = unblock(actual, channels)
        assert np.abs(plain - expected).max(initial=0) <= TOLERANCE * np.abs(expected).max(initial=1e-30)
        assert (padding_lanes(actual, channels) == 0).all()
