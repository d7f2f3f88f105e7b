"""The table of planned memory in docs/memory-planning.md: every network of the tests, planned for one named target.

Run from the repository: `python scripts/memory_table.py` writes the table into the page. Nothing is run or compiled to
machine code, so the numbers are the same on every machine. The tests compare each row with what the compiler plans.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]

from helpers.networks.catalogue import FULL, Network  # noqa: E402

from glowstone.backends.cpu.backend import CpuBackend  # noqa: E402
from glowstone.backends.cpu.target import Target  # noqa: E402
from glowstone.compiler import Settings, compile_template, plan_shape  # noqa: E402
from glowstone.importer import import_model, open_model  # noqa: E402
from glowstone.lir_passes import share_buffers  # noqa: E402
from glowstone.options import Options  # noqa: E402

PAGE = ROOT / "docs" / "memory-planning.md"
BEGIN, END = "<!-- memory table -->", "<!-- end of the memory table -->"
TARGET = Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma")
KIBIBYTE = 1024


@dataclass(frozen=True)
class Row:
    """Bytes of one network's intermediate results: in the arena, at least needed, and each in a place of its own.

    Apart, no result takes the place of an operand either: `share_buffers` is left out.
    """

    name: str
    planned: int
    bound: int
    apart: int

    @property
    def factor(self) -> float:
        return self.apart / self.planned

    def __str__(self) -> str:
        sizes = (f"{size / KIBIBYTE:,.0f}" for size in (self.apart, self.planned))
        return f"| {self.name} | {' | '.join(sizes)} | {self.planned / self.bound:.3f} | {self.factor:.1f} |"


def plan(network: Network, content: bytes) -> Row:
    """Plan a network, whose file this is, at the shapes of its inputs."""
    backend = CpuBackend(TARGET)
    settings = Settings(backend)
    without_sharing = Settings(backend, options=Options(skip_passes=(share_buffers.__name__,)))
    source = import_model(open_model(content), network.shapes, network.constants or None)
    template = compile_template(source, {value.name: value.shape for value in source.inputs}, settings)
    memory = plan_shape(template, None, settings).memory
    results = plan_shape(template, None, without_sharing).memory.offsets
    return Row(network.name, memory.arena_bytes, memory.bound, sum(buffer.bytes for buffer in results))


def table(rows: Iterable[Row]) -> str:
    """The rows with a head, and the mean of the factors."""
    rows = list(rows)
    mean = sum(row.factor for row in rows) / len(rows)
    names = "| model | apart, KiB | planned, KiB | planned / bound | apart / planned |"
    return "\n".join([names, "| --- | --: | --: | --: | --: |", *map(str, rows), f"| mean | | | | {mean:.1f} |"])


def main() -> None:
    """Write the table between its marks in the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    text = table(plan(network, network.build()) for network in FULL)
    PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
