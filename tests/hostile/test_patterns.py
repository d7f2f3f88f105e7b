"""Patterns of RegexFullMatch: the meaning of Python's where both have one syntax, RE2's classes, and linear time."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from glowstone.errors import GlowstoneError, LimitError, ModelError
from glowstone.host.pattern import Pattern

ALPHABET = "ab1_ -\n\u00e4A"
PARTS = (
    "a",
    "b",
    "1",
    "_",
    ".",
    "[ab]",
    "[^a-b]",
    r"\d",
    r"\w",
    r"\W",
    "[A-Z]",
    r"\s",
    "-",
    r"\b",
    "^",
    "$",
    r"\.",
    "(?:)",
)
HARD = [
    (r"(a+)+", "a" * 5000 + "!"),
    (r"(a|aa)+", "a" * 5000 + "!"),
    (r"(a*)*b", "a" * 5000),
    (r"(.*a){20}", "a" * 3000 + "b"),
    (r"(x+x+)+y", "x" * 5000),
    (r"a?" * 200 + "a" * 200, "a" * 200),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 5000),
]


def random_pattern(random: np.random.Generator, depth: int) -> str:
    """A pattern that means the same in Python, on ASCII."""
    parts = []
    for _ in range(random.integers(1, 4)):
        part = str(random.choice(PARTS))
        if depth and random.random() < 0.4:
            part = f"({random_pattern(random, depth - 1)})"
        if part not in (r"\b", "^", "$") and random.random() < 0.4:
            part += str(random.choice(["*", "+", "?", "{2}", "{1,3}", "*?", "{0,2}?"]))
        parts.append(part)
    text = "".join(parts)
    return f"{text}|{random_pattern(random, depth - 1)}" if depth and random.random() < 0.3 else text


def test_random_patterns_mean_what_they_mean_in_python():
    random = np.random.default_rng(0)
    matches = 0
    for _ in range(1500):
        text = random_pattern(random, 2)
        mine, theirs = Pattern(text), re.compile(text.replace("$", r"\Z"), re.ASCII)
        for _ in range(8):
            word = "".join(random.choice(list(ALPHABET), random.integers(0, 6)))
            expected = theirs.fullmatch(word) is not None
            assert mine.matches(word) is expected, (text, word)
            matches += expected
    assert matches > 1000


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"(?i)str\x61sse", ["STRASSE", "straSse"], ["strass"]),
        (r"(?i:a)b", ["Ab", "ab"], ["aB"]),
        (r"[[:alpha:]_]+", ["a_Z"], ["a1", "\u00e4"]),
        (r"[^[:space:]]", ["x"], [" ", "xx"]),
        (r"\pL+\p{Nd}?\P{L}", ["\u00e4b1!", "z-"], ["1", "ab"]),
        (r"\Qa.b\E+", ["a.bb"], ["axb"]),
        (r"(?s).(?-s).", ["\nx"], ["x\n"]),
        (r"(?P<name>a)(?<other>b)", ["ab"], ["a"]),
        (r"(?m)a$\n^b", ["a\nb"], ["ab"]),
        (r"[]a]+[-x][a\-z]", ["]a-z", "]x-"], ["]b-"]),
        (r"a{,2}", ["a{,2}"], ["aa"]),
        (r"[\d\x{e4}-\x{f0}]", ["5", "\u00e5"], ["a"]),
    ],
)
def test_the_syntax_of_re2(pattern, good, bad):
    compiled = Pattern(pattern)
    assert [text for text in good + bad if compiled.matches(text)] == good


@pytest.mark.parametrize(("pattern", "text"), HARD, ids=[pattern[:20] for pattern, _ in HARD])
def test_no_pattern_takes_exponential_time(pattern, text):
    start = time.process_time()
    Pattern(pattern).matches(text)
    assert time.process_time() - start < 20


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "a)", "[a", "[b-a]", "*", "a{2,1}", "a{9999}",
     "\\", r"\1", r"(?=a)", r"(?<!a)", r"(?#c)", r"\p{Q}", "[[:x:]]",
     r"\x{110000}", r"(?P<1>a)", r"(?i", r"[\q]", r"\xq"],
)  # fmt: skip
def test_what_re2_does_not_have(pattern):
    with pytest.raises(ModelError, match="cannot be read"):
        Pattern(pattern)


@pytest.mark.parametrize("pattern", ["((a{1000}){1000}){1000}", "(((){1000}){1000}){1000}", "(" * 500 + ")" * 500])
def test_programs_that_are_too_large(pattern):
    start = time.process_time()
    with pytest.raises(LimitError):
        Pattern(pattern)
    assert time.process_time() - start < 20


def test_random_texts_are_patterns_or_refused():
    random = np.random.default_rng(1)
    signs = list(r"ab()[]{}*+?|\^$.,-0159:=<>!#PpQEdwxi&")
    accepted = 0
    for _ in range(3000):
        text = "".join(random.choice(signs, random.integers(1, 12)))
        try:
            Pattern(text).matches("ab0")
        except GlowstoneError:
            continue
        accepted += 1
    assert accepted > 200
