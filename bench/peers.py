"""The engines that are compared, each at its best float32 settings: all settings of all engines stand in this file.

An engine is prepared with a model and gives two forms of call, like for like: `run` takes arrays and returns arrays;
`bound` has inputs and outputs placed ahead, and only computes.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Array = np.ndarray
Arrays = Mapping[str, Array]

CONVERSION_SECONDS = 600


@dataclass(frozen=True)
class Job:
    """What an engine is asked to run. An engine may take `constants` as fixed inputs; others get them fed."""

    model: str
    threads: int
    example: Arrays
    constants: Arrays = field(default_factory=dict)
    tuning: str | None = None


class Prepared(Protocol):
    """A model ready to run."""

    def run(self, inputs: Arrays) -> list[Array]:
        """The outputs in the model's order, as new arrays."""

    def bind(self) -> tuple[Arrays, Callable[[], object]]:
        """Arrays to write inputs into, and the call that computes the outputs from them."""


class Glowstone:
    """Glowstone, `numerics` at its default."""

    def __init__(self, job: Job) -> None:
        import glowstone

        shapes = {name: array.shape for name, array in job.example.items() if name not in job.constants}
        self._model = glowstone.compile(
            job.model, shapes=shapes, threads=job.threads, constants=dict(job.constants) or None, tuning=job.tuning
        )
        self._buffers = {name: np.array(job.example[name]) for name in shapes}
        self._fixed = frozenset(job.constants)

    def run(self, inputs: Arrays) -> list[Array]:
        given = inputs if not self._fixed else {name: inputs[name] for name in self._buffers}
        return list(self._model.run(given).values())

    def bind(self) -> tuple[Arrays, Callable[[], object]]:
        return self._buffers, self._model.bind(self._buffers)


class OnnxRuntime:
    """All graph optimizations, the CPU provider, threads within an operator only."""

    def __init__(self, job: Job) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = job.threads
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(job.model, options, providers=["CPUExecutionProvider"])
        self._buffers = {name: np.array(array) for name, array in job.example.items()}

    def run(self, inputs: Arrays) -> list[Array]:
        results: list[Array] = self._session.run(None, dict(inputs))
        return results

    def bind(self) -> tuple[Arrays, Callable[[], object]]:
        binding = self._session.io_binding()
        for name, array in self._buffers.items():
            binding.bind_cpu_input(name, array)
        for output in self._session.get_outputs():
            binding.bind_output(output.name, "cpu")
        return self._buffers, lambda: self._session.run_with_iobinding(binding)


class OpenVino:
    """One request at a time in float32: the latency hint, one stream."""

    def __init__(self, job: Job) -> None:
        import openvino

        core = openvino.Core()
        model = core.read_model(job.model)
        names = [port.get_any_name() for port in model.inputs]
        model.reshape({name: job.example[name].shape for name in names})
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": str(job.threads),
            "NUM_STREAMS": "1",
        }
        self._request = core.compile_model(model, "CPU", settings).create_infer_request()
        self._names = names
        self._outputs = len(model.outputs)
        self._buffers = {name: np.array(job.example[name]) for name in names}

    def run(self, inputs: Arrays) -> list[Array]:
        results = self._request.infer({name: inputs[name] for name in self._names}, share_inputs=True)
        return [results[index] for index in range(self._outputs)]

    def bind(self) -> tuple[Arrays, Callable[[], object]]:
        import openvino

        for name, array in self._buffers.items():
            self._request.set_tensor(name, openvino.Tensor(array, shared_memory=True))
        return self._buffers, self._request.infer


class Ncnn:
    """Converted by pnnx. Float32 all through: no half precision or bfloat16 in storage or arithmetic."""

    def __init__(self, job: Job) -> None:
        import ncnn

        parameters, weights = _convert_to_ncnn(Path(job.model), job.example)
        self._ncnn = ncnn
        self._net = ncnn.Net()
        options = self._net.opt
        options.num_threads = job.threads
        options.use_vulkan_compute = False
        options.use_fp16_packed = options.use_fp16_storage = options.use_fp16_arithmetic = False
        options.use_bf16_storage = options.use_bf16_packed = False
        options.use_packing_layout = options.use_winograd_convolution = options.use_sgemm_convolution = True
        options.lightmode = True
        if self._net.load_param(str(parameters)) or self._net.load_model(str(weights)):
            raise RuntimeError("ncnn cannot load the converted model")
        self._names = list(job.example)
        self._buffers = {name: np.array(array) for name, array in job.example.items()}

    def run(self, inputs: Arrays) -> list[Array]:
        return [np.array(result) for result in self._extract(inputs)]

    def bind(self) -> tuple[Arrays, Callable[[], object]]:
        return self._buffers, lambda: self._extract(self._buffers)

    def _extract(self, inputs: Arrays) -> list[Any]:
        """Output blobs; a batch of one is no axis there."""
        extractor = self._net.create_extractor()
        for index, name in enumerate(self._names):
            extractor.input(f"in{index}", self._ncnn.Mat(inputs[name][0]))
        results = []
        for name in self._net.output_names():
            code, result = extractor.extract(name)
            if code:
                raise RuntimeError(f"ncnn cannot compute {name}")
            results.append(result)
        return results


def _convert_to_ncnn(model: Path, example: Arrays) -> tuple[Path, Path]:
    """Parameter and weight file beside the model, made once by pnnx.

    Raises:
        RuntimeError: pnnx cannot convert the model.
    """
    folder = model.with_suffix(".ncnn")
    parameters, weights = folder / "model.ncnn.param", folder / "model.ncnn.bin"
    if not parameters.exists():
        with tempfile.TemporaryDirectory(dir=model.parent) as made:
            shapes = ",".join(
                f"[{','.join(map(str, array.shape))}]{_suffix(array.dtype)}" for array in example.values()
            )
            (Path(made) / "model.onnx").symlink_to(model.resolve())
            command = [str(Path(sys.executable).with_name("pnnx")), "model.onnx", f"inputshape={shapes}", "fp16=0"]
            subprocess.run(command, cwd=made, capture_output=True, timeout=CONVERSION_SECONDS, check=False)
            if not (Path(made) / parameters.name).exists():
                raise RuntimeError("pnnx cannot convert this model")
            folder.mkdir(exist_ok=True)
            for file in (weights, parameters):
                (Path(made) / file.name).replace(file)
    return parameters, weights


def _suffix(dtype: np.dtype) -> str:
    return {"float32": "f32", "int64": "i64", "int32": "i32"}[dtype.name]


ENGINES: dict[str, Callable[[Job], Prepared]] = {
    "glowstone": Glowstone,
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
    "ncnn": Ncnn,
}
PEERS: Sequence[str] = ("onnxruntime", "openvino", "ncnn")


def versions() -> dict[str, str]:
    """The version of every engine."""
    return {name: str(importlib.import_module(name).__version__) for name in ENGINES}
