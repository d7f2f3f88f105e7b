"""Graph operators that only this backend has: layout changes, convolutions on blocked data, packed matrix products."""

from glowstone.backends.cpu.ops.attention import FusedAttention
from glowstone.backends.cpu.ops.convolution import BlockedConv, DepthwiseConv, StemConv
from glowstone.backends.cpu.ops.layout import FromBlocked, ToBlocked
from glowstone.backends.cpu.ops.linear import PackedMatMul
from glowstone.backends.cpu.ops.winograd import WinogradConv

__all__ = [
    "BlockedConv",
    "DepthwiseConv",
    "FromBlocked",
    "FusedAttention",
    "PackedMatMul",
    "StemConv",
    "ToBlocked",
    "WinogradConv",
]
