"""Kernels compiled in several processes: the same bytes, whatever becomes of the processes."""

from __future__ import annotations

import sys

import pytest
from helpers.models import save_small_convolution

import glowstone
from glowstone.backends.cpu import compile_pool
from glowstone.backends.cpu.compile import emit_object
from glowstone.backends.cpu.compile_pool import CompilePool
from glowstone.backends.cpu.target import Target


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    model = glowstone.compile(save_small_convolution(tmp_path_factory.mktemp("model") / "model.onnx"))
    found = [key for _, _, key in model.engine.library.objects()]
    assert len(found) >= 2
    return found


@pytest.fixture(scope="module")
def expected(keys):
    return {key: emit_object([key], Target.host()) for key in keys}


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_every_number_of_processes_gives_the_same_objects(processes, keys, expected):
    told = []
    with CompilePool(Target.host(), processes) as pool:
        assert pool.emit(keys, lambda: told.append(1)) == expected
    assert len(told) == len(keys)


def test_the_processes_end_with_the_block(keys):
    with CompilePool(Target.host(), 2) as pool:
        (helper,) = pool._helpers
    assert helper.poll() is not None


def test_a_process_that_ends_early_is_done_without(keys, expected):
    with CompilePool(Target.host(), 2) as pool:
        pool._helpers[0].kill()
        pool._helpers[0].wait()
        assert pool.emit(keys, lambda: None) == expected


@pytest.mark.parametrize("interpreter", ["/nowhere/python", "/bin/true", "", None])
def test_without_an_interpreter_to_start_this_process_compiles(interpreter, monkeypatch, keys, expected):
    monkeypatch.setattr(sys, "executable", interpreter)
    with CompilePool(Target.host(), 2) as pool:
        assert pool.emit(keys, lambda: None) == expected


@pytest.mark.parametrize("module", ["glowstone/__init__.py", "numpy.py", "pickle.py"])
def test_nothing_of_the_working_folder_is_imported(module, monkeypatch, tmp_path):
    """A model's folder may hold anything, files named like modules too."""
    (tmp_path / module).parent.mkdir(exist_ok=True)
    (tmp_path / module).write_text("raise SystemExit(3)")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    with CompilePool(Target.host(), 2) as pool:
        helper = pool._helpers[0]
        assert compile_pool._send(helper, "no key") is None
        assert helper.wait(timeout=60) != 3
