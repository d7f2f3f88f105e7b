"""Passes over the graph that hold for every backend: one file each, the order in `pipeline.py`."""

from glowstone.graph_passes.pipeline import CANONICAL, LOWERED, RELAXED_ONLY, GraphPass

__all__ = ["CANONICAL", "LOWERED", "RELAXED_ONLY", "GraphPass"]
