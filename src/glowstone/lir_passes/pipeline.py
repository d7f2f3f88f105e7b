"""The order of the low-level passes, with the reason for each line."""

from __future__ import annotations

from collections.abc import Iterable

from glowstone.lir import Program
from glowstone.lir_passes.eliminate_copies import eliminate_copies
from glowstone.lir_passes.eliminate_dead_stores import eliminate_dead_stores
from glowstone.lir_passes.share_buffers import share_buffers
from glowstone.lir_passes.shorten_lifetimes import shorten_lifetimes
from glowstone.lir_passes.stack_elementwise import stack_elementwise
from glowstone.support.pass_manager import FixedPoint, Pass, Step

MAX_ROUNDS = 3


def low_level_passes(backend_passes: Iterable[Pass[Program]] = ()) -> tuple[Step[Program], ...]:
    """All passes on a program; those of a backend have their place among them."""
    return (
        eliminate_dead_stores,  # what nobody reads would count as a use and stop the passes below
        FixedPoint(
            "simplify",
            (
                eliminate_copies,  # before stacking: a copy between two elementwise instructions hides that they meet
                stack_elementwise,  # joins what copies no longer separate, and may leave a copy alone
            ),
            MAX_ROUNDS,
        ),
        *backend_passes,  # before buffers are shared, while everything has its own
        share_buffers,  # after all: a shared buffer has two writers, which they would have to leave alone
        shorten_lifetimes,  # last: uses do not move any more
    )


LIR_PASSES = low_level_passes()
"""Those of no backend."""
