"""A model that runs in steps: where shapes depend on data it is cut, and what is no tensor is worked on by the host.

Parts between the cuts are compiled when values first arrive there. Running again compiles nothing, whatever the data,
but a part that meets new shapes is planned for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glowstone.api.engine import Engine
from glowstone.api.environment import Environment, HostValue
from glowstone.api.model import Array, BoundCall, Model, TensorInfo
from glowstone.api.report import build_report, plan_summary
from glowstone.api.steps import SteppedGraph
from glowstone.api.workshop import Workshop
from glowstone.errors import InputError
from glowstone.importer import DeclaredPort
from glowstone.runtime.native import NativeCode
from glowstone.support.budget import refusing_exhaustion

Values = Mapping[str, HostValue]


class SteppedModel(Model):
    """See the module. Inputs and outputs may be lists (sequences), None (an empty optional) and arrays of texts."""

    def __init__(
        self,
        ports: tuple[Sequence[DeclaredPort], Sequence[DeclaredPort]],
        graph: SteppedGraph,
        whole: Callable[[Values], tuple[Model, Values]],
    ) -> None:
        self.inputs, self.outputs = (tuple(_info(port) for port in side) for side in ports)
        self._input_names = tuple(info.name for info in self.inputs)
        self._output_names = tuple(info.name for info in self.outputs)
        self._graph = graph
        self._workshop: Workshop = graph.workshop
        self._threads = self._workshop.threads
        self._code = self._workshop.code
        self._whole = whole

    @property
    def engine(self) -> Engine:
        """There is none for the whole.

        Raises:
            InputError: always.
        """
        raise InputError(
            "the model runs in steps: there is no one program of it", remedy="fix inputs with constants={...}"
        )

    @property
    def code(self) -> NativeCode:
        """See `Model.code`."""
        return self._code

    def specialized(self, inputs: Values) -> tuple[Model, Values]:
        """The model as one program, with inputs whose values decide shapes fixed.

        Raises:
            UnsupportedError: it cannot be one.
        """
        return self._whole(inputs)

    def run(self, inputs: Values, outputs: Sequence[str] | None = None) -> dict[str, HostValue]:
        """See `Model.run`."""
        environment = Environment({info.name: self._given(info, inputs) for info in self.inputs})
        for name in inputs:
            if name not in self._input_names:
                raise InputError("no input of this name", expected=", ".join(self._input_names), found=repr(name))
        self._check_symbols(inputs)
        with refusing_exhaustion():
            results = self._graph.run(environment)
        named = {name: _owned(value) for name, value in zip(self._output_names, results, strict=True)}
        if outputs is None:
            return named
        return {name: self._known_output(named, name) for name in outputs}

    def __call__(self, *arrays: HostValue) -> Any:
        """See `Model.__call__`."""
        if len(arrays) != len(self._input_names):
            raise InputError(
                "wrong number of inputs", expected=", ".join(self._input_names), found=f"{len(arrays)} arrays"
            )
        results = tuple(self.run(dict(zip(self._input_names, arrays, strict=True))).values())
        return results[0] if len(results) == 1 else results

    def bind(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None = None) -> BoundCall:
        """See `Model.bind`; inputs whose values decide shapes have those at the time of binding.

        Raises:
            UnsupportedError: shapes depend on more than inputs.
        """
        model, left = self._whole(inputs)
        return model.bind(left, outputs)

    def write_bundle(self, folder: Any, name: str) -> tuple[Path, Path]:
        """Not for a model in steps.

        Raises:
            InputError: always.
        """
        raise InputError("a model that runs in steps is no one program", remedy="fix inputs with constants={...}")

    def report(self) -> dict[str, Any]:
        """What the compiler did with the parts that were compiled so far."""
        engines, settings = list(self._workshop.engines), self._workshop.settings
        parts = [build_report(engine) for engine in engines]
        counters = [part["counters"] for part in parts]
        summed = {name: sum(counter[name] for counter in counters) for name in (counters[0] if counters else ())}
        nodes = list(self._workshop.host_nodes.values())
        return {
            **plan_summary(parts, settings),
            "counters": {**summed, "kernels_compiled": self._workshop.library.compiled},
            "host_steps": len(nodes),
            "host_nodes": [{"name": node.name, "operator": node.kind} for node in nodes],
            "parts": parts,
        }

    def _given(self, info: TensorInfo, inputs: Values) -> HostValue:
        """The value of an input, checked as far as the file declares what it is."""
        if info.name not in inputs:
            raise InputError(
                f"input {info.name!r} is missing",
                expected=", ".join(self._input_names),
                found=", ".join(inputs) or "nothing",
            )
        value = inputs[info.name]
        if info.kind != TensorInfo.kind:
            return self._checked_container(info, value)
        if info.dtype.kind == "O":
            texts = np.asarray(value)
            if texts.dtype.kind not in "OUS":
                raise InputError(f"input {info.name!r} is no array of texts", expected="texts", found=texts.dtype)
            return texts.astype(object)
        is_plain = type(value) is np.ndarray and value.dtype == info.dtype
        return value if is_plain else self._accepted(info.name, info.dtype, inputs)

    def _checked_container(self, info: TensorInfo, value: HostValue) -> HostValue:
        if value is None and info.kind.startswith("optional"):
            return None
        is_sequence = info.kind.removeprefix("optional(").startswith("seq")
        if is_sequence and isinstance(value, list | tuple):
            return [np.asarray(item) if isinstance(item, np.ndarray | np.generic) else item for item in value]
        if is_sequence or not isinstance(value, np.ndarray | np.generic | dict):
            raise InputError(f"input {info.name!r} does not fit", expected=info.kind, found=type(value).__name__)
        return value if isinstance(value, dict) else np.asarray(value)

    def _check_symbols(self, inputs: Values) -> None:
        """Raise ShapeError where ranks, static dimensions or symbols of tensors do not fit."""
        checked = [info for info in self.inputs if info.kind == TensorInfo.kind and info.has_rank]
        self._check_shapes_of(checked, tuple(np.shape(inputs[info.name]) for info in checked))


def _info(port: DeclaredPort) -> TensorInfo:
    dtype = np.dtype(object) if port.dtype is None else port.dtype
    return TensorInfo(port.name, port.dimensions or (), dtype, port.kind, port.dimensions is not None)


def _owned(value: HostValue) -> HostValue:
    """A result in memory of its own, not in that of a larger buffer or of an input."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return [_owned(item) for item in value] if isinstance(value, list) else value
