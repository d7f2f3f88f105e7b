"""A compiled model: run it, bind it, ask what it is."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from glowstone.api.engine import MOST_EXECUTABLES, Engine, Shapes
from glowstone.api.report import build_report
from glowstone.backends.cpu.target import Target
from glowstone.errors import InputError, ShapeError
from glowstone.runtime.executable import Argument, BoundRun, Executable, address_of
from glowstone.runtime.native import NativeCode
from glowstone.support.budget import out_of_memory
from glowstone.types import Dimension

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class TensorInfo:
    """An input or output as the model declares it; a symbolic dimension is a text.

    `kind` is "tensor", or for example "seq(tensor)" or "optional(seq(tensor))", of tensors of that type. Texts are of
    the type object. Without `has_rank` the file says nothing of the shape.
    """

    name: str
    shape: tuple[Dimension, ...]
    dtype: np.dtype[Any]
    kind: str = "tensor"
    has_rank: bool = True

    def __str__(self) -> str:
        extents = ", ".join(map(str, self.shape)) if self.has_rank else "..."
        tensor = f"{'text' if self.dtype.kind == 'O' else self.dtype}[{extents}]"
        return f"{self.name}: {self.kind.replace('tensor', tensor)}"


class Model:
    """A compiled model. Thread-safe: any number of Python threads may call it at once.

    `inputs` and `outputs` describe the arguments. Made by `glowstone.compile`.
    """

    recipe: Callable[[], tuple[Any, ...]] | None = None
    """Gives a function and its arguments that make the model again in another process."""

    def __init__(self, engine: Engine, target: Target, code: NativeCode, threads: int) -> None:
        self._engine = engine
        self._target = target
        self._code = code
        self._threads = threads
        signature = engine.signature
        self.inputs = tuple(TensorInfo(name, dims, element.dtype) for name, element, dims in signature.inputs)
        self.outputs = tuple(TensorInfo(name, dims, element.dtype) for name, element, dims in signature.outputs)
        self._input_names = tuple(info.name for info in self.inputs)
        self._output_names = tuple(info.name for info in self.outputs)
        self._dtypes = tuple(info.dtype for info in self.inputs)
        self._ready: dict[Shapes, Executable] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the model file's bytes and the options: the receiver compiles, or finds it in its cache.

        Raises:
            ModelError: the model file cannot be read any more, or was changed.
            PicklingError: the model was not made by `glowstone.compile`.
        """
        if self.recipe is None:
            raise pickle.PicklingError("only models made by glowstone.compile can be pickled")
        return self.recipe()

    def __repr__(self) -> str:
        sides = (", ".join(map(str, side)) for side in (self.inputs, self.outputs))
        return f"<{type(self).__name__}: {' -> '.join(sides)}>"

    @property
    def threads(self) -> int:
        """How many threads a run uses at most."""
        return self._threads

    @property
    def engine(self) -> Engine:
        """Templates, plans and kernels: what tools look into."""
        return self._engine

    @property
    def target(self) -> Target:
        """The machine that the code is for."""
        return self._target

    @property
    def code(self) -> NativeCode:
        """The native run loop."""
        return self._code

    def specialized(self, inputs: Mapping[str, Array]) -> tuple[Model, Mapping[str, Array]]:
        """The model that runs these inputs, and those that it takes: other ones where values decide shapes."""
        return self, inputs

    def run(self, inputs: Mapping[str, Array], outputs: Sequence[str] | None = None) -> dict[str, Array]:
        """Run once.

        Args:
            inputs: an array by input name, of the declared element type; contiguous ones are not copied.
            outputs: names of the outputs to return; all where None.

        Returns:
            New arrays by output name.

        Raises:
            InputError: an input is missing, unknown, no array, or of another element type; an output is unknown.
            ShapeError: a shape does not fit the model.
            ExecutionError: data that an operator forbids, such as an index out of range.
        """
        arrays = self._checked_inputs(inputs)
        results = self._run(arrays)
        named = dict(zip(self._output_names, results, strict=True))
        if outputs is None:
            return named
        return {name: self._known_output(named, name) for name in outputs}

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        """Run with positional inputs; one array, or a tuple in output order."""
        if len(arrays) != len(self._input_names):
            raise InputError(
                "wrong number of inputs", expected=", ".join(self._input_names), found=f"{len(arrays)} arrays"
            )
        results = self._run(self._checked_inputs(dict(zip(self._input_names, arrays, strict=True))))
        return results[0] if len(results) == 1 else tuple(results)

    def bind(self, inputs: Mapping[str, Array], outputs: Mapping[str, Array] | None = None) -> BoundCall:
        """A prepared call: `call()` reads these inputs where they are and writes these outputs.

        Args:
            inputs: contiguous arrays by input name; their content may change between calls.
            outputs: contiguous writable arrays by output name; those left out are allocated.

        Raises:
            InputError: as `run`; or an array is not contiguous, an output is read-only, of another type or shape, or
                overlaps an input or another output.
        """
        arrays = self._checked_inputs(inputs, contiguous=True)
        executable = self._executable(tuple(array.shape for array in arrays))
        results = _bound_outputs(executable, arrays, outputs or {})
        arena = self._engine.arenas.take(executable.arena_bytes)
        bound = BoundRun(executable, self._code, self._threads, arena, [*arrays, *results])
        return BoundCall(bound, dict(zip(self._output_names, results, strict=True)))

    def write_bundle(self, folder: str | os.PathLike[str], name: str) -> tuple[Path, Path]:
        """Write the model at its reference shape as an object file and a C header, for one thread and no library.

        Args:
            folder: where `<name>.o` and `<name>.h` go.
            name: a C identifier.

        Raises:
            InputError: the name is no C identifier.
            LimitError: the constants are too large for one object file.
            OSError: a file cannot be written.
        """
        return self._engine.maker.write_bundle(self._target, Path(folder), name)

    def report(self) -> dict[str, Any]:
        """What the compiler did: stages with seconds, instructions with kernels, memory, counters."""
        return build_report(self._engine)

    def _run(self, arrays: list[Array]) -> list[Array]:
        executable = self._executable(tuple([array.shape for array in arrays]))
        try:
            results = [np.empty(argument.shape, argument.dtype) for argument in executable.outputs]
            executable.run(self._code, self._threads, self._engine.arenas, [*arrays, *results])
        except MemoryError as error:
            raise out_of_memory(error) from error
        return results

    def _executable(self, shapes: Shapes) -> Executable:
        executable = self._ready.get(shapes)
        if executable is None:
            self._check_shapes(shapes)
            executable = self._engine.executable(shapes)
            self._ready = {} if len(self._ready) >= MOST_EXECUTABLES else dict(self._ready)
            self._ready[shapes] = executable
        return executable

    def _checked_inputs(self, inputs: Mapping[str, Array], contiguous: bool = False) -> list[Array]:
        """The arrays in input order, contiguous."""
        arrays = []
        for name, dtype in zip(self._input_names, self._dtypes, strict=True):
            array = inputs.get(name)
            if type(array) is not np.ndarray or array.dtype != dtype:
                array = self._accepted(name, dtype, inputs)
            if not array.flags.c_contiguous:
                if contiguous:
                    raise InputError(f"input {name!r} is not contiguous", remedy="pass numpy.ascontiguousarray(array)")
                array = np.ascontiguousarray(array)
            arrays.append(array)
        if len(inputs) != len(arrays):
            unknown = ", ".join(repr(name) for name in inputs if name not in self._input_names)
            raise InputError("no input of this name", expected=", ".join(self._input_names), found=unknown)
        return arrays

    def _accepted(self, name: str, dtype: np.dtype[Any], inputs: Mapping[str, Array]) -> Array:
        """An array of a subclass or a NumPy scalar as an array; anything else is refused."""
        if name not in inputs:
            raise InputError(
                f"input {name!r} is missing",
                expected=", ".join(self._input_names),
                found=", ".join(inputs) or "nothing",
            )
        given = inputs[name]
        if not isinstance(given, np.ndarray | np.generic):
            raise InputError(
                f"input {name!r} is no array", expected=f"a NumPy array of {dtype}", found=type(given).__name__
            )
        array = np.asarray(given)
        if array.dtype != dtype:
            raise InputError(
                f"input {name!r} has another element type",
                expected=str(dtype),
                found=str(array.dtype),
                remedy=f"convert it: array.astype('{dtype}')",
            )
        return array

    def _check_shapes(self, shapes: Shapes) -> None:
        """Raise ShapeError where ranks, static dimensions or symbols do not fit."""
        self._check_shapes_of(self.inputs, shapes)

    def _check_shapes_of(self, inputs: Sequence[TensorInfo], shapes: Shapes) -> None:
        symbols: dict[str, tuple[str, int]] = {}
        for info, shape in zip(inputs, shapes, strict=True):
            fits = len(shape) == len(info.shape) and all(
                isinstance(dimension, str) or dimension == extent
                for dimension, extent in zip(info.shape, shape, strict=True)
            )
            if not fits:
                raise ShapeError(
                    f"input {info.name!r} has another shape",
                    expected=list(info.shape),
                    found=list(shape),
                    remedy="static dimensions are fixed by the model file; export it with symbolic ones to vary them",
                )
            for dimension, extent in zip(info.shape, shape, strict=True):
                if isinstance(dimension, str):
                    first, value = symbols.setdefault(dimension, (info.name, extent))
                    if value != extent:
                        raise ShapeError(
                            f"inputs {first!r} and {info.name!r} disagree about dimension {dimension!r}",
                            expected=value,
                            found=extent,
                        )

    def _known_output(self, named: Mapping[str, Array], name: str) -> Array:
        if name not in named:
            raise InputError("no output of this name", expected=", ".join(self._output_names), found=name)
        return named[name]


class BoundCall:
    """A call bound to its arrays. Calling it runs the model; `outputs` are the arrays it writes.

    Raises:
        InputError: it is called while another thread is inside.
    """

    def __init__(self, bound: BoundRun, outputs: dict[str, Array]) -> None:
        self.outputs = outputs
        self._bound = bound
        self._enter = bound.enter
        self._leave = bound.leave
        self._run = bound.run

    def __call__(self) -> dict[str, Array]:
        if not self._enter(False):
            raise InputError("a bound call is entered twice", remedy="bind one call per thread")
        try:
            self._run()
        finally:
            self._leave()
        return self.outputs


def _bound_outputs(executable: Executable, inputs: list[Array], given: Mapping[str, Array]) -> list[Array]:
    names = [argument.name for argument in executable.outputs]
    for name in given:
        if name not in names:
            raise InputError("no output of this name", expected=", ".join(names), found=name)
    results = [
        _checked_output(argument, given[argument.name])
        if argument.name in given
        else np.empty(argument.shape, argument.dtype)
        for argument in executable.outputs
    ]
    for index, (name, result) in enumerate(zip(names, results, strict=True)):
        for other in (*inputs, *results[:index]):
            if _overlap(result, other):
                raise InputError(f"output {name!r} overlaps another argument", remedy="give it memory of its own")
    return results


def _checked_output(argument: Argument, array: Array) -> Array:
    if not isinstance(array, np.ndarray) or (array.dtype, array.shape) != (argument.dtype, argument.shape):
        found = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
        raise InputError(
            f"output {argument.name!r} does not fit", expected=f"{argument.dtype}{list(argument.shape)}", found=found
        )
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise InputError(f"output {argument.name!r} is not contiguous and writable")
    return array


def _overlap(first: Array, second: Array) -> bool:
    begin, other = address_of(first), address_of(second)
    return begin < other + second.nbytes and other < begin + first.nbytes and bool(first.size and second.size)
