"""Units of kernels that work row by row: some output rows of one channel block (or channel) of one image."""

from __future__ import annotations

import math
from dataclasses import dataclass

from glowstone.lir.buffer import View

UNIT_WORK = 8192
"""Taps of one unit, about: small enough to divide, large enough to be worth a claim."""


@dataclass(frozen=True)
class RowPlan:
    """Rows (all spatial axes but the last, together) of one plane, cut in parts."""

    units: int
    rows: int
    rows_per_unit: int
    parts: int

    @property
    def derived(self) -> tuple[int, ...]:
        return (self.rows, self.rows_per_unit, self.parts)


def plan_rows(y: View, spatial: int, row_work: int) -> RowPlan:
    """Cut the output y [N, C, spatial...]; `row_work` is the number of taps of one row."""
    rows = math.prod(y.shape[2 : 1 + spatial])
    per_unit = max(1, min(rows, UNIT_WORK // max(row_work, 1)))
    parts = -(-rows // per_unit)
    return RowPlan(y.shape[0] * y.shape[1] * parts if y.size else 0, rows, per_unit, parts)
