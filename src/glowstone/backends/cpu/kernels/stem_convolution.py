"""Convolution of few input channels in the plain layout, to channel blocks."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, cast

from glowstone.backends.cpu.claims import claim_grain
from glowstone.backends.cpu.extra_operands import extra_kinds
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_channel_block, require_elements
from glowstone.backends.cpu.operations.blocked import StemConvolution
from glowstone.backends.cpu.pixel_tiling import table_bytes
from glowstone.backends.cpu.register_tile import pixels_per_tile
from glowstone.backends.cpu.target import FLOAT_BYTES, Target
from glowstone.lir.instruction import Instruction
from glowstone.table import KernelCall
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

COPY_BYTES = 48 * 1024
"""Padded input rows of one unit."""
FEWEST_UNITS = 16


@dataclass(frozen=True)
class StemRows:
    """The derived integers, in the order of the call."""

    unit_rows: int
    """Output rows of a unit."""
    parts: int
    """Units of an image."""
    input_rows: int
    """Padded input rows of a unit."""
    pitch: int
    """Columns of a padded input row."""


@emits(StemConvolution)
class StemConvolutionFamily(KernelFamily):
    """Variant: kinds of extras."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        require_elements(instruction, ElementType.F32)
        require_channel_block(instruction, target)
        y, x, w = instruction.operands[:3]
        kinds = extra_kinds(instruction)
        rows = _plan_rows(cast(StemConvolution, instruction.operation), y.shape)
        panel = w.shape[4]
        sums = pixels_per_tile(target, panel) * panel * target.channel_block * FLOAT_BYTES
        table = table_bytes(1, len(kinds), rows.unit_rows * y.shape[3])
        copy = x.shape[1] * rows.input_rows * rows.pitch * FLOAT_BYTES
        units = y.shape[0] * rows.parts if y.size else 0
        flops = 2.0 * w.size * y.shape[0] * y.shape[2] * y.shape[3]
        cost = target.cost(flops, FLOAT_BYTES * (y.size + x.size + w.size))
        return KernelCall(
            KernelKey.of(instruction, kinds),
            units=units,
            grain=claim_grain(units, cost),
            scratch=sums + table + copy,
            cost=cost,
            derived=astuple(rows),
        )

    def tile(self, instruction: Instruction, target: Target) -> str:
        panel = instruction.operands[2].shape[4]
        return f"{pixels_per_tile(target, panel)} pixels x {panel} blocks"

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        from glowstone.backends.cpu.generators.stem_convolution import StemConvolutionGenerator

        StemConvolutionGenerator(key, target, emitter).emit()


def _plan_rows(operation: StemConvolution, y_shape: tuple[int, ...]) -> StemRows:
    batch, _, height, width, _ = y_shape
    reach = [(operation.kernel[axis] - 1) * operation.dilations[axis] + 1 for axis in (0, 1)]
    pitch = max(width - 1, 0) * operation.strides[1] + reach[1]
    affordable = COPY_BYTES // (FLOAT_BYTES * pitch * max(operation.channels, 1))
    rows = max(1, min((affordable - reach[0]) // operation.strides[0] + 1, -(-height * batch // FEWEST_UNITS), height))
    return StemRows(rows, -(-height // rows), (rows - 1) * operation.strides[0] + reach[0], pitch)
