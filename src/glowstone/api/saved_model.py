"""A compiled model as a cache entry.

Layout of the content: eight bytes each for the lengths of two records, the records, padding to a cache line, the block
of weights. The first record is all that the reference shape needs; the second (template, kernel keys) is read only when
another shape or a report asks for it. Records are pickles: the cache folder is private and holds machine code anyway.
Large arrays are not in the records but views of the block, which is mapped.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from glowstone.api.engine import Engine, Shapes, Signature
from glowstone.runtime.arena import Bytes
from glowstone.runtime.executable import Argument, Executable
from glowstone.runtime.runner import prepare
from glowstone.support.external_data import DataPart
from glowstone.table import FIRST_ARGUMENT_BASE, Words

if TYPE_CHECKING:
    from glowstone.backends.cpu.kernel_family import KernelKey

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
    operations: tuple[str, ...]
    external_parts: tuple[tuple[DataPart, str], ...]
    """What was read of files with external data, and its digests."""


def save(engine: Engine, external_parts: tuple[tuple[DataPart, str], ...]) -> list[bytes | memoryview]:
    """The parts of the entry, in order."""
    from glowstone.api.saved_template import pickle_template  # the compiler is there: the model comes from it

    executable = engine.executable(engine.reference)
    ready = engine.reference_template()
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
        executable.operations,
        external_parts,
    )
    second = pickle_template(ready.template, [key for _, _, key in objects])
    records = [pickle.dumps(first, protocol=5), second]
    head = b"".join(len(record).to_bytes(LENGTH_BYTES, "little") for record in records)
    body = head + b"".join(records)
    padding = bytes(-len(body) % ALIGNMENT)
    return [body + padding, memoryview(ready.block.data)]


@dataclass(frozen=True)
class SavedModel:
    """An entry that was read: the first record, and the rest on demand."""

    record: ReadyRecord
    template: memoryview
    """What `SavedTemplate` reads."""
    block: Bytes

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
        """Give the engine its kernels and the executable of its reference shape."""
        record = self.record
        engine.library.restore(record.kernels, _KeysLater(engine))
        bases = FIRST_ARGUMENT_BASE + len(record.inputs) + len(record.outputs)
        table = prepare(record.words, engine.library.addresses, bases, engine.library.keep_alive)
        plan_constants = np.frombuffer(record.plan_constants, np.uint8)
        engine.adopt(
            Executable(
                table,
                self.block,
                plan_constants,
                record.arena_bytes,
                record.inputs,
                record.outputs,
                record.names,
                record.operations,
            )
        )


@dataclass(frozen=True)
class _KeysLater:
    """The kernel keys of an engine, when a key is looked up: asking its maker imports the compiler."""

    engine: Engine

    def __call__(self) -> Sequence[KernelKey]:
        return self.engine.maker.saved_keys()
