"""Kernels for every target refer to nothing outside themselves: no math library, no compiler support library."""

from __future__ import annotations

import pytest
from helpers.object_symbols import undefined_symbols

from glowstone.backends.cpu.compile import emit_object
from glowstone.backends.cpu.kernel_family import CpuPlanner
from glowstone.backends.cpu.operations import PackedMatMul
from glowstone.backends.cpu.product_tile import ProductTile, panel_width
from glowstone.backends.cpu.target import Target
from glowstone.lir import (
    Buffer,
    BufferKind,
    Convolution,
    Copy,
    Elementwise,
    Fill,
    Gather,
    Instruction,
    LayerNorm,
    MatMul,
    Reduce,
    Softmax,
)
from glowstone.scalar import CONVERSIONS, FUNCTIONS, Input, apply, cast, parse_expression, reinterpret
from glowstone.types import NARROW_FLOATS, ElementType

TARGETS = [
    "x86_64-unknown-linux-gnu/x86-64-v4",
    "x86_64-unknown-linux-gnu/x86-64-v3",
    "x86_64-unknown-linux-gnu/x86-64-v2",
    "aarch64-unknown-linux-gnu/generic",
    "riscv64-unknown-linux-gnu/generic-rv64/+a,+c,+d,+f,+m",
    "riscv64-unknown-linux-gnu/generic-rv64/+a,+c,+d,+f,+m,+v",
]
ON_BITS = ("and", "or", "xor", "not", "shift_left", "shift_right")
BIAS = parse_expression("max(add(x0:f32, x1:f32), 0.0:f32)")


def view(*shape, element=ElementType.F32):
    return Buffer("b", BufferKind.ACTIVATION, element, shape).view()


def elementwise(element: ElementType) -> Instruction:
    """Every function that the element type has, and a cast to every other type, in one kernel."""
    inputs = [Input(element, 0), Input(element, 1)]
    expressions = [cast(inputs[0], other) for other in ElementType]
    expressions += [cast(inputs[0], other, saturates=False) for other in NARROW_FLOATS]
    expressions += [reinterpret(inputs[0], other) for other in ElementType if other.bits == element.bits]
    for name, function in FUNCTIONS.items():
        if element.is_narrow or name in (*CONVERSIONS, "select") or (name in ON_BITS and element.is_float):
            continue
        expressions.append(apply(name, *inputs[: function.arity]))
    outputs = [view(3, 40, element=expression.element) for expression in expressions]
    return Instruction(
        Elementwise(tuple(expressions), 2), (*outputs, view(3, 40, element=element), view(3, 40, element=element))
    )


def instructions(target: Target) -> list[Instruction]:
    panel = panel_width(target)
    rows, bias = view(12, 40), view(1, 40).broadcast((12, 40))
    i64 = ElementType.I64
    return [
        Instruction(PackedMatMul(BIAS), (rows, view(12, 24), view(-(-40 // panel), 24, panel), bias)),
        Instruction(MatMul(BIAS), (rows, view(12, 24), view(24, 40), bias)),
        Instruction(MatMul(), (rows, view(12, 24), view(40, 24).transpose((1, 0)))),
        Instruction(MatMul(), tuple(view(*shape, element=i64) for shape in ((12, 40), (12, 24), (24, 40)))),
        Instruction(Copy(), (rows, view(40, 12).transpose((1, 0)))),
        Instruction(Copy(), (rows, view(12, 40))),
        Instruction(Fill(1), (rows,)),
        Instruction(Reduce("mean"), (view(12, 1), view(12, 40, 1))),
        Instruction(Reduce("max"), (view(12, 8), view(12, 40, 8))),
        Instruction(Softmax(), (view(12, 40, 1), view(12, 40, 1))),
        Instruction(Softmax(), (view(12, 40, 8), view(12, 40, 8))),
        Instruction(LayerNorm(1e-5), (rows, view(12, 40), bias, bias)),
        Instruction(Gather(), (view(1, 5, 40), view(1, 12, 40), view(5, element=i64))),
        Instruction(Convolution((1,), (1,), 1), (view(1, 4, 20), view(1, 4, 20), view(4, 4, 3)), (1,)),
    ]


@pytest.mark.parametrize("text", TARGETS)
def test_kernels(text):
    target = Target.parse(text)
    keys = [CpuPlanner(target).plan(instruction).key for instruction in instructions(target)]
    assert undefined_symbols(emit_object(keys, target)) == set()


ELEMENTS = [
    *(ElementType.F32, ElementType.F16, ElementType.I64),
    *(ElementType.F8E4M3FNUZ, ElementType.F8E5M2, ElementType.F8E8M0, ElementType.I4, ElementType.U2),
]


@pytest.mark.parametrize("element", ELEMENTS, ids=str)
@pytest.mark.parametrize("text", TARGETS)
def test_scalar_functions(text, element):
    target = Target.parse(text)
    key = CpuPlanner(target).plan(elementwise(element)).key
    assert undefined_symbols(emit_object([key], target)) == set()


@pytest.mark.parametrize("text", TARGETS)
def test_tiles_fill_the_registers(text):
    target = Target.parse(text)
    tile = ProductTile.of(target, panel_width(target))
    accumulators = tile.rows * tile.vectors
    assert tile.panel == panel_width(target)
    assert accumulators + tile.vectors + 1 <= target.register_count
    assert accumulators >= target.register_count // 2
