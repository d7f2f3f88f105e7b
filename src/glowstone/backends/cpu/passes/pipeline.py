"""The order of this backend's passes, on the graph and on the low-level program, with the reason for each place."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.backends.cpu.passes.assign_layouts import AssignLayouts
from glowstone.backends.cpu.passes.fuse_attention import fuse_attention
from glowstone.backends.cpu.passes.fuse_elementwise import fuse_elementwise
from glowstone.backends.cpu.passes.fuse_epilogues import fuse_epilogues
from glowstone.backends.cpu.passes.interleave_convolutions import InterleaveConvolutions
from glowstone.backends.cpu.passes.pack_weights import PackWeights
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import Tuning
from glowstone.graph import Graph
from glowstone.lir import Program


def backend_passes(target: Target, exact: bool, tuning: Tuning) -> tuple[Callable[[Graph], bool], ...]:
    """The passes for a target; `exact` for strict numerics."""
    return (
        fuse_elementwise,  # first: a diamond such as x * sigmoid(x) must be one node to become one epilogue
        fuse_epilogues,  # while anchors are still plain operators
        fuse_attention,  # once scale and mask are the epilogue of the first product
        AssignLayouts(
            target, exact, tuning
        ),  # takes fused nodes whole, so no layout change falls between anchor and epilogue
        PackWeights(target, tuning),  # last: packed weights say nothing to the passes above
    )


def program_passes(target: Target) -> tuple[Callable[[Program], bool], ...]:
    """The low-level passes for a target."""
    return (InterleaveConvolutions(target),)
