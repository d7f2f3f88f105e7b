"""Direct convolution on channel blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from glowstone.backends.cpu.claims import claim_grain
from glowstone.backends.cpu.extra_operands import extra_kinds
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_channel_block, require_elements
from glowstone.backends.cpu.operations.blocked import BlockedConvolution
from glowstone.backends.cpu.pixel_tiling import Reduction, plan_tiling, table_bytes
from glowstone.backends.cpu.register_tile import pixels_per_tile
from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.lir.instruction import Instruction
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

POINT, WINDOW = "point", "window"
DENSE, INSIDE, PADDED = "dense", "inside", "padded"


@emits(BlockedConvolution)
class BlockedConvolutionFamily(KernelFamily):
    """Variant: point or window (is the kernel 1 x 1), where inputs stand, kinds of extras.

    Inputs are dense where a point kernel reads all pixels, which follow one another in the planes of an image: then
    each image is cut for itself. Else they may be inside, or padded, that is, taps may fall outside.

    Strides, dilations and groups are read from the call, behind the derived integers of the tiling, so that all
    convolutions with one epilogue share a kernel; the key's operation has 1 in their place.
    """

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, ElementType.F32)
        require_channel_block(instruction, target)
        operation = cast(BlockedConvolution, instruction.operation)
        y, x, w = instruction.operands[:3]
        panels, in_blocks, height, width, lanes_in, panel, lanes_out = w.shape
        taps = height * width
        all_pixels = y.shape[0] * y.shape[2] * y.shape[3]
        kinds = extra_kinds(instruction)
        place = _input_place(operation, instruction)
        table_taps = 0 if place == DENSE else taps
        images = y.shape[0] if place == DENSE else 1
        pixels = all_pixels // images if images else 0
        variant = (POINT if taps == 1 else WINDOW, place, *kinds)
        most = pixels_per_tile(target, panel)
        tiling = plan_tiling(
            pixels,
            most,
            panels // operation.groups,
            Reduction(in_blocks, taps * lanes_in * panel * lanes_out * FLOAT_BYTES, taps * lanes_in),
            pixel_bytes=in_blocks * lanes_in * operation.strides[0] * operation.strides[1] * FLOAT_BYTES,
            rows=1 + len(kinds) + table_taps,
        )
        spans = operation.groups * -(-(panels // operation.groups) // tiling.span)
        tile_bytes = most * panel * lanes_out * FLOAT_BYTES
        partial_sums = tile_bytes * (1 + tiling.chunk if tiling.slices > 1 else 1)
        units = spans * images * tiling.chunks if pixels else 0
        cost = target.cost(2.0 * all_pixels * w.size, FLOAT_BYTES * (y.size + x.size + w.size))
        return KernelCall(
            replace(KernelKey.of(instruction, variant), operation=_canonical(operation)),
            units=units,
            grain=claim_grain(units, cost),
            scratch=tile_bytes + table_bytes(table_taps, len(kinds), tiling.capacity) + partial_sums,
            cost=cost,
            derived=(*tiling.derived, *operation.strides, *operation.dilations, operation.groups),
        )

    def tile(self, instruction: Instruction, target: Target) -> str:
        panel = instruction.operands[2].shape[5]
        return f"{pixels_per_tile(target, panel)} pixels x {panel} blocks"

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.blocked_convolution import BlockedConvolutionGenerator

        BlockedConvolutionGenerator(key, target, emitter).emit()


def _canonical(operation: BlockedConvolution) -> BlockedConvolution:
    return replace(operation, strides=(1, 1), dilations=(1, 1), groups=1)


def _input_place(operation: BlockedConvolution, instruction: Instruction) -> str:
    """Whether pixels of a 1 x 1 kernel follow one another in memory, and else if all taps fall inside the input."""
    y, x, w = instruction.operands[:3]
    for axis in (0, 1):
        pad = instruction.integers[axis]
        last = (y.shape[2 + axis] - 1) * operation.strides[axis] + (w.shape[2 + axis] - 1) * operation.dilations[axis]
        if pad > 0 or last - pad >= x.shape[2 + axis]:
            return PADDED
    is_point = w.shape[2:4] == (1, 1) and operation.strides == (1, 1) and x.shape[2:] == y.shape[2:]
    return DENSE if is_point else INSIDE
