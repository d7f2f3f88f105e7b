"""Winograd convolution: transform a block of input tiles, multiply at each point, transform the sums back and finish.

The points are those of a transformed tile: 16 or 36. Transformed inputs lie in scratch as [tiles, points, depth], sums
as [tiles, points, channels of the unit], so that a tile is written and read where it is small enough for the first
cache; each tile stands a cache line further than it need: at distances of powers of two they would fall on the same
lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.block_epilogue import BlockEpilogue, Epilogue, PixelOffsets
from glowstone.backends.cpu.generators.memory import InnerOperand
from glowstone.backends.cpu.generators.product import LeftRows, Panel, ProductEmitter, Results
from glowstone.backends.cpu.ir_types import F32, Value
from glowstone.backends.cpu.kernel_family import InnerStride, KernelKey
from glowstone.backends.cpu.kernels.winograd_convolution import LINE_FLOATS
from glowstone.backends.cpu.operations.winograd import WinogradConvolution
from glowstone.backends.cpu.product_tile import ProductTile, panel_width
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.winograd_transforms import FILTERINGS, Matrix
from glowstone.types import ElementType

Y, X, U = range(3)
COLUMNS, TILES, BLOCK_TILES, BLOCKS, GROUP_PANELS, GROUPS = range(6)


class WinogradGenerator:
    """Emits one kernel."""

    def __init__(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        operation = cast(WinogradConvolution, key.operation)
        self._emitter = emitter
        self._form = FILTERINGS[operation.tile]
        self._points = self._form.points
        self._lanes = target.channel_block
        self._panel = panel_width(target)
        self._tile = ProductTile.of(target, self._panel)
        self._epilogue = Epilogue(emitter, operation.epilogue, tuple(map(str, key.variant)), self._lanes)
        self._patch = emitter.stack(F32, self._form.products * self._lanes)
        self._half = emitter.stack(F32, self._form.products * self._lanes)
        self._depth = emitter.extent(U, 2)
        channels, points = emitter.mul(emitter.derived(GROUP_PANELS), self._panel), self._form.products
        self._inputs_apart = emitter.add(emitter.mul(points, self._depth), LINE_FLOATS)
        self._sums_apart = emitter.add(emitter.mul(points, channels), LINE_FLOATS)

    def emit(self) -> None:
        """Units are (image, block of tiles, group of panels)."""
        emitter = self._emitter
        product = ProductEmitter(emitter, self._tile, None)
        inputs = emitter.scratch
        sums = emitter.offset(inputs, emitter.mul(emitter.derived(BLOCK_TILES), self._inputs_apart))
        with emitter.for_units() as units:
            rest, group = emitter.divmod(units.index, emitter.derived(GROUPS))
            image, block = emitter.divmod(rest, emitter.derived(BLOCKS))
            first = emitter.mul(block, emitter.derived(BLOCK_TILES))
            count = emitter.minimum(emitter.derived(BLOCK_TILES), emitter.sub(emitter.derived(TILES), first))
            unit = _Unit(emitter, image, first, count, group, self._panel, self._form.tile)
            self._transform_inputs(unit, inputs)
            self._multiply(product, unit, inputs, sums)
            self._transform_sums(unit, sums)

    # Inputs

    def _transform_inputs(self, unit: _Unit, inputs: Value) -> None:
        emitter = self._emitter
        with emitter.for_range(0, unit.count) as tiles:
            corner = unit.corner(tiles.index)
            with emitter.for_range(0, emitter.extent(X, 1)) as blocks:
                plane = emitter.strided(
                    emitter.pointer(X), F32, (unit.image, emitter.stride(X, 0)), (blocks.index, emitter.stride(X, 1))
                )
                source, pitch = self._tile_source(plane, corner)
                column = emitter.mul(blocks.index, self._lanes)
                target = emitter.strided(inputs, F32, (tiles.index, self._inputs_apart), (column, 1))
                self._transform_tile(source, pitch, target)

    def _tile_source(self, plane: Value, corner: tuple[Value, Value]) -> tuple[Value, Value]:
        """Address and row pitch of a tile's patch: in the input, or a copy with zeros where it leaves the input."""
        emitter = self._emitter
        top = emitter.sub(corner[0], emitter.integer(0))
        left = emitter.sub(corner[1], emitter.integer(1))
        height, width = emitter.extent(X, 2), emitter.extent(X, 3)
        inside = emitter.both(
            emitter.both(emitter.compare(top, ">=", 0), emitter.compare(emitter.add(top, self._points), "<=", height)),
            emitter.both(emitter.compare(left, ">=", 0), emitter.compare(emitter.add(left, self._points), "<=", width)),
        )
        outside = emitter.builder.not_(inside)
        with emitter.if_true(outside):
            self._copy_patch(plane, top, left)
        direct = emitter.strided(plane, F32, (top, emitter.stride(X, 2)), (left, emitter.stride(X, 3)))
        source = emitter.select(inside, direct, self._patch)
        pitch = emitter.select(inside, emitter.stride(X, 2), emitter.i64(self._points * self._lanes))
        return source, pitch

    def _copy_patch(self, plane: Value, top: Value, left: Value) -> None:
        """Zeros, and over them the part of the patch that lies in the input."""
        emitter, lanes = self._emitter, self._lanes
        for place in range(self._form.products):
            emitter.store_floats(emitter.zeros(lanes), emitter.offset(self._patch, place * lanes))
        first_row, end_row = self._inside(top, emitter.extent(X, 2))
        first_column, end_column = self._inside(left, emitter.extent(X, 3))
        with emitter.for_range(first_row, end_row) as rows:
            row = emitter.add(top, rows.index)
            source = emitter.strided(plane, F32, (row, emitter.stride(X, 2)), (left, emitter.stride(X, 3)))
            target = emitter.offset(self._patch, emitter.mul(rows.index, self._points * lanes))
            with emitter.for_range(first_column, end_column) as columns:
                place = emitter.mul(columns.index, lanes)
                emitter.store_floats(
                    emitter.load_floats(emitter.offset(source, place), lanes), emitter.offset(target, place)
                )

    def _inside(self, start: Value, extent: Value) -> tuple[Value, Value]:
        """First and end of the patch's positions along an axis that lie in the input."""
        emitter = self._emitter
        first = emitter.minimum(emitter.maximum(emitter.sub(0, start), 0), self._points)
        end = emitter.minimum(emitter.maximum(emitter.sub(extent, start), 0), self._points)
        return first, end

    def _transform_tile(self, source: Value, pitch: Value, target: Value) -> None:
        """B^T d B: down the columns into a buffer, then along its rows into scratch, a vector at every point."""
        emitter, lanes = self._emitter, self._lanes
        with emitter.for_range(0, self._points) as columns:
            place = emitter.mul(columns.index, lanes)
            column = emitter.offset(source, place)
            values = [
                emitter.load_floats(emitter.strided(column, F32, (row, pitch)), lanes) for row in range(self._points)
            ]
            for row, value in enumerate(self._combined(self._form.input_transform, values)):
                emitter.store_floats(value, emitter.strided(self._half, F32, (row, self._points * lanes), (place, 1)))
        with emitter.for_range(0, self._points) as rows:
            row_start = emitter.offset(self._half, emitter.mul(rows.index, self._points * lanes))
            values = [emitter.load_floats(emitter.offset(row_start, i * lanes), lanes) for i in range(self._points)]
            first = emitter.mul(rows.index, self._points)
            for column_number, value in enumerate(self._combined(self._form.input_transform, values)):
                point = emitter.add(first, column_number)
                emitter.store_floats(value, emitter.strided(target, F32, (point, self._depth)))

    def _combined(self, matrix: Matrix, values: Sequence[Value]) -> list[Value]:
        """The matrix times a column of vectors."""
        return [self._combination(row, values) for row in matrix]

    def _combination(self, factors: Sequence[float], values: Sequence[Value]) -> Value:
        """A sum of vectors times small numbers, larger factors first, of equal ones the positive."""
        emitter, builder = self._emitter, self._emitter.builder
        total: Value | None = None
        for factor, value in sorted(zip(factors, values, strict=True), key=lambda term: (-abs(term[0]), -term[0])):
            if factor == 0:
                continue
            if total is None:
                total = value if factor == 1 else builder.fmul(value, emitter.splat(emitter.f32(factor), self._lanes))
            elif factor == 1:
                total = builder.fadd(total, value)
            elif factor == -1:
                total = builder.fsub(total, value)
            else:
                total = emitter.multiply_add(value, emitter.splat(emitter.f32(factor), self._lanes), total)
        assert total is not None
        return total

    # Products

    def _multiply(self, product: ProductEmitter, unit: _Unit, inputs: Value, sums: Value) -> None:
        """For every point and panel: [tiles, depth] times [depth, panel]."""
        emitter, panel = self._emitter, self._panel
        panels = emitter.extent(U, 1)
        channels = unit.channels
        with emitter.for_range(0, self._form.products) as points:
            rows = emitter.offset(inputs, emitter.mul(points.index, self._depth))
            point_sums = emitter.offset(sums, emitter.mul(points.index, channels))
            with emitter.for_range(unit.first_panel, unit.end_panel(panels)) as loop:
                number = emitter.add(emitter.mul(points.index, panels), loop.index)
                weights = emitter.offset(emitter.pointer(U), emitter.mul(emitter.mul(number, self._depth), panel))
                column = emitter.mul(emitter.sub(loop.index, unit.first_panel), panel)
                place = InnerOperand(
                    emitter, ElementType.F32, InnerStride.ONE, emitter.offset(point_sums, column), emitter.i64(1)
                )
                results = Results([place], [self._sums_apart], emitter.i64(panel))
                left = LeftRows(rows, self._inputs_apart, 1)
                following = emitter.offset(weights, emitter.mul(self._depth, panel))
                product.emit_rows(left, Panel(weights, panel), self._depth, results, unit.count, following)

    # Sums

    def _transform_sums(self, unit: _Unit, sums: Value) -> None:
        emitter, lanes = self._emitter, self._lanes
        blocks_per_panel = self._panel // lanes
        first_block = emitter.mul(unit.first_panel, blocks_per_panel)
        end_block = emitter.minimum(
            emitter.mul(unit.end_panel(emitter.extent(U, 1)), blocks_per_panel), emitter.extent(Y, 1)
        )
        with emitter.for_range(0, unit.count) as tiles:
            corner = unit.corner(tiles.index)
            with emitter.for_range(first_block, end_block) as blocks:
                column = emitter.mul(emitter.sub(blocks.index, first_block), lanes)
                source = emitter.strided(sums, F32, (tiles.index, self._sums_apart), (column, 1))
                self._finish_tile(unit, source, corner, self._epilogue.block(blocks.index))

    def _finish_tile(self, unit: _Unit, source: Value, corner: tuple[Value, Value], epilogue: BlockEpilogue) -> None:
        """A^T m A: down the columns into a buffer, then along its rows; pixels inside the output are stored."""
        emitter, lanes = self._emitter, self._lanes
        with emitter.for_range(0, self._points) as columns:
            values = [
                emitter.load_floats(
                    emitter.strided(source, F32, (emitter.add(columns.index, row * self._points), unit.channels)),
                    lanes,
                )
                for row in range(self._points)
            ]
            place = emitter.mul(columns.index, lanes)
            for row, value in enumerate(self._combined(self._form.output_transform, values)):
                emitter.store_floats(value, emitter.strided(self._half, F32, (row, self._points * lanes), (place, 1)))
        height = emitter.minimum(self._form.tile, emitter.sub(emitter.extent(Y, 2), corner[0]))
        width = emitter.minimum(self._form.tile, emitter.sub(emitter.extent(Y, 3), corner[1]))
        with emitter.for_range(0, height) as rows:
            row_start = emitter.offset(self._half, emitter.mul(rows.index, self._points * lanes))
            values = [emitter.load_floats(emitter.offset(row_start, i * lanes), lanes) for i in range(self._points)]
            for number, value in enumerate(self._combined(self._form.output_transform, values)):
                emitter.store_floats(value, emitter.offset(self._patch, number * lanes))
            line = emitter.add(corner[0], rows.index)
            places = [emitter.minimum(column, emitter.sub(width, 1)) for column in range(self._form.tile)]
            results = [
                emitter.load_floats(emitter.offset(self._patch, emitter.mul(place, lanes)), lanes) for place in places
            ]
            pixels = [self._offsets(unit, (line, emitter.add(corner[1], place))) for place in places]
            epilogue.store_group(results, pixels)

    def _offsets(self, unit: _Unit, pixel: tuple[Value, Value]) -> PixelOffsets:
        own = {operand: self._offset(operand, unit, pixel) for operand in self._epilogue.own_operands}
        return PixelOffsets(self._offset(Y, unit, pixel), own)

    def _offset(self, operand: int, unit: _Unit, pixel: tuple[Value, Value]) -> Value:
        emitter = self._emitter
        total = emitter.mul(unit.image, emitter.stride(operand, 0))
        for axis, coordinate in enumerate(pixel, 2):
            total = emitter.add(total, emitter.mul(coordinate, emitter.stride(operand, axis)))
        return total


class _Unit:
    """One unit: an image, a block of its tiles, a group of panels."""

    def __init__(
        self, emitter: Emitter, image: Value, first: Value, count: Value, group: Value, panel: int, tile: int
    ) -> None:
        self._emitter = emitter
        self._tile = tile
        self.image = image
        self.count = count
        self.first_panel = emitter.mul(group, emitter.derived(GROUP_PANELS))
        self.channels = emitter.mul(emitter.derived(GROUP_PANELS), panel)
        """Row length of the sums."""
        self._first = first

    def end_panel(self, panels: Value) -> Value:
        """The panel after the last of the group."""
        emitter = self._emitter
        return emitter.minimum(emitter.add(self.first_panel, emitter.derived(GROUP_PANELS)), panels)

    def corner(self, tile: Value) -> tuple[Value, Value]:
        """Output row and column of the first pixel of a tile of the block."""
        emitter = self._emitter
        row, column = emitter.divmod(emitter.add(self._first, tile), emitter.derived(COLUMNS))
        return emitter.mul(row, self._tile), emitter.mul(column, self._tile)
