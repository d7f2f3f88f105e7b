"""Pooling, blocked and plain: largest or mean value of windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import Value, memory_type, vector
from glowstone.backends.cpu.kernel_family import KernelFamily, KernelKey, emits, require_elements
from glowstone.backends.cpu.kernels.row_units import RowUnits, plan_rows
from glowstone.backends.cpu.kernels.sliding_window import SlidingWindow, Sweep, Window, taps_before
from glowstone.backends.cpu.target import Target
from glowstone.lir.instruction import Instruction
from glowstone.lir.operations.pooling import Pool
from glowstone.lir.table import KernelCall
from glowstone.types import ElementType

Y, X = 0, 1
FIRST_SPATIAL = 2
FLOATS = (ElementType.F32, ElementType.F64)
INTEGERS = (ElementType.I8, ElementType.U8, ElementType.I32, ElementType.I64)


@emits(Pool)
class PoolFamily(KernelFamily):
    """No variant."""

    def plan(self, instruction: Instruction, target: Target) -> KernelCall:
        operation = cast(Pool, instruction.operation)
        require_elements(instruction, *FLOATS, *(INTEGERS if operation.mode == "max" else ()))
        y, x = instruction.operands
        spatial = len(operation.window)
        taps = math.prod(operation.window)
        rows = plan_rows(y, spatial, row_work=taps * y.shape[1 + spatial])
        return KernelCall(
            KernelKey.of(instruction),
            units=rows.units,
            cost=target.cost(float(y.size * taps), y.element.size * (y.size + x.size)),
            derived=rows.derived,
        )

    def build(self, key: KernelKey, target: Target, emitter: Emitter) -> None:
        _Kernel(key, target, emitter).emit()


class _Kernel:
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

            def finish(coordinates: Sequence[Value], result: Value) -> None:
                self._store(target, coordinates, result)

            sliding.row(source, row, Sweep(neutral_value, neutral, self._combine, finish))

    def _neutral(self) -> float | int:
        if self.operation.mode == "average":
            return 0.0
        if self.element.is_float:
            return -math.inf
        return -(1 << (8 * self.element.size - 1)) if self.element.is_signed else 0

    def _plane(self, operand: int, image: Value, block: Value) -> Value:
        emitter = self.emitter
        terms = [(image, emitter.stride(operand, 0)), (block, emitter.stride(operand, 1))]
        return emitter.strided(emitter.pointer(operand), self.scalar, *terms)

    def _combine(self, result: Value, x: Value, _tap: Value) -> Value:
        if self.operation.mode == "average":
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
