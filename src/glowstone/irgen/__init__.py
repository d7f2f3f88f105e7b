"""Generation: from the graph to a low-level program."""

from glowstone.irgen.constants import ConstantPool, block_channels
from glowstone.irgen.generator import Application, Generator, Rule, RuleTable, find_rule
from glowstone.irgen.rules import RULES, generates
from glowstone.irgen.schedule import peak_bytes, schedule

__all__ = [
    "RULES",
    "Application",
    "ConstantPool",
    "Generator",
    "Rule",
    "RuleTable",
    "block_channels",
    "find_rule",
    "generates",
    "peak_bytes",
    "schedule",
]
