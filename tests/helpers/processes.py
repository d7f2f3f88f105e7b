"""Python in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


def run_python(
    source: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run source code in a fresh interpreter and return its standard output; fail with its standard error."""
    outcome = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        timeout=300,
    )
    assert outcome.returncode == 0, f"exit code {outcome.returncode}\n{outcome.stderr}"
    return outcome.stdout
