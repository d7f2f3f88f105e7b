"""Selections, running sums and recurrences are generated for every target, whatever the host is."""

from __future__ import annotations

import pytest

from glowstone.backends.cpu.compile import emit_object
from glowstone.backends.cpu.kernel_family import CpuPlanner
from glowstone.backends.cpu.target import Target
from glowstone.lir import ArgReduce, Buffer, BufferKind, Cumulative, Instruction, Recurrence, TopK
from glowstone.scalar import Input, apply
from glowstone.types import ElementType

TARGETS = [
    "x86_64-unknown-linux-gnu/skylake-avx512",
    "x86_64-unknown-linux-gnu/x86-64-v2",
    "aarch64-unknown-linux-gnu/generic",
]


def view(element: ElementType, *shape: int):
    return Buffer("b", BufferKind.ACTIVATION, element, shape).view()


def instructions() -> list[Instruction]:
    f32, i64 = ElementType.F32, ElementType.I64
    state = apply("tanh", apply("add", Input(f32, 0), Input(f32, 1)))
    recurrent = [
        view(f32, 4, 2, 5),
        view(f32, 2, 5),
        view(f32, 4, 2, 5),
        view(f32, 5, 5),
        view(i64, 2),
        view(f32, 2, 5),
    ]
    result = [Instruction(Recurrence(1, (state,)), tuple(recurrent))]
    for element in (f32, ElementType.BF16, ElementType.U8):
        for inner in (1, 9):
            x = view(element, 2, 70, inner)
            result.append(Instruction(ArgReduce("max"), (view(i64, 2, inner), x)))
            result.append(Instruction(Cumulative("sum"), (view(element, 2, 70, inner), x)))
        for count in (3, 30):
            values = view(element, 2, count, 9)
            result.append(Instruction(TopK(), (values, view(i64, 2, count, 9), view(element, 2, 70, 9))))
    return result


@pytest.mark.parametrize("text", TARGETS)
def test_kernels_for(text):
    target = Target.parse(text)
    keys = []
    for instruction in instructions():
        instruction.verify()
        keys.append(CpuPlanner(target).plan(instruction).key)
    content = emit_object(keys, target)
    for key in keys:
        assert key.symbol.encode() in content
