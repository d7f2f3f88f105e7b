"""Sets of element types that operand declarations name."""

from __future__ import annotations

from glowstone.types import ElementType

HALVES = frozenset({ElementType.F16, ElementType.BF16})
FLOATS = frozenset({ElementType.F64, ElementType.F32, ElementType.F16, ElementType.BF16})
SIGNED_INTEGERS = frozenset({ElementType.I64, ElementType.I32, ElementType.I16, ElementType.I8})
UNSIGNED_INTEGERS = frozenset({ElementType.U64, ElementType.U32, ElementType.U16, ElementType.U8})
INTEGERS = SIGNED_INTEGERS | UNSIGNED_INTEGERS
INDICES = frozenset({ElementType.I64, ElementType.I32})
SHAPES = frozenset({ElementType.I64})
POOLED = FLOATS | {ElementType.I8, ElementType.U8}
"""What has a largest element of a window."""
BOOLS = frozenset({ElementType.BOOL})
NUMBERS = FLOATS | INTEGERS
SIGNED = FLOATS | SIGNED_INTEGERS
ALL = NUMBERS | BOOLS
"""What has an arithmetic or a logic."""
NARROW = frozenset(element for element in ElementType if element.is_narrow)
FLOATS_OF_8_BITS = frozenset({ElementType.F8E4M3FN, ElementType.F8E4M3FNUZ, ElementType.F8E5M2, ElementType.F8E5M2FNUZ})
ANY = ALL | NARROW
"""What can be moved and converted."""
