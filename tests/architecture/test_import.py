"""`import glowstone` is free of side effects, and its public names are the ones promised."""

from __future__ import annotations

import json

import pytest
from helpers.processes import run_python

import glowstone

PUBLIC_NAMES = [
    "ExecutionError",
    "GlowstoneError",
    "InferenceSession",
    "InputError",
    "LimitError",
    "Model",
    "ModelError",
    "Options",
    "ShapeError",
    "UnsupportedError",
    "__version__",
    "compile",
]

# An audit hook sees every file that is opened; importing modules opens only Python files.
_PROBE = """
import json, sys, threading
opened = []
sys.addaudithook(lambda event, arguments: opened.append((arguments[0], arguments[1])) if event == "open" else None)
sys.addaudithook(lambda event, arguments: opened.append((event, "w")) if event in ("os.mkdir", "os.rename") else None)
import glowstone
modules = (".py", ".pyc", ".so", ".pyd")
touched = [str(name) for name, mode in opened if not str(name).endswith(modules) or "w" in str(mode)]
touched = [name for name in touched if "__pycache__" not in name]
print(json.dumps({"modules": sorted(sys.modules), "threads": threading.active_count(), "touched": touched}))
"""


@pytest.fixture(scope="module")
def observed() -> dict:
    return json.loads(run_python(_PROBE))


def test_importing_loads_neither_onnx_nor_llvmlite(observed):
    roots = {name.partition(".")[0] for name in observed["modules"]}
    assert not roots & {"onnx", "llvmlite", "onnxruntime", "click", "rich"}


def test_importing_starts_no_thread_and_touches_no_file(observed):
    assert observed["threads"] == 1
    assert observed["touched"] == []


def test_the_public_names_are_pinned():
    assert sorted(glowstone.__all__) == PUBLIC_NAMES
    assert set(PUBLIC_NAMES) <= set(dir(glowstone))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = glowstone.no_such_name


def test_every_error_derives_from_one():
    errors = [getattr(glowstone, name) for name in PUBLIC_NAMES if name.endswith("Error")]
    assert all(issubclass(error, glowstone.GlowstoneError) for error in errors)
    assert issubclass(glowstone.ShapeError, ValueError)
    assert issubclass(glowstone.InputError, ValueError)
