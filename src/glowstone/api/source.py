"""The model as it was given to `compile`: its digest for the cache, and its graph when the compiler wants it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from glowstone.api.digest_index import file_state, known_digest, remember_digest
from glowstone.errors import InputError, ModelError
from glowstone.runtime.cache import Cache
from glowstone.support.external_data import DataPart, ExternalData
from glowstone.support.model_source import ModelSource, locate, read_bytes
from glowstone.types import Dimension, GivenShapes, Shape

if TYPE_CHECKING:
    from glowstone.graph import Graph
    from glowstone.importer import ModelFile

Array = np.ndarray[Any, np.dtype[Any]]


class Source:
    """A model with its reference shapes and fixed inputs. The importer is imported when a graph is wanted."""

    def __init__(
        self,
        model: ModelSource,
        shapes: GivenShapes | None,
        constants: Mapping[str, Array] | None,
        external_data_roots: tuple[Path, ...] = (),
    ) -> None:
        self._model = model
        self._roots = external_data_roots
        self._external = self._external_data()
        self._shapes = {name: _checked_extents(name, given) for name, given in (shapes or {}).items()}
        self._constants = {name: np.asarray(array) for name, array in (constants or {}).items()}
        self._digest: str | None = None
        self._held: bytes | None = None
        """The file's bytes between the first read and the first import."""

    @property
    def name(self) -> str:
        """What errors call the model."""
        name, _ = locate(self._model)
        return name

    def graph(self, shapes: Mapping[str, Shape] | None = None, known: Mapping[str, Array] | None = None) -> Graph:
        """Import the model, at its reference shapes or others; no values of inputs are `known`: that is for parts.

        Raises:
            ModelError: the model is not valid, or not what it was when it was compiled.
        """
        from glowstone import importer

        opened = self._open()
        self._external = opened.external
        return importer.import_model(opened, self._shapes if shapes is None else shapes, self._constants)

    def graph_once(self, graph: Graph) -> Callable[[Mapping[str, Shape], Mapping[str, Array]], Graph]:
        """A function that imports the model at given shapes; the first time it gives the graph already there."""
        waiting = [graph]
        return lambda shapes, _: waiting.pop() if waiting else self.graph(shapes)

    def file(self) -> ModelFile:
        """The parsed file."""
        return self._open()

    @property
    def shapes(self) -> GivenShapes:
        """Reference shapes by input name, and extents by symbol."""
        return self._shapes

    @property
    def constants(self) -> Mapping[str, Array]:
        """Inputs fixed at compile time."""
        return self._constants

    def portable(self) -> bytes:
        """The model as one message, weights and all.

        Raises:
            ModelError: the model cannot be read any more, or is not what it was when it was compiled.
        """
        from glowstone import importer

        opened = self._open()
        data, _, _ = read_bytes(self._model)
        whole = importer.with_data_inside(opened)
        return data if data is not None and whole is opened.proto else _serialized(whole)

    def key(self, store: Cache, *circumstances: object) -> str:
        """Name of the cache entry: the model, its reference shapes and constants, and what else decides the bytes."""
        self._digest = self._model_digest(store)
        constants = {
            name: (str(array.dtype), array.shape, _digest(np.ascontiguousarray(array)))
            for name, array in sorted(self._constants.items())
        }
        parts = (self._digest, sorted(self._shapes.items()), constants, circumstances)
        return hashlib.sha256(repr(parts).encode()).hexdigest() + ".model"

    def _model_digest(self, store: Cache) -> str:
        """The digest of the model: as the index has it, or of what is read and then held for the import."""
        path = Path(self._model) if isinstance(self._model, str | os.PathLike) else None
        if path is not None:
            known = known_digest(path, store)
            if known is not None:
                return known
        state = file_state(path) if path is not None else None
        self._held, _, _ = read_bytes(self._model)
        digest = _digest(_serialized(self._model) if self._held is None else self._held)
        if path is not None:
            remember_digest(path, digest, state, store)
        return digest

    def forget_bytes(self) -> None:
        """The file's bytes are not needed: should the model be imported after all, it is read again."""
        self._held = None

    def external_parts(self) -> tuple[tuple[DataPart, str], ...] | None:
        """What the last import read of other files, with digests; None where that has changed since."""
        return self._external.digests()

    def has_parts(self, parts: tuple[tuple[DataPart, str], ...]) -> bool:
        """Whether the external data are there, where they may be read, and unchanged."""
        return all(self._external.digest(part) == digest for part, digest in parts)

    def _external_data(self) -> ExternalData:
        _, folder = locate(self._model)
        return ExternalData(folder, self._roots)

    def _open(self) -> ModelFile:
        from glowstone import importer

        name, _ = locate(self._model)
        data, self._held = self._held, None
        if data is None:
            data, _, _ = read_bytes(self._model)
            if data is not None and self._digest is not None and _digest(data) != self._digest:
                raise ModelError(
                    "the model file was changed after it was compiled", file=name, remedy="compile it again"
                )
        return importer.parse_model(self._model if data is None else data, name, self._external_data())


def _checked_extents(name: str, given: int | Sequence[Dimension]) -> int | tuple[Dimension, ...]:
    """An extent of a symbol, or a shape of numbers and symbols, with integers of NumPy as plain ones."""
    is_single = isinstance(given, str) or not isinstance(given, Iterable)
    extents: list[Any] = [given] if is_single else list(given)  # type: ignore[arg-type]
    if isinstance(given, str) or not all(isinstance(extent, str) or _is_extent(extent) for extent in extents):
        raise InputError(f"shape of {name!r} cannot be read", expected="integers, 0 or more, and symbols", found=given)
    plain = tuple(extent if isinstance(extent, str) else int(extent) for extent in extents)
    return int(extents[0]) if is_single else plain


def _is_extent(extent: object) -> bool:
    return isinstance(extent, int | np.integer) and not isinstance(extent, bool) and int(extent) >= 0


def _serialized(model: Any) -> bytes:
    if not hasattr(model, "SerializeToString"):
        raise ModelError("not a model", expected="a path, bytes or an onnx.ModelProto", found=type(model).__name__)
    from google.protobuf.message import EncodeError  # the model is a message, so protobuf is there

    try:
        serialized: bytes = model.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise ModelError(
            "the model cannot be written as a message: it is too large or nested too deep",
            file=locate(model)[0],
            found=str(error),
            remedy="save it with its weights in a file beside it, and give the path",
        ) from error
    return serialized


def _digest(data: Any) -> str:
    return hashlib.sha256(data).hexdigest()
