"""A model some of whose inputs decide shapes by their values: compiled when the values arrive, once for each.

Reshape with its shape given as an input is such a model. Kernels are shared between the compilations.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from glowstone.api.engine import Engine, Signature
from glowstone.api.model import Array, BoundCall, Model, TensorInfo
from glowstone.backends.cpu.target import Target
from glowstone.errors import InputError
from glowstone.runtime.fork import ForkSafeLock
from glowstone.runtime.native import NativeCode

MOST_VARIANTS = 16
"""Compilations kept; the least recently used go."""

Specialize = Callable[[Mapping[str, Array], Mapping[str, tuple[int, ...]]], Model]
"""Compiles the model for values of the deciding inputs and shapes of the others."""


class ValueModel(Model):
    """See the module. `deciding` are the inputs whose values decide shapes."""

    def __init__(self, signature: Signature, deciding: tuple[str, ...], threads: int, specialize: Specialize) -> None:
        self.inputs = tuple(TensorInfo(name, dims, element.dtype) for name, element, dims in signature.inputs)
        self.outputs = tuple(TensorInfo(name, dims, element.dtype) for name, element, dims in signature.outputs)
        self._deciding = deciding
        self._specialize = specialize
        self._threads = threads
        self._variants: OrderedDict[tuple[tuple[str, tuple[int, ...], bytes], ...], Model] = OrderedDict()
        self._lock = ForkSafeLock()

    @property
    def engine(self) -> Engine:
        """The engine of the variant used last.

        Raises:
            InputError: nothing was run yet.
        """
        return self._latest().engine

    @property
    def target(self) -> Target:
        """See `Model.target` and `engine`."""
        return self._latest().target

    @property
    def code(self) -> NativeCode:
        """See `Model.code` and `engine`."""
        return self._latest().code

    def specialized(self, inputs: Mapping[str, Array]) -> tuple[Model, Mapping[str, Array]]:
        """See `Model.specialized`."""
        return self._variant(inputs)

    def run(self, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None) -> dict[str, Array]:
        """See `Model.run`."""
        model, rest = self._variant(inputs)
        return model.run(rest, outputs)

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """See `Model.__call__`."""
        names = [info.name for info in self.inputs]
        if len(arrays) != len(names):
            raise InputError("wrong number of inputs", expected=", ".join(names), found=f"{len(arrays)} arrays")
        results = tuple(self.run(dict(zip(names, arrays, strict=True))).values())
        return results[0] if len(results) == 1 else results

    def bind(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None = None) -> BoundCall:
        """See `Model.bind`; the deciding inputs' values are those at the time of binding."""
        model, rest = self._variant(inputs)
        return model.bind(rest, outputs)

    def write_bundle(self, folder: Any, name: str) -> tuple[Path, Path]:
        """Not before the deciding inputs are fixed.

        Raises:
            InputError: always.
        """
        raise self._undecided()

    def report(self) -> dict[str, Any]:
        """The report of the variant used last.

        Raises:
            InputError: nothing was run yet.
        """
        return self._latest().report()

    def _latest(self) -> Model:
        if not self._variants:
            raise self._undecided()
        return next(reversed(self._variants.values()))

    def _undecided(self) -> InputError:
        return InputError(
            f"the values of {', '.join(self._deciding)} decide shapes and are not known yet",
            remedy="run the model first, or fix them with constants={...}",
        )

    def _variant(self, inputs: Mapping[str, Array]) -> tuple[Model, dict[str, Array]]:
        """The model for these values, and the inputs it still takes."""
        types = {info.name: info.dtype for info in self.inputs}
        for name in inputs:
            if name not in types:
                raise InputError("no input of this name", expected=", ".join(types), found=name)
        values = {name: self._accepted(name, types[name], inputs) for name in self._deciding}
        rest = {name: array for name, array in inputs.items() if name not in self._deciding}
        key = tuple((name, array.shape, array.tobytes()) for name, array in values.items())
        with self._lock:
            if key not in self._variants:
                shapes = {name: np.shape(array) for name, array in rest.items()}
                self._variants[key] = self._specialize(values, shapes)
                while len(self._variants) > MOST_VARIANTS:
                    self._variants.popitem(last=False)
            self._variants.move_to_end(key)
            return self._variants[key], rest
