"""Operations that only the CPU backend has: blocked layouts, packed weights, attention."""

from glowstone.backends.cpu.operations.attention import FusedAttention
from glowstone.backends.cpu.operations.blocked import BlockedConvolution, DepthwiseConvolution, StemConvolution
from glowstone.backends.cpu.operations.packed import PackedMatMul
from glowstone.backends.cpu.operations.winograd import WinogradConvolution

__all__ = [
    "BlockedConvolution",
    "DepthwiseConvolution",
    "FusedAttention",
    "PackedMatMul",
    "StemConvolution",
    "WinogradConvolution",
]
