"""What docs/adding-an-operator.md does touches few files, and each stands where it says.

`test_snippets.py` runs the page, so nothing else was needed.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "adding-an-operator.md"
_SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
_FILE = re.compile(r"^```python\n# (src/glowstone/\S+\.py)$", re.MULTILINE)
REGISTERS_ITSELF = "src/glowstone/backends/cpu/kernels"


def touched_files() -> dict[str, list[str]]:
    """The files that snippets name, by the heading that they stand under."""
    parts = _SECTION.split(PAGE.read_text())
    titles, bodies = ["An operator", *parts[1::2]], parts[0::2]
    return {title: _FILE.findall(body) for title, body in zip(titles, bodies, strict=True)}


def test_operators_made_of_others_touch_two_files():
    touched = touched_files()
    elementwise = touched["An operator"] + touched["Reading it from ONNX"]
    for files in (elementwise, touched["Operators made of others"]):
        assert [Path(file).parts[2] for file in files] == ["ops", "importer"]


def test_a_primitive_touches_five_files_at_most():
    folders = [Path(file).parts[2] for file in touched_files()["Primitives"]]
    assert folders == ["ops", "importer", "lir", "irgen", "backends"]


def test_the_files_are_there_or_register_themselves():
    for file in (file for files in touched_files().values() for file in files):
        is_new = not (ROOT / file).exists()
        assert not is_new or str(Path(file).parent) == REGISTERS_ITSELF, file
