"""LLVM types of element types. `Value` and `Type` are llvmlite's, which carries no annotations."""

from __future__ import annotations

from typing import TypeAlias

from llvmlite import ir

from glowstone.types import ElementType

Value: TypeAlias = ir.Value
Type: TypeAlias = ir.Type

VOID = ir.VoidType()
I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()

_MEMORY_TYPES = {
    ElementType.F64: F64,
    ElementType.F32: F32,
    ElementType.F16: F16,
    ElementType.BF16: I16,
    ElementType.I64: I64,
    ElementType.I32: I32,
    ElementType.I16: I16,
    ElementType.I8: I8,
    ElementType.U64: I64,
    ElementType.U32: I32,
    ElementType.U16: I16,
    ElementType.U8: I8,
    ElementType.BOOL: I8,
}
_SUFFIXES = {str(kind): name for kind, name in ((F16, "f16"), (F32, "f32"), (F64, "f64"), (POINTER, "p0"))}


def memory_type(element: ElementType) -> Type:
    """The type of one element in memory: a bool and a narrow number is a byte, bf16 its 16 bits."""
    return I8 if element.is_narrow else _MEMORY_TYPES[element]


def vector(scalar: Type, lanes: int) -> Type:
    """A vector of `lanes`, or the scalar itself for one lane."""
    return scalar if lanes == 1 else ir.VectorType(scalar, lanes)


def lanes_of(kind: Type) -> int:
    """Number of lanes; 1 for a scalar."""
    return kind.count if isinstance(kind, ir.VectorType) else 1


def scalar_of(kind: Type) -> Type:
    """The type of one lane."""
    return kind.element if isinstance(kind, ir.VectorType) else kind


def suffix(kind: Type) -> str:
    """The type's name inside an intrinsic's name: "v8f32", "i64"."""
    scalar = scalar_of(kind)
    name = _SUFFIXES.get(str(scalar), str(scalar))
    return name if lanes_of(kind) == 1 else f"v{lanes_of(kind)}{name}"
