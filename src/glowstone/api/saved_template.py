"""The template of a compiled model as bytes: the part of a cache entry that only other shapes and reports need."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from glowstone.api.maker import Ready
from glowstone.backends.cpu.kernel_family import KernelKey
from glowstone.compiler import Template
from glowstone.graph import Tensor
from glowstone.graph.flat import FlatGraph, flatten, unflatten
from glowstone.irgen import ConstantPool
from glowstone.lir import Buffer, BufferKind
from glowstone.runtime.arena import Bytes
from glowstone.types import ElementType, TensorType


class SavedTemplate:
    """A template read back, and the keys of the model's kernels. The weights are views of the mapped block."""

    def __init__(self, pickled: memoryview, block: Bytes) -> None:
        self._block = block
        flat, order, entries, keys = _Unpickler(io.BytesIO(pickled)).load()
        self._flat: FlatGraph = flat
        self._order: tuple[int, ...] = order
        self._entries: Any = entries
        self.keys: list[KernelKey] = keys

    def ready(self) -> Ready:
        """The template with its block."""
        pool = ConstantPool()
        entries = [
            (tensor, channel_block, Buffer(name, BufferKind.CONSTANT, type.element, type.shape, channels))
            for tensor, channel_block, name, type, channels in self._entries
        ]
        pool.adopt(self._block, entries)
        return Ready(Template(unflatten(self._flat), self._order, pool), self._block)


def pickle_template(template: Template, keys: Sequence[KernelKey]) -> bytes:
    """The template without the content of tensors that lie in the block as they are."""
    entries = template.constants.entries()
    in_block = {id(tensor) for tensor, channel_block, _ in entries if channel_block is None and tensor.array.size > 1}
    buffer = io.BytesIO()
    described = [
        (tensor, channel_block, item.name, TensorType(item.element, item.shape), item.channels)
        for tensor, channel_block, item in entries
    ]
    _Pickler(buffer, in_block).dump((flatten(template.graph), template.order, described, list(keys)))
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
