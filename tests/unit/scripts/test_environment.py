"""The script that makes environments does only what changed. No environment is really made here."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "environment.py"


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The script as a module, on a small tree of its own; `environment.commands` are the commands it would run."""
    specification = importlib.util.spec_from_file_location("environment_script", SCRIPT)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    (tmp_path / "src").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "src/code.py"):
        (tmp_path / name).write_text(name)
    commands = []

    def run(*command):
        commands.append([str(part) for part in command])
        if "wheel" in commands[-1]:
            wheels = Path(commands[-1][commands[-1].index("--wheel-dir") + 1])
            wheels.mkdir(parents=True)
            (wheels / "glowstone-1-py3-none-any.whl").touch()
        if "venv" in commands[-1]:
            (tmp_path / "env" / "bin").mkdir(parents=True)
            (tmp_path / "env" / "bin" / "python").symlink_to(sys.executable)

    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "run", run)
    module.commands = commands
    return module


def update(environment, extras=("test",)) -> list[str]:
    """What was done: the pip command or module of every command that ran."""
    environment.commands.clear()
    environment.update(environment.ROOT / "env", list(extras))
    return [
        ("requirements" if "[" in command[-1] else command[3]) if "pip" in command else "venv"
        for command in environment.commands
    ]


def test_the_first_time_makes_everything_and_the_second_nothing(environment):
    assert update(environment) == ["venv", "wheel", "requirements", "install"]
    assert update(environment) == []


def test_changed_source_builds_the_wheel_and_leaves_the_requirements(environment):
    update(environment)
    (environment.ROOT / "src" / "code.py").write_text("changed")
    assert update(environment) == ["wheel", "install"]


def test_changed_requirements_or_extras_are_resolved_again(environment):
    update(environment)
    (environment.ROOT / "pyproject.toml").write_text("changed")
    assert update(environment) == ["wheel", "requirements", "install"]
    assert update(environment, ["demo", "test"]) == ["wheel", "requirements", "install"]


def test_nothing_of_an_earlier_build_gets_into_the_wheel(environment):
    stale = environment.ROOT / "build" / "lib" / "removed.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    update(environment)
    assert not stale.exists()


def test_a_failed_update_is_done_again(environment, monkeypatch):
    update(environment)
    (environment.ROOT / "src" / "code.py").write_text("changed")
    working = environment.run

    def fail(*command):
        raise subprocess.CalledProcessError(1, [str(part) for part in command])

    monkeypatch.setattr(environment, "run", fail)
    with pytest.raises(subprocess.CalledProcessError):
        update(environment)
    monkeypatch.setattr(environment, "run", working)
    assert update(environment) == ["wheel", "requirements", "install"]


def test_an_environment_of_another_python_is_made_anew(environment, monkeypatch):
    update(environment)
    monkeypatch.setattr(environment.sys, "version", "3.99.0 (of another machine)")
    assert not environment.works(environment.ROOT / "env" / "bin" / "python")
    assert update(environment) == ["venv", "wheel", "requirements", "install"]


def test_the_digest_sees_names_and_contents(environment):
    file = environment.ROOT / "src" / "code.py"
    before = environment.digest_of([file])
    file.write_text("other")
    assert environment.digest_of([file]) != before
