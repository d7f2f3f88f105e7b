"""The page of reports names tests that exist, and every test of this folder is on it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reports.md").read_text()
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
FOLDER = "tests/reports/"


def functions_of(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_test_that_exists():
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and line.count("|") == 4 and "---" not in line]
    rows = [row for row in rows if "| test |" not in row]
    assert len(rows) == len(NAMED) > 60
    known = {path: functions_of(path) for path in {path for path, _ in NAMED}}
    assert [(path, name) for path, name in NAMED if name not in known[path]] == []


def test_every_test_of_the_folder_is_on_the_page():
    written = {
        (f"{FOLDER}{path.name}", name)
        for path in Path(__file__).parent.glob("test_*.py")
        for name in functions_of(f"{FOLDER}{path.name}")
        if name.startswith("test_") and path != Path(__file__)
    }
    assert written - set(NAMED) == set()
