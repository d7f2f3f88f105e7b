"""Bodies of poolings with positions: every window is walked tap by tap, the best value and its place carried along."""

from __future__ import annotations

import math
from dataclasses import dataclass

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.generators.arithmetic import Arithmetic
from glowstone.backends.cpu.ir_types import I1, Value
from glowstone.backends.cpu.math.casts import emit_from_storage, emit_to_storage, storage_type
from glowstone.lir.operations import PoolWithIndices
from glowstone.types import ElementType

Y, INDICES, X = range(3)
PER_UNIT, RESULTS = range(2)
FIRST_SPATIAL = 2


def emit_pool_with_indices(emitter: Emitter, operation: PoolWithIndices) -> None:
    """Units are ranges of results."""
    rank = emitter.key.operands[Y].rank
    with emitter.for_units() as units:
        first = emitter.mul(units.index, emitter.derived(PER_UNIT))
        last = emitter.minimum(emitter.add(first, emitter.derived(PER_UNIT)), emitter.derived(RESULTS))
        with emitter.for_range(first, last) as results:
            places = emitter.unravel(results.index, [emitter.extent(Y, axis) for axis in range(rank)])
            _Window(emitter, operation, places).emit()


@dataclass(frozen=True)
class _Window:
    """The window of one result; `places` are the result's indices."""

    emitter: Emitter
    operation: PoolWithIndices
    places: list[Value]

    @property
    def _element(self) -> ElementType:
        return self.emitter.key.operands[X].element

    def emit(self) -> None:
        emitter = self.emitter
        start = [Arithmetic(emitter, self._element, 1).lowest(), emitter.i64(-1)]
        with emitter.for_range(0, math.prod(self.operation.window), carried=start) as taps:
            best, position = taps.values
            inside, coordinates = self._coordinates(taps.index)
            value = self._load(coordinates)
            takes = emitter.both(inside, self._is_better(value, best, position))
            taken = emitter.select(takes, self._position(coordinates), position)
            taps.carry([emitter.select(takes, value, best), taken])
        best, position = taps.results
        self._store(Y, self._element, best)
        self._store(INDICES, ElementType.I64, position)

    def _coordinates(self, tap: Value) -> tuple[Value, list[Value]]:
        """Whether the tap lies inside x, and where on each spatial axis (0 where it does not)."""
        emitter, operation = self.emitter, self.operation
        offsets = emitter.unravel(tap, list(operation.window))
        inside: Value = I1(1)
        coordinates = []
        for axis, offset in enumerate(offsets):
            start = emitter.sub(
                emitter.mul(self.places[FIRST_SPATIAL + axis], operation.strides[axis]), emitter.integer(axis)
            )
            place = emitter.add(start, emitter.mul(offset, operation.dilations[axis]))
            is_inside = emitter.builder.icmp_unsigned("<", place, emitter.extent(X, FIRST_SPATIAL + axis))
            inside = emitter.both(inside, is_inside)
            coordinates.append(emitter.select(is_inside, place, emitter.i64(0)))
        return inside, coordinates

    def _load(self, coordinates: list[Value]) -> Value:
        emitter, kind = self.emitter, storage_type(self._element)
        terms = [
            (place, emitter.stride(X, axis)) for axis, place in enumerate([*self.places[:FIRST_SPATIAL], *coordinates])
        ]
        stored = emitter.load(emitter.strided(emitter.pointer(X), kind, *terms), kind, self._element.size)
        return emit_from_storage(emitter, stored, self._element, 1)

    def _is_better(self, value: Value, best: Value, position: Value) -> Value:
        """The first element of a window always is; NaN is better than numbers."""
        emitter, builder = self.emitter, self.emitter.builder
        is_first = emitter.compare(position, "<", 0)
        if self._element.is_float:
            is_number = builder.fcmp_ordered("ord", best, best)
            larger = emitter.both(builder.fcmp_unordered(">", value, best), is_number)
        elif self._element.is_signed:
            larger = builder.icmp_signed(">", value, best)
        else:
            larger = builder.icmp_unsigned(">", value, best)
        return builder.or_(is_first, larger)

    def _position(self, coordinates: list[Value]) -> Value:
        emitter = self.emitter
        order = range(len(coordinates))
        position = emitter.add(emitter.mul(self.places[0], emitter.extent(X, 1)), self.places[1])
        plane = emitter.i64(1)
        for axis in order:
            plane = emitter.mul(plane, emitter.extent(X, FIRST_SPATIAL + axis))
        inner = emitter.i64(0)
        for axis in reversed(order) if self.operation.column_major else order:
            inner = emitter.add(emitter.mul(inner, emitter.extent(X, FIRST_SPATIAL + axis)), coordinates[axis])
        return emitter.add(emitter.mul(position, plane), inner)

    def _store(self, operand: int, element: ElementType, value: Value) -> None:
        emitter, kind = self.emitter, storage_type(element)
        terms = [(place, emitter.stride(operand, axis)) for axis, place in enumerate(self.places)]
        stored = emit_to_storage(emitter, value, element, 1)
        emitter.store(stored, emitter.strided(emitter.pointer(operand), kind, *terms), element.size)
