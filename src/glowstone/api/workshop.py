"""What the steps of a model that runs in steps share, and what a step is."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from glowstone.api.engine import Engine
from glowstone.api.environment import Environment
from glowstone.host import HostNode
from glowstone.importer import FileGraph
from glowstone.runtime.arena import ArenaPool
from glowstone.runtime.kernel_library import KernelLibrary
from glowstone.runtime.native import NativeCode
from glowstone.types import Shape

if TYPE_CHECKING:
    from glowstone.compiler import Settings


@dataclass
class Workshop:
    """What the parts of one model share."""

    settings: Settings
    library: KernelLibrary
    code: NativeCode
    threads: int
    reference_shapes: Mapping[str, Shape]
    arenas: ArenaPool = field(default_factory=ArenaPool)
    host_nodes: dict[tuple[FileGraph, int], HostNode] = field(default_factory=dict)
    """By graph and number, the nodes that run on the host, as far as is known before they do."""
    _engines: weakref.WeakValueDictionary[int, Engine] = field(default_factory=weakref.WeakValueDictionary)
    _made: int = 0

    @property
    def engines(self) -> list[Engine]:
        """Those of the parts there are, in the order in which they were made."""
        return [engine for _, engine in sorted(self._engines.items())]

    def add_engine(self, engine: Engine) -> None:
        """Remember the engine of a part for reports, for as long as the part is kept."""
        self._engines[self._made] = engine
        self._made += 1


class Step:
    """Some nodes that run together."""

    nodes: frozenset[int]
    unread: tuple[str, ...] = ()
    """Values that nothing reads afterwards."""

    def accepts(self, environment: Environment) -> bool:
        """Whether the step fits these values."""
        raise NotImplementedError

    def run(self, environment: Environment) -> None:
        """Compute the results into the environment."""
        raise NotImplementedError
