"""Lets buffers hold memory no longer than they are used."""

from __future__ import annotations

from glowstone.lir import Program
from glowstone.lir.lifetimes import place_lifetimes


def shorten_lifetimes(program: Program) -> bool:
    """Move every alloc right before the first use and every dealloc right behind the last; inserts missing ones."""
    return place_lifetimes(program)
