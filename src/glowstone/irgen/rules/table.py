"""The table of generation rules by operator class."""

from __future__ import annotations

from collections.abc import Callable

from glowstone.graph import Operator
from glowstone.irgen.generator import Rule

RULES: dict[type[Operator], Rule] = {}


def generates(*kinds: type[Operator]) -> Callable[[Rule], Rule]:
    """Register a rule for operator classes and those derived from them that have none of their own."""

    def register(rule: Rule) -> Rule:
        for kind in kinds:
            if RULES.setdefault(kind, rule) is not rule:
                raise AssertionError(f"two rules generate {kind.__name__}")
        return rule

    return register
