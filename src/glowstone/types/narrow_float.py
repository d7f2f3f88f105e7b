"""The formats of floats of 8 bits and fewer.

Sources: *FP8 Formats for Deep Learning* (Micikevicius et al., 2022) for E4M3FN and E5M2; *8-bit Numerical Formats for
Deep Neural Networks* (Noune et al., 2022) for the FNUZ forms, which have one NaN and one zero; the OCP Microscaling
Formats specification 1.0 for E8M0, E2M3, E3M2 and E2M1. ONNX takes them as they are there.
"""

from __future__ import annotations

from dataclasses import dataclass

from glowstone.types.element_type import ElementType


@dataclass(frozen=True)
class NarrowFloat:
    """A sign, an exponent, and `mantissa_bits`. A code is the number that the bits without the sign make.

    E8M0 is the exception that `is_power` marks: its code is the exponent alone, of a power of two.
    """

    bits: int
    mantissa_bits: int
    bias: int
    largest: int
    """Code of the largest number."""
    nan: int | None = None
    """Bits of the NaN that conversions give; None where the format has none."""
    infinity: int | None = None
    """Code of infinity."""
    has_one_zero: bool = False
    """Whether the bits of a negative zero are the NaN."""
    is_power: bool = False

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.bits - 1)

    @property
    def overflow(self) -> int:
        """Bits of what lies beyond the largest number where that is not kept as it; an infinity still lacks its sign.

        Formats without infinity and NaN keep the largest number.
        """
        if self.infinity is not None:
            return self.infinity
        return self.largest if self.nan is None else self.nan


NARROW_FLOATS: dict[ElementType, NarrowFloat] = {
    ElementType.F8E4M3FN: NarrowFloat(8, 3, 7, largest=0x7E, nan=0x7F),
    ElementType.F8E4M3FNUZ: NarrowFloat(8, 3, 8, largest=0x7F, nan=0x80, has_one_zero=True),
    ElementType.F8E5M2: NarrowFloat(8, 2, 15, largest=0x7B, nan=0x7E, infinity=0x7C),
    ElementType.F8E5M2FNUZ: NarrowFloat(8, 2, 16, largest=0x7F, nan=0x80, has_one_zero=True),
    ElementType.F8E8M0: NarrowFloat(8, 0, 127, largest=0xFE, nan=0xFF, is_power=True),
    ElementType.F6E2M3: NarrowFloat(6, 3, 1, largest=0x1F),
    ElementType.F6E3M2: NarrowFloat(6, 2, 3, largest=0x1F),
    ElementType.F4E2M1: NarrowFloat(4, 1, 1, largest=0x7),
}
