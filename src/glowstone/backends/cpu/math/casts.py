"""Conversions between element types, and between the forms values have in memory and in registers.

In registers f16 and bf16 are float32 numbers that the 16-bit type can hold, bool is i1, a narrow number is its byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from llvmlite import ir

from glowstone.backends.cpu.ir_types import F32, F64, I1, I8, I16, Type, Value, memory_type, suffix, vector
from glowstone.backends.cpu.math.half import (
    emit_bits_to_f32,
    emit_f32_to_bits,
    emit_f64_to_f32_odd,
    emit_round_to_half,
)
from glowstone.backends.cpu.math.narrow import (
    emit_byte_to_narrow_integer,
    emit_f32_to_narrow,
    emit_narrow_integer_to_byte,
    emit_narrow_to_f32,
)
from glowstone.backends.cpu.math.vector_builder import VectorBuilder, call_intrinsic, splat
from glowstone.types import ElementType

if TYPE_CHECKING:
    from glowstone.backends.cpu.emitter import Emitter

HALVES = (ElementType.F16, ElementType.BF16)
EXACT_IN_F32_BYTES = 2
"""Integers of this size or less are exact as float32."""


def register_type(element: ElementType) -> Type:
    """The type of one element in a register."""
    if element in HALVES:
        return F32
    return I1 if element is ElementType.BOOL else memory_type(element)


def storage_type(element: ElementType) -> Type:
    """The type under which kernels load and store one element: f16 as its 16 bits."""
    return I16 if element in HALVES else memory_type(element)


def float_builder(emitter: Emitter, element: ElementType, lanes: int) -> VectorBuilder:
    """The vocabulary for a float element type in registers."""
    form = ElementType.F64 if element is ElementType.F64 else ElementType.F32
    return VectorBuilder(emitter.builder, form, lanes, emitter.target.has_fma)


def emit_from_storage(emitter: Emitter, value: Value, element: ElementType, lanes: int) -> Value:
    """What was loaded as `storage_type`, in register form."""
    if element is ElementType.BOOL:
        return emitter.builder.icmp_signed("!=", value, splat(I8, lanes, 0))
    if element in HALVES:
        return emit_bits_to_f32(float_builder(emitter, element, lanes), value, element)
    return value


def emit_to_storage(emitter: Emitter, value: Value, element: ElementType, lanes: int) -> Value:
    """The inverse of `emit_from_storage`."""
    if element is ElementType.BOOL:
        return emitter.builder.zext(value, vector(I8, lanes))
    if element in HALVES:
        return emit_f32_to_bits(float_builder(emitter, element, lanes), value, element)
    return value


def emit_cast(emitter: Emitter, value: Value, source: ElementType, target: ElementType, lanes: int) -> Value:
    """`scalar.cast`: floats to integers truncate and saturate, NaN gives 0; anything but 0 is true."""
    if target is source:
        return value
    if source.is_narrow:
        return emit_cast(emitter, _widened(emitter, value, source, lanes), source.wide, target, lanes)
    if target.is_narrow:
        return emit_narrow_cast(emitter, value, source, target, lanes, saturates=True)
    if target is ElementType.BOOL:
        return _to_bool(emitter, value, source, lanes)
    if target.is_float:
        return _to_float(emitter, value, source, target, lanes)
    kind = vector(memory_type(target), lanes)
    if source is ElementType.BOOL:
        return emitter.builder.zext(value, kind)
    if source.is_float:
        name = "llvm.fptosi.sat" if target.is_signed else "llvm.fptoui.sat"
        return call_intrinsic(emitter.builder, f"{name}.{suffix(kind)}.{suffix(value.type)}", kind, [value])
    if target.size <= source.size:
        return emitter.builder.trunc(value, kind) if target.size < source.size else value
    return emitter.builder.sext(value, kind) if source.is_signed else emitter.builder.zext(value, kind)


def emit_narrow_cast(
    emitter: Emitter, value: Value, source: ElementType, target: ElementType, lanes: int, *, saturates: bool
) -> Value:
    """`scalar.cast` to a narrow type, or `scalar.cast_overflowing` where it does not saturate."""
    if source.is_narrow:
        value, source = _widened(emitter, value, source, lanes), source.wide
    if target.wide is ElementType.F32:
        number = _to_f32_odd(emitter, value, source, lanes)
        return emit_f32_to_narrow(float_builder(emitter, target, lanes), number, target, saturates)
    if source.is_float:
        value, source = emit_cast(emitter, value, source, ElementType.I32, lanes), ElementType.I32
    byte = emit_cast(emitter, value, source, target.wide, lanes)
    return emit_byte_to_narrow_integer(emitter, byte, target, lanes)


def _widened(emitter: Emitter, value: Value, source: ElementType, lanes: int) -> Value:
    """A narrow number in the type to compute in."""
    if source.wide is ElementType.F32:
        return emit_narrow_to_f32(float_builder(emitter, source, lanes), value, source)
    return emit_narrow_integer_to_byte(emitter, value, source, lanes)


def _to_bool(emitter: Emitter, value: Value, source: ElementType, lanes: int) -> Value:
    zero = splat(register_type(source), lanes, 0.0 if source.is_float else 0)
    if source.is_float:
        return emitter.builder.fcmp_unordered("!=", value, zero)
    return emitter.builder.icmp_signed("!=", value, zero)


def _to_float(emitter: Emitter, value: Value, source: ElementType, target: ElementType, lanes: int) -> Value:
    if source.is_float:
        return _between_floats(emitter, value, source, target, lanes)
    if target in HALVES:
        return emit_round_to_half(
            float_builder(emitter, target, lanes), _to_f32_odd(emitter, value, source, lanes), target
        )
    is_signed = source.is_signed and source is not ElementType.BOOL
    convert = emitter.builder.sitofp if is_signed else emitter.builder.uitofp
    return convert(value, vector(register_type(target), lanes))


def _to_f32_odd(emitter: Emitter, value: Value, source: ElementType, lanes: int) -> Value:
    """As float32, rounded to odd where it has more digits: rounding that to fewer then equals rounding once."""
    if source.size <= EXACT_IN_F32_BYTES or source is ElementType.F32:
        return emit_cast(emitter, value, source, ElementType.F32, lanes)
    wide = emit_cast(emitter, value, source, ElementType.F64, lanes)
    return emit_f64_to_f32_odd(float_builder(emitter, ElementType.F32, lanes), wide)


def _between_floats(emitter: Emitter, value: Value, source: ElementType, target: ElementType, lanes: int) -> Value:
    builder: ir.IRBuilder = emitter.builder
    if target is ElementType.F64:
        return builder.fpext(value, vector(F64, lanes))
    math = float_builder(emitter, ElementType.F32, lanes)
    if target is ElementType.F32:
        return builder.fptrunc(value, math.type) if source is ElementType.F64 else value
    return emit_round_to_half(math, _to_f32_odd(emitter, value, source, lanes), target)
