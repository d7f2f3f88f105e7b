"""The command line: results on standard output, the rest on standard error, and the promised exit codes.

`glowstone.compile` is replaced by a model of a few lines of NumPy: the command line is tested, not the compiler.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import glowstone
from glowstone.cli.main import main


@pytest.fixture
def model_file(tmp_path) -> Path:
    """y = x @ w + 1 with x [batch, 3] and w [3, 4]."""
    weights = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
    one = numpy_helper.from_array(np.float32([1]), "one")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["product"]), helper.make_node("Add", ["product", "one"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
        [weights, one],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


class DoublingModel:
    """Stands for a compiled model: output y is twice input x."""

    def __init__(self, calls: list):
        self.calls = calls
        self.inputs = [SimpleNamespace(name="x", shape=("batch", 3), dtype=np.dtype(np.float32))]

    def run(self, arrays):
        return {"y": 2 * arrays["x"]}

    def bind(self, arrays):
        return lambda: self.calls.append(self.run(arrays))

    def report(self):
        instruction = {"name": "first", "operation": "matmul", "kernel": "m1", "algorithm": "direct", "cost_ns": 1500}
        return {
            "stages": [{"name": "import", "seconds": 0.25}],
            "kernels": ["m1"],
            "memory": {"arena_bytes": 2048, "bound_bytes": 1024, "constants_bytes": 48},
            "instructions": [instruction],
        }


@pytest.fixture
def calls(monkeypatch) -> list:
    made: list = []
    monkeypatch.setattr(glowstone, "compile", lambda *_, **__: DoublingModel(made), raising=False)
    return made


def test_version_and_help(capsys):
    assert main(["--version"]) == 0
    assert glowstone.__version__ in capsys.readouterr().out
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(command in out for command in ("demo", "run", "bench", "inspect", "cache"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["inspect"],
        ["inspect", "m.onnx", "--shape", "x"],
        ["inspect", "m.onnx", "--shape", "x=1", "--shape", "x=2"],
        ["run", "m.onnx", "-i", "file.npy"],
        ["bench", "m.onnx", "--threads", "0"],
        ["cache", "empty"],
    ],
)
def test_wrong_usage_is_2_and_goes_to_standard_error(arguments, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error" in captured.err


def test_a_missing_file_is_1_without_a_traceback(tmp_path, capsys):
    assert main(["inspect", str(tmp_path / "nothing.onnx")]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "nothing.onnx" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("arguments", [["--debug", "inspect"], ["inspect", "--debug"]])
def test_debug_shows_the_traceback_before_or_after_the_command(arguments, tmp_path, capsys):
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"\x08\xff\xff")
    assert main([*arguments, str(broken)]) == 1
    captured = capsys.readouterr()
    assert "Traceback" in captured.err
    assert "ModelError" in captured.err


def test_an_interrupt_is_130(monkeypatch, model_file, capsys):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(glowstone, "compile", interrupt, raising=False)
    assert main(["bench", str(model_file), "--shape", "x=2,3"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_fault_of_ours_is_1_and_names_the_remedy(monkeypatch, model_file, capsys):
    def fail(*_, **__):
        raise ZeroDivisionError("by [bold]zero[/]")

    monkeypatch.setattr(glowstone, "compile", fail, raising=False)
    assert main(["bench", str(model_file), "--shape", "x=2,3"]) == 1
    error = capsys.readouterr().err
    assert "ZeroDivisionError: by [bold]zero[/]" in error
    assert "--debug" in error
    assert "Traceback" not in error


def test_inspect_as_json_counts_what_is_in_the_file(model_file, capsys):
    assert main(["inspect", str(model_file), "--json", "--shape", "x=5,3"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["inputs"] == [{"name": "x", "element": "float", "shape": [5, 3]}]
    assert report["outputs"] == [{"name": "y", "element": "float", "shape": [5, 4]}]
    assert report["operators"] == {"Add": 1, "MatMul": 1}
    assert report["parameters"] == 13
    assert report["parameter_bytes"] == 52
    assert "compiled" not in report


def test_inspect_prints_the_compiled_program(model_file, calls, capsys):
    assert main(["inspect", str(model_file), "--compiled", "--shape", "x=5,3"]) == 0
    captured = capsys.readouterr()
    for expected in ("MatMul", "matmul", "direct", "1.5 us", "250 ms", "2 KiB planned", "2.000 of the least possible"):
        assert expected in captured.out
    assert captured.err == ""


def test_inspect_as_json_includes_the_report(model_file, calls, capsys):
    assert main(["inspect", str(model_file), "--compiled", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["compiled"] == DoublingModel([]).report()


def test_run_writes_the_outputs_under_the_name_given(model_file, calls, tmp_path, capsys):
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "x.npy", array)
    output = tmp_path / "results"
    assert main(["run", str(model_file), "-i", f"x={tmp_path / 'x.npy'}", "-o", str(output)]) == 0
    with np.load(output) as saved:
        np.testing.assert_array_equal(saved["y"], 2 * array)
    assert "2x3" in capsys.readouterr().out


def test_run_refuses_pickled_objects(model_file, calls, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.array([{}]), allow_pickle=True)
    assert main(["run", str(model_file), "-i", f"x={tmp_path / 'x.npy'}"]) == 1
    assert "x.npy" in capsys.readouterr().err


def test_bench_counts_its_iterations(model_file, calls, capsys):
    assert main(["bench", str(model_file), "--shape", "x=2,3", "-n", "7", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["count"] == 7
    assert len(calls) > 7
    assert calls[0]["y"].shape == (2, 3)
    assert figures["latency_minimum_s"] <= figures["latency_median_s"] <= figures["latency_maximum_s"]
    assert figures["throughput_per_s"] == pytest.approx(7 / figures["duration_s"])


def test_bench_prints_the_words_of_the_field(model_file, calls, capsys):
    assert main(["bench", str(model_file), "--shape", "x=2,3", "-n", "3"]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("count", "duration", "median", "average", "minimum", "maximum", "throughput"))


def test_bench_asks_for_the_shape_of_a_dynamic_input(model_file, calls, capsys):
    assert main(["bench", str(model_file), "-n", "1"]) == 2
    assert "--shape x=batch,3" in capsys.readouterr().err


def test_cache_info_and_clear(monkeypatch, tmp_path, capsys):
    folder = tmp_path / "compiled"
    (folder / "kernels").mkdir(parents=True)
    (folder / "kernels" / "one").write_bytes(b"x" * 1000)
    (folder / "two").write_bytes(b"x" * 24)
    monkeypatch.setenv("GLOWSTONE_CACHE_DIR", str(folder))
    assert main(["cache", "info", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["files"] == 2
    assert report["bytes"] == 1024
    assert main(["cache", "clear"]) == 0
    assert "removed 2 files, 1 KiB" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert main(["cache", "clear"]) == 0
    assert main(["cache", "info"]) == 0
