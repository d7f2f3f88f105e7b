"""Every pass that may be left out."""

from __future__ import annotations

from glowstone.graph_passes import CANONICAL, LOWERED

OPTIONAL_PASSES = [
    *sorted({function.__name__ for function in (*CANONICAL, *LOWERED)}),
    "fuse_elementwise",
    "fuse_epilogues",
    "assign_layouts",
    "pack_weights",
    "eliminate_dead_stores",
    "simplify",
    "share_buffers",
]
