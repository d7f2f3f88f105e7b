"""Every Python snippet of the README and of docs/ runs, page by page, in a folder with a small `model.onnx`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.models import save_small_convolution
from helpers.processes import run_python

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_there_are_snippets_to_run():
    assert sum(len(_SNIPPET.findall(page.read_text())) for page in PAGES) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run_in_order(page, tmp_path):
    save_small_convolution(tmp_path / "model.onnx")
    source = "\n".join(_SNIPPET.findall(page.read_text()))
    run_python(source, cwd=tmp_path, environment={"GLOWSTONE_CACHE_DIR": str(tmp_path / "cache")})
