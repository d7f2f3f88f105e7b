"""Make a virtual environment with the built wheel of this tree installed in it.

Usage: python scripts/environment.py FOLDER [EXTRA ...]

Needs Python 3.11 or newer with pip, nothing else. Runs again only what changed: the wheel is built anew when a source
file changed, dependencies are resolved anew when `pyproject.toml` or the extras changed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MINIMUM = (3, 11)
STAMP = "glowstone-stamp.json"
WHEEL_INPUTS = ("pyproject.toml", "README.md", "LICENSE")


def digest_of(files: Iterable[Path]) -> str:
    """SHA-256 over names and contents of the files, in sorted order."""
    digest = hashlib.sha256()
    for file in sorted(files):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(ROOT).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()


def source_files() -> list[Path]:
    """The files that the wheel is made from, package data included."""
    made = {"__pycache__"}
    sources = [
        path
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and not any(part in made or part.endswith(".egg-info") for part in path.parts)
    ]
    return sources + [ROOT / name for name in WHEEL_INPUTS]


def run(*command: str | Path) -> None:
    """Run a command with its output on our standard error, so that standard output keeps results only."""
    subprocess.run([str(part) for part in command], check=True, stdout=sys.stderr.fileno(), cwd=ROOT)


def make_environment(folder: Path) -> Path:
    """Make the environment if it does not work, and return its interpreter."""
    interpreter = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if interpreter.exists() and works(interpreter):
        return interpreter
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        run(sys.executable, "-m", "venv", folder)
    except subprocess.CalledProcessError:
        make_with_virtualenv(folder)
    return interpreter


def works(interpreter: Path) -> bool:
    """Whether this environment has pip and is of the Python that runs this script."""
    code = "import pip, sys; print(sys.version)"
    answer = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=False)
    return answer.returncode == 0 and answer.stdout.strip() == sys.version.strip()


def make_with_virtualenv(folder: Path) -> None:
    """Some distributions ship Python without the `venv` module's parts; `virtualenv` from PyPI does the same."""
    tool = folder.parent / "virtualenv"
    run(sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", tool, "virtualenv")
    command = f"import sys; sys.path.insert(0, {str(tool)!r}); import virtualenv; virtualenv.cli_run(sys.argv[1:])"
    run(sys.executable, "-c", command, "--clear", folder)


def build_wheel(interpreter: Path, folder: Path) -> Path:
    """Build the wheel of this tree into a folder of the environment; nothing of an earlier build gets in."""
    wheels = folder / "wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    for leftover in (ROOT / "build" / "lib", *(ROOT / "build").glob("bdist.*")):
        shutil.rmtree(leftover, ignore_errors=True)
    run(interpreter, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, ROOT)
    (wheel,) = wheels.glob("glowstone-*.whl")
    return wheel


def update(folder: Path, extras: list[str]) -> None:
    """Bring the environment up to date and note what it was made from."""
    interpreter = make_environment(folder)
    stamp_file = folder / STAMP
    stamp = json.loads(stamp_file.read_text()) if stamp_file.exists() else {}
    wanted = {
        "source": digest_of(source_files()),
        "requirements": digest_of([ROOT / "pyproject.toml"]),
        "extras": extras,
    }
    if stamp == wanted:
        return
    stamp_file.unlink(missing_ok=True)
    print(f"preparing {folder.relative_to(ROOT)} ...", file=sys.stderr)
    wheel = build_wheel(interpreter, folder)
    names = f"[{','.join(extras)}]" if extras else ""
    if any(stamp.get(part) != wanted[part] for part in ("requirements", "extras")):
        run(interpreter, "-m", "pip", "install", "--quiet", f"{wheel}{names}")
    run(interpreter, "-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", wheel)
    stamp_file.write_text(json.dumps(wanted))


def main() -> int:
    if sys.version_info < MINIMUM:
        print(f"Python {'.'.join(map(str, MINIMUM))} or newer is needed, this is {sys.version}", file=sys.stderr)
        return 1
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        update((ROOT / sys.argv[1]).resolve(), sorted(sys.argv[2:]))
    except subprocess.CalledProcessError as error:
        print(f"failed: {' '.join(error.cmd)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
