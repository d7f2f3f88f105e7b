"""Pooling: a window slides along the rows, combining by maximum or sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.row_units import RowUnits
from glowstone.backends.cpu.generators.sliding_window import SlidingWindow, Sweep, Window, taps_before
from glowstone.backends.cpu.ir_types import Value, memory_type, vector
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.backends.cpu.target import Target
from glowstone.lir.operations.pooling import Pool

Y, X = 0, 1
FIRST_SPATIAL = 2


class PoolGenerator:
    """Emits one kernel."""

    def __init__(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        self.operation = cast(Pool, key.operation)
        self.emitter = emitter
        self.element = key.operands[X].element
        self.scalar = memory_type(self.element)
        self.lanes = target.channel_block if self.operation.blocked else 1
        self.vector = vector(self.scalar, self.lanes)
        self.window = Window(self.operation.window, self.operation.strides, self.operation.dilations)
        self.spatial = len(self.operation.window)
        self.pads = [emitter.integer(axis) for axis in range(self.spatial)]

    def emit(self) -> None:
        emitter = self.emitter
        neutral_value = emitter.splat(ir.Constant(self.scalar, self._neutral()), self.lanes)
        neutral = emitter.stack(self.scalar, self.lanes)
        emitter.store(neutral_value, neutral, self.element.size)
        sliding = SlidingWindow(emitter, self.window, self.pads, self.vector, self.element.size)
        with RowUnits(emitter, self.spatial).rows() as (image, block, row):
            source, target = (self._plane(operand, image, block) for operand in (X, Y))

            def finish(positions: Sequence[Sequence[Value]], results: Sequence[Value]) -> None:
                for coordinates, result in zip(positions, results, strict=True):
                    self._store(target, coordinates, result)

            sliding.row(source, row, Sweep(neutral_value, neutral, self._combine, finish))

    def _neutral(self) -> float | int:
        if self.operation.mode != "max":
            return 0.0
        if self.element.is_float:
            return -math.inf
        return -(1 << (8 * self.element.size - 1)) if self.element.is_signed else 0

    def _plane(self, operand: int, image: Value, block: Value) -> Value:
        emitter = self.emitter
        terms = [(image, emitter.stride(operand, 0)), (block, emitter.stride(operand, 1))]
        return emitter.strided(emitter.pointer(operand), self.scalar, *terms)

    def _combine(self, result: Value, x: Value, _tap: Value) -> Value:
        if self.operation.mode != "max":
            return self.emitter.builder.fadd(result, x)
        if self.element.is_float:
            return self.emitter.float_maximum(x, result)
        return self.emitter.intrinsic("llvm.smax" if self.element.is_signed else "llvm.umax", self.vector, [result, x])

    def _store(self, target: Value, coordinates: Sequence[Value], result: Value) -> None:
        emitter = self.emitter
        terms = [(place, emitter.stride(Y, axis)) for axis, place in enumerate(coordinates, FIRST_SPATIAL)]
        if self.operation.mode == "average":
            count = emitter.builder.sitofp(self._divisor(coordinates), self.scalar)
            result = emitter.builder.fdiv(result, emitter.splat(count, self.lanes))
        emitter.store(result, emitter.strided(target, self.scalar, *terms), self.element.size)

    def _divisor(self, coordinates: Sequence[Value]) -> Value:
        """Elements of the window inside the input, or inside input and padding; at least 1."""
        emitter = self.emitter
        total = emitter.i64(1)
        for axis, place in enumerate(coordinates):
            start = emitter.sub(emitter.mul(place, self.window.strides[axis]), self.pads[axis])
            first: Value = emitter.i64(0)
            end = emitter.extent(X, FIRST_SPATIAL + axis)
            if self.operation.count_include_pad:
                first = emitter.sub(0, self.pads[axis])
                end = emitter.add(end, emitter.integer(self.spatial + axis))
            high = taps_before(emitter, start, end, axis, self.window)
            total = emitter.mul(total, emitter.sub(high, taps_before(emitter, start, first, axis, self.window)))
        return emitter.maximum(total, 1)
