"""Lowering in the graph: decomposition until all is legal."""

from glowstone.lowering.decompose import IsLegal, check_legal, decompose

__all__ = ["IsLegal", "check_legal", "decompose"]
