"""Operations that only the CPU backend has: blocked layouts and packed weights."""

from glowstone.backends.cpu.operations.blocked import BlockedConvolution, DepthwiseConvolution, StemConvolution
from glowstone.backends.cpu.operations.packed import PackedMatMul
from glowstone.backends.cpu.operations.winograd import WinogradConvolution

__all__ = ["BlockedConvolution", "DepthwiseConvolution", "PackedMatMul", "StemConvolution", "WinogradConvolution"]
