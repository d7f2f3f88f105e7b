"""How many units of a call a thread claims at a time."""

from __future__ import annotations

CLAIM_NANOSECONDS = 10_000
"""A claim should be worth so much work: claiming costs about a hundredth of it."""


def claim_grain(units: int, cost: int) -> int:
    """Units per claim of a call that is expected to take `cost` nanoseconds; at least 1."""
    return max(1, min(units, units * CLAIM_NANOSECONDS // max(cost, 1)))
