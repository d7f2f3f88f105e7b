"""Vectors of any element type from and to memory: side by side, strided, or one element for all lanes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llvmlite import ir

from glowstone.backends.cpu.emitter import Emitter
from glowstone.backends.cpu.ir_types import I32, Value, vector
from glowstone.backends.cpu.kernel_family import InnerStride
from glowstone.backends.cpu.math.casts import emit_from_storage, emit_to_storage, storage_type
from glowstone.backends.cpu.math.vector_builder import splat
from glowstone.types import ElementType

MASKABLE_BYTES = (4, 8)
"""Element sizes of which vectors can be loaded and stored under a mask on every target of interest."""


@dataclass(frozen=True)
class InnerOperand:
    """An operand at the start of a run of its innermost axis. Values are in register form (`math.casts`)."""

    emitter: Emitter
    element: ElementType
    inner: InnerStride
    pointer: Value
    stride: Value

    @property
    def is_maskable(self) -> bool:
        """Whether `mask` may be given: no lane outside it touches memory."""
        return self.inner is not InnerStride.ANY and self.element.size in MASKABLE_BYTES

    def moved(self, offset: Value) -> InnerOperand:
        """The operand so many elements further on."""
        pointer = self.emitter.offset(self.pointer, offset, storage_type(self.element))
        return replace(self, pointer=pointer)

    def load(self, index: Value, lanes: int, mask: Value | None = None) -> Value:
        """Elements `index` to `index + lanes - 1` of the run; lanes outside the mask hold anything."""
        emitter, scalar = self.emitter, storage_type(self.element)
        if self.inner is InnerStride.ZERO:
            return self.spread(self.load_single(), lanes)
        pointer = self._address(index)
        if lanes == 1 or (self.inner is InnerStride.ONE and mask is None):
            stored = emitter.load(pointer, vector(scalar, lanes), self.element.size)
        elif self.inner is InnerStride.ONE:
            stored = emitter.masked_load(pointer, mask, splat(scalar, lanes, 0), self.element.size)
        else:
            stored = self._gather(pointer, lanes)
        return emit_from_storage(emitter, stored, self.element, lanes)

    def load_single(self) -> Value:
        """The first element as one scalar."""
        single = self.emitter.load(self.pointer, storage_type(self.element), self.element.size)
        return emit_from_storage(self.emitter, single, self.element, 1)

    def spread(self, single: Value, lanes: int) -> Value:
        """A scalar in all lanes."""
        return self.emitter.splat(single, lanes)

    def store(self, value: Value, index: Value, lanes: int, mask: Value | None = None) -> None:
        """The inverse of `load`; lanes outside the mask are not stored."""
        emitter = self.emitter
        stored = emit_to_storage(emitter, value, self.element, lanes)
        pointer = self._address(index)
        if lanes == 1 or (self.inner is InnerStride.ONE and mask is None):
            emitter.store(stored, pointer, self.element.size)
        elif self.inner is InnerStride.ONE:
            emitter.masked_store(stored, pointer, mask, self.element.size)
        else:
            self._scatter(stored, pointer, lanes)

    def copy_from(self, source: InnerOperand, index: Value, source_index: Value) -> None:
        """Make element `index` the source's `source_index`, bit for bit."""
        emitter, size = self.emitter, self.element.size
        stored = emitter.load(source._address(source_index), storage_type(self.element), size)
        emitter.store(stored, self._address(index), size)

    def clear(self, first: Value, last: Value) -> None:
        """Make elements `first` to `last - 1` zero."""
        with self.emitter.for_range(first, last) as loop:
            zero = ir.Constant(storage_type(self.element), None)
            self.emitter.store(zero, self._address(loop.index), self.element.size)

    def _address(self, index: Value) -> Value:
        offset = index if self.inner is InnerStride.ONE else self.emitter.mul(index, self.stride)
        return self.emitter.offset(self.pointer, offset, storage_type(self.element))

    def _gather(self, pointer: Value, lanes: int) -> Value:
        emitter, scalar = self.emitter, storage_type(self.element)
        result = ir.Constant(vector(scalar, lanes), ir.Undefined)
        for lane in range(lanes):
            address = emitter.offset(pointer, emitter.mul(self.stride, lane), scalar)
            single = emitter.load(address, scalar, self.element.size)
            result = emitter.builder.insert_element(result, single, I32(lane))
        return result

    def _scatter(self, value: Value, pointer: Value, lanes: int) -> None:
        emitter, scalar = self.emitter, storage_type(self.element)
        for lane in range(lanes):
            address = emitter.offset(pointer, emitter.mul(self.stride, lane), scalar)
            emitter.store(emitter.builder.extract_element(value, I32(lane)), address, self.element.size)
