"""A drop-in for ONNX Runtime's InferenceSession: the same calls, the same argument names, lists in and out."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.api.compilation import compile
from glowstone.api.model import TensorInfo
from glowstone.errors import InputError, ShapeError
from glowstone.support.model_source import ModelSource
from glowstone.types import Dimension, ElementType

Array = np.ndarray[Any, np.dtype[Any]]

PROVIDERS = ["CPUExecutionProvider"]

_TYPE_NAMES = {
    ElementType.F64: "double",
    ElementType.F32: "float",
    ElementType.F16: "float16",
    ElementType.BF16: "bfloat16",
    ElementType.I64: "int64",
    ElementType.I32: "int32",
    ElementType.I16: "int16",
    ElementType.I8: "int8",
    ElementType.U64: "uint64",
    ElementType.U32: "uint32",
    ElementType.U16: "uint16",
    ElementType.U8: "uint8",
    ElementType.BOOL: "bool",
    ElementType.F8E4M3FN: "float8e4m3fn",
    ElementType.F8E4M3FNUZ: "float8e4m3fnuz",
    ElementType.F8E5M2: "float8e5m2",
    ElementType.F8E5M2FNUZ: "float8e5m2fnuz",
    ElementType.F8E8M0: "float8e8m0",
    ElementType.F6E2M3: "float6e2m3",
    ElementType.F6E3M2: "float6e3m2",
    ElementType.F4E2M1: "float4e2m1",
    ElementType.I4: "int4",
    ElementType.U4: "uint4",
    ElementType.I2: "int2",
    ElementType.U2: "uint2",
}

_WITHOUT_MEANING = {
    "graph_optimization_level": None,
    "inter_op_num_threads": 0,
    "execution_mode": None,
    "enable_mem_pattern": True,
    "enable_cpu_mem_arena": True,
    "enable_mem_reuse": True,
    "log_severity_level": None,
    "log_verbosity_level": 0,
    "logid": "",
    "enable_profiling": False,
    "profile_file_prefix": "onnxruntime_profile_",
    "use_deterministic_compute": False,
    "use_per_session_threads": True,
}
"""Session options that have no meaning here, with the value that asks for nothing; None: any value."""

_warned: set[str] = set()


def _warn_once(what: str) -> None:
    if what not in _warned:
        _warned.add(what)
        warnings.warn(f"{what} has no meaning here and is ignored", RuntimeWarning, stacklevel=4)


@dataclass(frozen=True)
class NodeArg:
    """An input or output: `name`, `shape` (texts where symbolic) and `type`, such as 'tensor(float)'."""

    name: str
    shape: list[Dimension]
    type: str

    @staticmethod
    def of(info: TensorInfo) -> NodeArg:
        is_text = info.dtype.kind == "O"
        element = "string" if is_text else _TYPE_NAMES[ElementType.from_dtype(info.dtype)]
        return NodeArg(info.name, list(info.shape), info.kind.replace("tensor", f"tensor({element})"))


class InferenceSession:
    """Compiles a model and runs it with ONNX Runtime's calls.

    Args:
        path_or_bytes: a path, the bytes of a model, or a ModelProto.
        sess_options: any object with ONNX Runtime's attributes; thread counts are honoured (0: the default).
        providers: names or (name, options) pairs; the CPU provider must be among them.
        provider_options: ignored, as the CPU provider has none.
        free_dimension_overrides: extents by dimension name, as `add_free_dimension_override_by_name` gives them.
        compile_options: keyword arguments of `glowstone.compile`.

    Raises:
        InputError: an option that would change results and is not supported, or no CPU provider.
    """

    def __init__(
        self,
        path_or_bytes: ModelSource,
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        free_dimension_overrides: Mapping[str, int] | None = None,
        **compile_options: Any,
    ) -> None:
        _check_providers(providers)
        threads = _thread_count(sess_options)
        if threads is not None:
            compile_options.setdefault("threads", threads)
        self._model = compile(path_or_bytes, **compile_options)
        self._overrides = {**_overrides(sess_options, self._symbols()), **(free_dimension_overrides or {})}
        self._inputs = [self._fixed(NodeArg.of(info)) for info in self._model.inputs]
        self._outputs = [self._fixed(NodeArg.of(info)) for info in self._model.outputs]

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Array], run_options: Any = None
    ) -> list[Array]:
        """Outputs by name, in the order asked for; all where None or empty.

        Raises:
            InputError, ShapeError, ExecutionError: as `Model.run`.
        """
        _check_run_options(run_options)
        self._check_overrides(input_feed)
        results = self._model.run(input_feed, list(output_names) if output_names else None)
        return list(results.values())

    def get_inputs(self) -> list[NodeArg]:
        """What the model takes."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """What the model gives."""
        return list(self._outputs)

    def get_providers(self) -> list[str]:
        """The one provider there is."""
        return list(PROVIDERS)

    def _symbols(self) -> list[str]:
        """The symbolic dimensions of the inputs, each once."""
        return list(dict.fromkeys(dim for info in self._model.inputs for dim in info.shape if isinstance(dim, str)))

    def _fixed(self, argument: NodeArg) -> NodeArg:
        shape = [self._overrides.get(dim, dim) if isinstance(dim, str) else dim for dim in argument.shape]
        return NodeArg(argument.name, shape, argument.type)

    def _check_overrides(self, feed: Mapping[str, Array]) -> None:
        """Dimensions that an override fixed are static from then on."""
        if not self._overrides:
            return
        for argument in self._inputs:
            shape = np.shape(feed[argument.name]) if argument.name in feed else ()
            for axis, (dimension, extent) in enumerate(zip(argument.shape, shape, strict=False)):
                if isinstance(dimension, int) and dimension != extent:
                    raise ShapeError(
                        f"input {argument.name!r} differs from a dimension override",
                        expected=f"{dimension} on axis {axis}",
                        found=list(shape),
                    )


def _check_providers(providers: Sequence[Any] | None) -> None:
    if providers is None:
        return
    names = [provider if isinstance(provider, str) else provider[0] for provider in providers]
    if names and not set(names) & set(PROVIDERS):
        raise InputError("none of the providers is there", expected=", ".join(PROVIDERS), found=", ".join(names))
    for name in names:
        if name not in PROVIDERS:
            _warn_once(f"provider {name}")


def _thread_count(options: Any) -> int | None:
    """The thread count that session options ask for; None for the default.

    Raises:
        InputError: an option that would write files.
    """
    if options is None:
        return None
    for name, nothing in _WITHOUT_MEANING.items():
        value = getattr(options, name, nothing)
        if nothing is not None and value != nothing:
            _warn_once(f"session option {name}")
    if getattr(options, "optimized_model_filepath", ""):
        raise InputError("session option optimized_model_filepath is not supported", expected="no path")
    return int(getattr(options, "intra_op_num_threads", 0)) or None


def _overrides(options: Any, symbols: list[str]) -> dict[str, int]:
    """Dimension overrides of session options.

    ONNX Runtime's own object does not show them, so a tiny model with these dimensions is asked what becomes of them.
    """
    shown = getattr(options, "free_dimension_overrides", None)
    if shown is not None:
        return dict(shown)
    if not symbols or not type(options).__module__.startswith("onnxruntime"):
        return {}
    from glowstone.importer.probe_model import dimension_probe

    runtime = sys.modules["onnxruntime"]
    probe = runtime.InferenceSession(dimension_probe(symbols), options, providers=PROVIDERS)
    extents = [argument.shape[0] for argument in probe.get_inputs()]
    return {symbol: extent for symbol, extent in zip(symbols, extents, strict=True) if isinstance(extent, int)}


def _check_run_options(options: Any) -> None:
    if options is None:
        return
    if getattr(options, "only_execute_path_to_fetches", False):
        _warn_once("run option only_execute_path_to_fetches")
    if getattr(options, "terminate", False):
        raise InputError("run option terminate is set", expected="terminate=False")
