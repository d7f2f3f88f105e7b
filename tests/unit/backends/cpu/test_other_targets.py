"""Convolution and pooling kernels are generated for every target, whatever the host is."""

from __future__ import annotations

import re

import pytest

from glowstone.backends.cpu.compile import assembly, emit_object
from glowstone.backends.cpu.kernel_family import CpuPlanner, KernelKey
from glowstone.backends.cpu.operations import BlockedConvolution, DepthwiseConvolution, StemConvolution
from glowstone.backends.cpu.probe import probe_vector_unit, stated_vector_unit
from glowstone.backends.cpu.register_tile import blocks_per_panel, pixels_per_tile
from glowstone.backends.cpu.target import Target
from glowstone.errors import UnsupportedError
from glowstone.lir import Buffer, BufferKind, Instruction, Pool
from glowstone.scalar import parse_expression
from glowstone.types import ElementType

RELU = parse_expression("max(x0:f32, 0.0:f32)")
# target, its vector bytes, registers, channel block, and how its assembly multiplies and adds vectors
TARGETS = [
    ("x86_64-unknown-linux-gnu/skylake-avx512", 64, 32, 16, r"vfmadd\w+ps\b.*%zmm"),
    ("x86_64-unknown-linux-gnu/x86-64-v3", 32, 16, 8, r"vfmadd\w+ps\b.*%ymm"),
    ("x86_64-unknown-linux-gnu/x86-64-v2", 16, 16, 8, r"mulps\b.*%xmm"),
    ("aarch64-unknown-linux-gnu/generic", 16, 32, 8, r"fmla\tv\d+\.4s"),
]


def instructions(target: Target) -> list[Instruction]:
    lanes = target.channel_block
    panel = blocks_per_panel(target, 4)

    def view(*shape: int):
        return Buffer("b", BufferKind.ACTIVATION, ElementType.F32, shape).view()

    x, y = view(1, 2, 14, 14, lanes), view(1, 4, 14, 14, lanes)
    dense = view(-(-4 // panel), 2, 3, 3, lanes, panel, lanes)
    stem = view(-(-4 // panel), 3, 3, 3, panel, lanes)
    once = (1, 1)
    return [
        Instruction(BlockedConvolution(once, once, 1, panel, RELU), (y, x, dense), (1, 1, 4 * lanes)),
        Instruction(StemConvolution(once, once, (3, 3), 3, panel, RELU), (y, view(1, 3, 14, 14), stem), (1, 1, 60)),
        Instruction(DepthwiseConvolution(once, once, (3, 3), RELU), (y, y, view(4, 3, 3, lanes)), (1, 1, 60)),
        Instruction(Pool("average", (3, 3), once, once, False, True), (y, y), (1, 1)),
    ]


@pytest.mark.parametrize(("text", "vector_bytes", "registers", "channel_block", "pattern"), TARGETS)
def test_kernels_for(text, vector_bytes, registers, channel_block, pattern):
    target = Target.parse(text)
    assert (target.vector_bytes, target.register_count, target.channel_block) == (
        vector_bytes,
        registers,
        channel_block,
    )
    assert target.text == text
    keys = []
    for instruction in instructions(target):
        instruction.verify()
        keys.append(CpuPlanner(target).plan(instruction).key)
    content = emit_object(keys, target)
    assert content[:4] == b"\x7fELF"
    for key in keys:
        assert isinstance(key, KernelKey)
        assert key.symbol.encode() in content


@pytest.mark.parametrize(("text", "vector_bytes", "registers", "channel_block", "pattern"), TARGETS)
def test_inner_loop_of_convolution(text, vector_bytes, registers, channel_block, pattern):
    """Whole registers, all sums kept in them: hardly anything goes to the stack."""
    target = Target.parse(text)
    key = CpuPlanner(target).plan(instructions(target)[0]).key
    blocks = re.split(r"\n(?=\.LBB)", assembly(key, target))
    loop = max(blocks, key=lambda block: len(re.findall(pattern, block)))
    panel = blocks_per_panel(target, 4)
    tile = channel_block * 4 // vector_bytes * panel * pixels_per_tile(target, panel)
    products = len(re.findall(pattern, loop))
    assert products % tile == 0
    assert products >= 4 * tile
    spilled = re.findall(r"[xyz]mm\d+.*\(%rsp\)|\(%rsp\).*[xyz]mm\d+|\b[qv]\d+.*\[sp", loop)
    assert len(spilled) <= products // 10


def test_same_bytes_again():
    target = Target.host()
    keys = [CpuPlanner(target).plan(instruction).key for instruction in instructions(target)]
    assert emit_object(keys, target) == emit_object(keys, target)


@pytest.mark.parametrize("text", ["", "x86_64", "/znver3", "a/b/c/d"])
def test_not_a_target(text):
    with pytest.raises(ValueError, match="target"):
        Target.parse(text)


@pytest.mark.parametrize(
    ("cpu", "features"),
    [
        ("znver3", "+avx,+fma,-avx512f"),
        ("haswell", "+avx,-avx512f,-fma"),
        ("x86-64", "-avx,-avx512f,-fma"),
        ("skylake-avx512", "+avx,+avx512f,+fma"),
    ],
)
def test_features_say_what_llvm_says(cpu, features):
    triple = "x86_64-unknown-linux-gnu"
    assert stated_vector_unit(triple, features) == probe_vector_unit(triple, cpu, features)


def test_host_needs_no_llvm_to_be_described():
    host = Target.host()
    assert stated_vector_unit(host.triple, host.features) == probe_vector_unit(host.triple, host.cpu, host.features)


def test_a_name_alone_says_nothing():
    assert stated_vector_unit("x86_64-unknown-linux-gnu", "") is None


def test_channel_block_of_another_target_is_refused():
    instruction = instructions(Target.parse(TARGETS[0][0]))[0]
    with pytest.raises(UnsupportedError, match="channel block"):
        CpuPlanner(Target.parse(TARGETS[1][0])).plan(instruction)


def test_element_type_without_kernel_is_refused():
    view = Buffer("b", BufferKind.ACTIVATION, ElementType.F16, (1, 3, 8, 8)).view()
    with pytest.raises(UnsupportedError, match="element types"):
        CpuPlanner(Target.host()).plan(Instruction(Pool("max", (1, 1), (1, 1), (1, 1)), (view, view), (0, 0)))
