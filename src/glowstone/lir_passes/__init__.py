"""Passes over the low-level representation: one file each, in the order of `pipeline.py`."""

from glowstone.lir_passes.eliminate_copies import eliminate_copies
from glowstone.lir_passes.eliminate_dead_stores import eliminate_dead_stores
from glowstone.lir_passes.pipeline import LIR_PASSES, low_level_passes
from glowstone.lir_passes.share_buffers import share_buffers
from glowstone.lir_passes.shorten_lifetimes import shorten_lifetimes
from glowstone.lir_passes.stack_elementwise import stack_elementwise

__all__ = [
    "LIR_PASSES",
    "eliminate_copies",
    "eliminate_dead_stores",
    "low_level_passes",
    "share_buffers",
    "shorten_lifetimes",
    "stack_elementwise",
]
