"""Python in processes of its own."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
READ_BYTES = 1 << 16


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


class LineProcess:
    """A module in a process of its own that answers lines with lines; a new one after a crash or a hang."""

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        self._module = module
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self.exit_code: int | None = None
        """Of the process that was closed last."""

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Start the process where none runs."""
        if self._process is None:
            path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": path, **self._environment},
            )

    def ask(self, line: str, seconds: float) -> str | None:
        """The answer to a line: see `read`."""
        self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        return self.read(seconds)

    def read(self, seconds: float) -> str | None:
        """The next line: empty where the process has ended, None where none comes in time; both end the process."""
        line = self._line(seconds)
        if not line:
            self.close()
        return line

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self.exit_code = self._process.returncode
        self._process = None

    def _line(self, seconds: float) -> str | None:
        assert self._process is not None
        assert self._process.stdout is not None
        parts: list[bytes] = []
        while not parts or (parts[-1] and not parts[-1].endswith(b"\n")):
            ready, _, _ = select.select([self._process.stdout], [], [], seconds)
            if not ready:
                return None
            parts.append(os.read(self._process.stdout.fileno(), READ_BYTES))
        return b"".join(parts).decode().strip()
