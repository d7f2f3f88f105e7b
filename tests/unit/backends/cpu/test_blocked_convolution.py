"""Blocked convolution as machine code, against float64 convolution and against `interpret`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from blocked_layout import Operands, block, convolve, pack_dense, padding_lanes, random, unblock
from kernel_runner import run

from glowstone.backends.cpu.operations import BlockedConvolution
from glowstone.backends.cpu.register_tile import blocks_per_panel, grouped_blocks_per_panel
from glowstone.backends.cpu.target import Target
from glowstone.lir import Instruction
from glowstone.scalar import parse_expression

LANES = Target.host().channel_block
TOLERANCE = 64 * 2.0**-23  # of the largest value
BIAS_RELU = parse_expression("max(add(x0:f32, x1:f32), 0.0:f32)")
RESIDUAL = parse_expression("max(add(x0:f32, x1:f32), -0.5:f32)")
PLUS_ONE = parse_expression("add(x0:f32, 1.0:f32)")
SCALED = parse_expression("add(mul(x0:f32, x1:f32), x2:f32)")
SIGMOID = parse_expression("div(x0:f32, add(exp(sub(0.0:f32, x0:f32)), 1.0:f32))")
HARD_SWISH = parse_expression("mul(x0:f32, div(min(max(add(x0:f32, 3.0:f32), 0.0:f32), 6.0:f32), 6.0:f32))")


@dataclass(frozen=True)
class Case:
    """A convolution; pads are top, left, bottom, right."""

    batch: int = 1
    inputs: int = 16
    outputs: int = 16
    size: tuple[int, int] = (5, 5)
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = (0, 0, 0, 0)
    groups: int = 1

    @property
    def x(self) -> np.ndarray:
        return random(self.batch, self.inputs, *self.size, seed=1)

    @property
    def weights(self) -> np.ndarray:
        return random(self.outputs, self.inputs // self.groups, *self.kernel, seed=2)

    @property
    def sums(self) -> np.ndarray:
        return convolve(self.x, self.weights, self.strides, self.dilations, self.pads, self.groups)

    @property
    def panel(self) -> int:
        blocks = -(-self.outputs // self.groups // LANES)
        choose = blocks_per_panel if self.groups == 1 else grouped_blocks_per_panel
        return choose(Target.host(), blocks)

    def operation(self, epilogue=None) -> BlockedConvolution:
        return BlockedConvolution(self.strides, self.dilations, self.groups, self.panel, epilogue)

    def operands(self) -> Operands:
        """Output (of NaN), x and weights."""
        operands = Operands()
        operands.add(np.full_like(block(self.sums.astype(np.float32), LANES), np.nan))
        operands.add(block(self.x, LANES))
        operands.add(pack_dense(self.weights, LANES, self.panel, self.groups))
        return operands

    @property
    def integers(self) -> tuple[int, int, int]:
        return (self.pads[0], self.pads[1], self.outputs)


def assert_result(blocked: np.ndarray, expected: np.ndarray) -> None:
    channels = expected.shape[1]
    actual = unblock(blocked, channels)
    assert np.abs(actual - expected).max(initial=0) <= TOLERANCE * max(np.abs(expected).max(initial=0), 1e-30)
    assert (padding_lanes(blocked, channels) == 0).all()


def check(case: Case, operands: Operands, epilogue, expected: np.ndarray, unit_order=None) -> None:
    """Machine code against `expected`, and `interpret` against it too."""
    instruction = Instruction(case.operation(epilogue), tuple(operands.views), case.integers)
    result = run(instruction, operands.storages, unit_order)
    assert_result(result.arrays[0], expected)
    copies = {buffer: storage.copy() for buffer, storage in operands.storages.items()}
    arrays = [view.array(copies[view.buffer]) for view in instruction.operands]
    instruction.operation.interpret(arrays, instruction.integers)
    assert_result(arrays[0], expected)


SHAPES = [
    Case(inputs=1, outputs=1, size=(1, 1)),
    Case(inputs=3, outputs=17, size=(2, 1)),
    Case(inputs=17, outputs=3, size=(1, 3)),
    Case(inputs=65, outputs=65, size=(7, 7)),
    Case(inputs=8, outputs=40, size=(9, 8)),
    Case(batch=2, inputs=17, outputs=24, size=(3, 5), strides=(2, 2)),
    Case(batch=0, inputs=8, outputs=16),
    Case(inputs=16, outputs=16, size=(5, 9), kernel=(3, 3), pads=(1, 1, 1, 1)),
    Case(batch=2, inputs=3, outputs=17, size=(4, 4), kernel=(3, 3), pads=(1, 1, 1, 1)),
    Case(batch=3, inputs=9, outputs=9, size=(1, 1), kernel=(3, 3), pads=(1, 1, 1, 1)),
    Case(inputs=8, outputs=16, size=(2, 2), kernel=(5, 5), pads=(2, 2, 2, 2)),
    Case(inputs=8, outputs=16, size=(9, 7), kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)),
    Case(inputs=8, outputs=16, size=(9, 7), kernel=(3, 2), strides=(3, 1), pads=(0, 1, 2, 0)),
    Case(inputs=8, outputs=16, size=(9, 9), kernel=(3, 3), dilations=(2, 2), pads=(2, 2, 2, 2)),
    Case(inputs=8, outputs=16, size=(9, 9), kernel=(3, 3), dilations=(1, 2)),
    Case(inputs=8, outputs=16, size=(1, 9), kernel=(1, 7), pads=(0, 3, 0, 3)),
    Case(inputs=32, outputs=32, size=(5, 5), kernel=(3, 3), pads=(1, 1, 1, 1), groups=2),
    Case(batch=2, inputs=32, outputs=64, size=(3, 3), kernel=(1, 1), groups=4),
    Case(inputs=600, outputs=16, size=(5, 5), kernel=(2, 2)),  # a reduction in several slices
    Case(inputs=200, outputs=130, size=(24, 24)),  # several chunks and spans
]


@pytest.mark.parametrize("case", SHAPES, ids=str)
def test_shapes(case):
    check(case, case.operands(), None, case.sums)


@pytest.mark.parametrize("case", [SHAPES[3], SHAPES[8], SHAPES[-1]], ids=str)
def test_units_in_any_order(case):
    check(case, case.operands(), None, case.sums, unit_order=lambda units: reversed(range(units)))


@pytest.mark.parametrize("case", [SHAPES[1], SHAPES[3], SHAPES[8]], ids=str)
def test_bias_and_relu(case):
    bias = random(1, case.outputs, 1, 1, seed=3)
    operands = case.operands()
    operands.add_view(operands.add(block(bias, LANES)).broadcast(operands.views[0].shape))
    operands.views.pop(3)
    check(case, operands, BIAS_RELU, np.maximum(case.sums + bias, 0))


@pytest.mark.parametrize("case", [SHAPES[3], SHAPES[8], SHAPES[18]], ids=str)
def test_residual_in_place(case):
    residual = random(*case.sums.shape, seed=4)
    operands = case.operands()
    operands.storages[operands.views[0].buffer] = block(residual, LANES).reshape(-1)
    operands.add_view(operands.views[0])
    instruction = Instruction(case.operation(RESIDUAL), tuple(operands.views), case.integers)
    result = run(instruction, operands.storages)
    assert_result(result.arrays[0], np.maximum(case.sums + residual, -0.5))


def test_residual_with_one_image_for_all():
    case = Case(batch=3, inputs=8, outputs=17, size=(3, 4))
    residual = random(1, *case.sums.shape[1:], seed=5)
    operands = case.operands()
    view = operands.add(block(residual, LANES)).broadcast(operands.views[0].shape)
    operands.views[3] = view
    check(case, operands, RESIDUAL, np.maximum(case.sums + residual, -0.5))


def test_scalar_and_channel_per_image():
    case = Case(batch=2, inputs=8, outputs=17, size=(3, 4))
    shift, scale = random(1, 1, 1, 1, seed=6), random(2, 17, 1, 1, seed=7)
    operands = case.operands()
    shape = operands.views[0].shape
    operands.views[3:] = [operands.add(block(scale, LANES)).broadcast(shape)]
    operands.views[4:] = [operands.add(shift.reshape(1, 1, 1, 1, 1)).broadcast(shape)]
    check(case, operands, SCALED, case.sums * scale + shift)


@pytest.mark.parametrize(
    ("epilogue", "function"),
    [
        (PLUS_ONE, lambda x: x + 1),
        (SIGMOID, lambda x: x / (1 + np.exp(-x))),
        (HARD_SWISH, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    ],
)
def test_epilogues_keep_padding_lanes_zero(epilogue, function):
    case = SHAPES[8]
    check(case, case.operands(), epilogue, function(case.sums))


def test_nan_stays_out_of_padding_lanes():
    case = Case(inputs=3, outputs=5, size=(3, 3))
    operands = case.operands()
    storage = operands.storages[operands.views[1].buffer].reshape(operands.views[1].shape)
    storage[0, 0, 1, 1, 0] = np.nan
    result = run(Instruction(case.operation(), tuple(operands.views), case.integers), operands.storages)
    plain = unblock(result.arrays[0], 5)
    assert np.isnan(plain[0, :, 1, 1]).all()
    assert np.isnan(plain).sum() == 5
    assert (padding_lanes(result.arrays[0], 5) == 0).all()


@pytest.mark.parametrize("case", [SHAPES[5], SHAPES[8]], ids=str)
def test_windows_on_larger_buffers(case):
    """Output into the middle blocks of a concatenation, input from the middle blocks of one."""
    operands = case.operands()
    for number in (0, 1):
        view = operands.views[number]
        batch, blocks, *rest = view.shape
        wide = np.full((batch, blocks + 3, *rest), 7.0, np.float32)
        wide[:, 2 : 2 + blocks] = operands.storages.pop(view.buffer).reshape(view.shape)
        whole = operands.add(wide)
        operands.views.pop()
        operands.views[number] = whole.slice((0, 2, 0, 0, 0), view.shape)
    instruction = Instruction(case.operation(), tuple(operands.views), case.integers)
    result = run(instruction, operands.storages)
    assert_result(result.arrays[0], case.sums)
    view = operands.views[0]
    touched = np.zeros(view.buffer.size, bool)
    view.array(touched)[...] = True
    assert (result.contents[view.buffer][~touched] == 7.0).all()
