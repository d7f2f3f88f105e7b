"""The pages on operators and on ONNX are what the script makes of today's definitions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from glowstone.graph import OPERATORS
from glowstone.types import ElementType

ROOT = Path(__file__).resolve().parents[3]
STALE = "run `make pages`"


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("operator_pages", ROOT / "scripts" / "operator_pages.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_pages_are_up_to_date(script):
    made = script.pages()
    written = {path.relative_to(script.DOCS) for path in (script.DOCS / "operators").glob("*.md")}
    assert written | {Path("onnx_support.md")} == set(made), STALE
    stale = [str(path) for path, text in made.items() if (script.DOCS / path).read_text() != text]
    assert not stale, STALE


def test_every_operator_of_the_graph_has_a_section(script):
    sections = {
        line.removeprefix("## ")
        for path, text in script.pages().items()
        if path.parts[0] == "operators"
        for line in text.splitlines()
        if line.startswith("## ")
    }
    assert sections == {name for name, kind in OPERATORS.items() if kind.__module__.startswith("glowstone.ops.")}


def test_groups_of_element_types_have_one_word(script):
    floats = frozenset(element for element in ElementType if element.is_float)
    assert script.element_words(floats) == "floats"
    assert script.element_words(floats | {ElementType.I8, ElementType.BOOL}) == "floats, i8, bool"
    assert script.element_words(frozenset(ElementType)) == "any type"
