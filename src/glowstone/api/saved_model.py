"""A compiled model as a cache entry.

Layout of the content: eight bytes each for the lengths of two records, the records, padding to a cache line, the block
of weights. The first record is all that the reference shape needs; the second (template, kernel keys) is read only when
another shape or a report asks for it. Records are pickles: the cache folder is private and holds machine code anyway.
Large arrays are not in the records but views of the block, which is mapped.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from glowstone.api.engine import Engine, Ready, Shapes, Signature
from glowstone.compiler import Template
from glowstone.graph import Tensor
from glowstone.graph.flat import flatten, unflatten
from glowstone.irgen import ConstantPool
from glowstone.lir import Buffer, BufferKind
from glowstone.lir.table import Words
from glowstone.runtime.arena import Bytes
from glowstone.runtime.executable import Argument, Executable
from glowstone.runtime.runner import prepare
from glowstone.types import ElementType, TensorType

LENGTH_BYTES = 8
ALIGNMENT = 64


@dataclass(frozen=True)
class ReadyRecord:
    """What runs the reference shape."""

    signature: Signature
    reference: Shapes
    words: Words
    kernels: tuple[tuple[str, bytes], ...]
    plan_constants: bytes
    arena_bytes: int
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    names: tuple[tuple[str, ...], ...]
    external_files: tuple[tuple[str, str], ...]
    """Path relative to the model's folder, and digest, of files with external data."""


def save(engine: Engine, external_files: tuple[tuple[str, str], ...]) -> list[bytes | memoryview]:
    """The parts of the entry, in order."""
    executable = engine.executable(engine.reference)
    ready = engine.ready_template(engine.reference)
    objects = engine.library.objects()
    first = ReadyRecord(
        engine.signature,
        engine.reference,
        executable.table.words,
        tuple((symbol, content) for symbol, content, _ in objects),
        executable.plan_constants.tobytes(),
        executable.arena_bytes,
        executable.inputs,
        executable.outputs,
        executable.names,
        external_files,
    )
    second = _pickled_template(ready.template, [key for _, _, key in objects])
    records = [pickle.dumps(first, protocol=5), second]
    head = b"".join(len(record).to_bytes(LENGTH_BYTES, "little") for record in records)
    body = head + b"".join(records)
    padding = bytes(-len(body) % ALIGNMENT)
    return [body + padding, memoryview(ready.block.data)]


@dataclass(frozen=True)
class SavedModel:
    """An entry that was read: the first record, and the rest on demand."""

    record: ReadyRecord
    _second: memoryview
    _block: Bytes

    @staticmethod
    def read(content: memoryview) -> SavedModel:
        """Read the first record of an entry."""
        lengths = [int.from_bytes(content[i : i + LENGTH_BYTES], "little") for i in (0, LENGTH_BYTES)]
        start = 2 * LENGTH_BYTES
        middle, end = start + lengths[0], start + sum(lengths)
        record = pickle.loads(content[start:middle])
        block = np.frombuffer(content, np.uint8, offset=end + -end % ALIGNMENT)
        return SavedModel(record, content[middle:end], block)

    def restore(self, engine: Engine) -> None:
        """Give the engine its kernels, its executable and its template."""
        record = self.record
        keys = _Lazy(lambda: _Second(self._second, self._block).keys)
        engine.library.restore(record.kernels, keys)
        bases = 3 + len(record.inputs) + len(record.outputs)
        table = prepare(record.words, engine.library.addresses, bases, engine.library.keep_alive)
        plan_constants = np.frombuffer(record.plan_constants, np.uint8)
        executable = Executable(
            table, self._block, plan_constants, record.arena_bytes, record.inputs, record.outputs, record.names
        )
        engine.adopt(executable, lambda: Ready(_Second(self._second, self._block).template(), self._block))


class _Lazy:
    """A value computed when it is first called for."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._value: Any = None

    def __call__(self) -> Any:
        if self._value is None:
            self._value = self._make()
        return self._value


class _Second:
    """The second record, unpickled."""

    def __init__(self, pickled: memoryview, block: Bytes) -> None:
        self._block = block
        self._flat, self._order, self._entries, self.keys = _Unpickler(io.BytesIO(pickled)).load()

    def template(self) -> Template:
        pool = ConstantPool()
        entries = [
            (tensor, channel_block, Buffer(name, BufferKind.CONSTANT, type.element, type.shape, channels))
            for tensor, channel_block, name, type, channels in self._entries
        ]
        pool.adopt(self._block, entries)
        return Template(unflatten(self._flat), self._order, pool)


def _pickled_template(template: Template, keys: list[object]) -> bytes:
    """The template without the content of tensors that lie in the block as they are."""
    entries = template.constants.entries()
    in_block = {id(tensor) for tensor, channel_block, _ in entries if channel_block is None and tensor.array.size > 1}
    buffer = io.BytesIO()
    described = [
        (tensor, channel_block, item.name, TensorType(item.element, item.shape), item.channels)
        for tensor, channel_block, item in entries
    ]
    _Pickler(buffer, in_block).dump((flatten(template.graph), template.order, described, keys))
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    """Writes a tensor that lies in the block as its type only; `ConstantPool.adopt` gives it its content again."""

    def __init__(self, file: io.BytesIO, in_block: set[int]) -> None:
        super().__init__(file, protocol=5)
        self._in_block = in_block
        self._numbers: dict[int, int] = {}

    def persistent_id(self, value: object) -> object:
        if isinstance(value, Tensor) and id(value) in self._in_block:
            number = self._numbers.setdefault(id(value), len(self._numbers))
            return (number, value.element, value.array.shape)
        return None


class _Unpickler(pickle.Unpickler):
    """The reverse of `_Pickler`: one tensor object for each number."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self._tensors: dict[int, Tensor] = {}

    def persistent_load(self, identity: tuple[int, ElementType, tuple[int, ...]]) -> Tensor:
        number, element, shape = identity
        if number not in self._tensors:
            self._tensors[number] = Tensor(np.broadcast_to(np.zeros((), element.dtype), shape), element)
        return self._tensors[number]
