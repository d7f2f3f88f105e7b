"""The order of folders in docs/architecture.md is the order that the import contract enforces."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "glowstone"


def documented_folders() -> list[set[str]]:
    """Siblings of each line of the table "Folders", first line first."""
    table = (ROOT / "docs" / "architecture.md").read_text().partition("## Folders")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    # A line's first cell may itself hold `|` between siblings, so names are all that stands in backquotes with a slash.
    return [set(re.findall(r"`(\w+)(?:/|\.py)`", line)) for line in ("|".join(row[:-2]) for row in rows)]


def contract_layers() -> list[set[str]]:
    """Siblings of each layer of the contract, lowest first."""
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (order,) = [one for one in configuration["tool"]["importlinter"]["contracts"] if one["id"] == "order"]
    return [set(re.findall(r"\w+", layer)) for layer in reversed(order["layers"])]


def test_the_contract_names_every_folder_once():
    named = [name for layer in contract_layers() for name in layer]
    present = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert len(named) == len(set(named))
    assert present - {"__init__", "__main__", "__pycache__", "py"} <= set(named)


def test_the_contract_has_the_documented_order():
    rank = {name: position for position, layer in enumerate(contract_layers()) for name in layer}
    documented = documented_folders()
    assert len(documented) > 10
    ranks = [sorted({rank[name] for name in line}) for line in documented]
    flat = [position for line in ranks for position in line]
    assert flat == sorted(flat)
