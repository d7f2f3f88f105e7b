"""Kernels in memory, by key: loaded from the cache of kernels, or compiled.

In: kernel keys of a plan. Out: their indices in one array of addresses. Kernels are shared between all models of the
process and unmapped when no model holds them.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from glowstone.backends.cpu.target import Target
from glowstone.runtime.fork import ForkSafeLock
from glowstone.runtime.loader import LoadedObject, load_object
from glowstone.support.budget import budget

if TYPE_CHECKING:
    from glowstone.backends.cpu.compile_pool import CompilePool
    from glowstone.backends.cpu.kernel_family import KernelKey

ObjectStore = Any
"""Has `get(name) -> bytes | None` and `put(name, content)`; None where nothing is kept."""
Progress = Callable[[int, int], None]
"""Receives how many of how many kernels are ready."""


class LoadedKernel:
    """One kernel in memory."""

    __slots__ = ("__weakref__", "address", "content", "loaded")

    def __init__(self, symbol: str, content: bytes) -> None:
        self.content = content
        self.loaded: LoadedObject = load_object(content)
        self.address = self.loaded.symbols[symbol]


_SHARED: weakref.WeakValueDictionary[tuple[str, str], LoadedKernel] = weakref.WeakValueDictionary()
_LOCK = ForkSafeLock()


class KernelLibrary:
    """The kernels of one model. Indices never change, so tables stay valid as kernels are added."""

    def __init__(self, target: Target, store: ObjectStore = None) -> None:
        self._target = target
        self._store = store
        self._indices: dict[KernelKey, int] = {}
        self._kernels: list[LoadedKernel] = []
        self._symbols: list[str] = []
        self._restored_keys: Callable[[], Sequence[KernelKey]] | None = None
        self._pool: CompilePool | None = None
        self.compiled = 0
        """How many kernels LLVM compiled for this model."""

    @property
    def target(self) -> Target:
        """What the kernels are for."""
        return self._target

    @property
    def symbols(self) -> Sequence[str]:
        """Symbol of each kernel, by index."""
        return self._symbols

    @property
    def addresses(self) -> list[int]:
        """Address of each kernel, by index."""
        return [kernel.address for kernel in self._kernels]

    @property
    def keep_alive(self) -> tuple[LoadedKernel, ...]:
        """What holds the kernels in memory."""
        return tuple(self._kernels)

    def indices(self, keys: Sequence[object], progress: Progress | None = None) -> dict[object, int]:
        """Index of every key; kernels that are missing are loaded or compiled."""
        self._recall_keys()
        missing: list[KernelKey] = [key for key in keys if key not in self._indices]  # type: ignore[misc]
        ready = 0

        def tell() -> None:
            nonlocal ready
            ready += 1
            budget().look()
            if progress is not None:
                progress(ready, len(missing))

        found = {key: self._found(key) for key in missing}
        compiled = self._compile([key for key, kernel in found.items() if kernel is None], tell)
        for key, kernel in found.items():
            if kernel is None:
                kernel = self._shared(key.symbol, lambda key=key: compiled[key])  # type: ignore[misc]
            else:
                tell()
            self._add(key.symbol, kernel, key)
        return {key: self._indices[key] for key in keys}  # type: ignore[index]

    @contextmanager
    def compiling_in(self, pool: CompilePool) -> Iterator[None]:
        """Compile in the processes of the pool, inside the body."""
        self._pool = pool
        try:
            yield
        finally:
            self._pool = None

    def objects(self) -> list[tuple[str, bytes, KernelKey]]:
        """Symbol, object file and key of each kernel, by index, for the cache of models."""
        self._recall_keys()
        keys = {index: key for key, index in self._indices.items()}
        return [
            (symbol, kernel.content, keys[index])
            for index, (symbol, kernel) in enumerate(zip(self._symbols, self._kernels, strict=True))
        ]

    def restore(self, objects: Sequence[tuple[str, bytes]], keys: Callable[[], Sequence[KernelKey]]) -> None:
        """Load kernels that `objects` gave, in the same order; `keys` is asked only when a key is looked up."""
        for symbol, content in objects:
            self._kernels.append(self._shared(symbol, lambda content=content: content))  # type: ignore[misc]
            self._symbols.append(symbol)
        self._restored_keys = keys

    def _recall_keys(self) -> None:
        if self._restored_keys is not None:
            self._indices.update({key: index for index, key in enumerate(self._restored_keys())})
            self._restored_keys = None

    def _add(self, symbol: str, kernel: LoadedKernel, key: KernelKey) -> None:
        self._indices[key] = len(self._kernels)
        self._kernels.append(kernel)
        self._symbols.append(symbol)

    def _shared(self, symbol: str, content: Callable[[], bytes]) -> LoadedKernel:
        name = (self._target.text, symbol)
        with _LOCK:
            kernel = _SHARED.get(name)
            if kernel is None:
                kernel = _SHARED[name] = LoadedKernel(symbol, content())
            return kernel

    def _found(self, key: KernelKey) -> LoadedKernel | None:
        """The kernel, where the process or the cache has it."""
        with _LOCK:
            kernel = _SHARED.get((self._target.text, key.symbol))
        if kernel is not None:
            return kernel
        content = self._store.get(key.symbol) if self._store is not None else None
        return None if content is None else self._shared(key.symbol, lambda: content)

    def _compile(self, keys: Sequence[KernelKey], tell: Callable[[], None]) -> dict[KernelKey, bytes]:
        """Object files of the keys, kept for the next time."""
        if not keys:
            return {}
        from glowstone.backends.cpu.compile_pool import CompilePool  # the door to LLVM

        pool = self._pool or CompilePool(self._target, 1)
        compiled = pool.emit(keys, tell)
        self.compiled += len(keys)
        if self._store is not None:
            for key in keys:
                self._store.put(key.symbol, compiled[key])
        return compiled
