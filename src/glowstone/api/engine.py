"""Executables of one model by shape: what is ready, and whom to ask for the rest.

A model that came from the cache runs its reference shape without the compiler: `Maker`, which imports it, is made only
when another shape, a report or a bundle is wanted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glowstone.runtime.arena import ArenaPool
from glowstone.runtime.executable import Executable
from glowstone.runtime.fork import ForkSafeLock
from glowstone.runtime.kernel_library import KernelLibrary, Progress
from glowstone.types import Dimension, ElementType, Shape

if TYPE_CHECKING:
    from glowstone.api.maker import Maker, Ready
    from glowstone.compiler import Plan, Settings

MOST_EXECUTABLES = 32
"""Shapes kept ready; the least recently used go."""

Shapes = tuple[Shape, ...]
"""One shape per input, in order."""

Port = tuple[str, ElementType, tuple[Dimension, ...]]
"""Name, element type and dimensions (a text where symbolic) of an input or output."""


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs as the model declares them."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass
class Counters:
    """What happened since the model was compiled or loaded."""

    templates: int = 0
    pipeline_runs: int = 0
    plans: int = 0


class Engine:
    """One model. `make` gives the maker of what is not ready, and is called at most once."""

    def __init__(
        self, signature: Signature, reference: Shapes, library: KernelLibrary, make: Callable[[Engine], Maker]
    ) -> None:
        self.signature = signature
        self.reference = reference
        self.library = library
        self.arenas = ArenaPool()
        self.counters = Counters()
        self._make = make
        self._maker: Maker | None = None
        self._executables: OrderedDict[Shapes, Executable] = OrderedDict()
        self._lock = ForkSafeLock()

    @property
    def maker(self) -> Maker:
        """Templates and plans; the first use imports the compiler."""
        with self._lock:
            if self._maker is None:
                self._maker = self._make(self)
            return self._maker

    @property
    def settings(self) -> Settings:
        """How the model is compiled."""
        return self.maker.settings

    def executable(self, shapes: Shapes, progress: Progress | None = None) -> Executable:
        """What runs these shapes; made on first use.

        Raises:
            GlowstoneError: the model cannot have these shapes, or planned memory is above the limit.
        """
        with self._lock:
            found = self._executables.get(shapes)
            if found is None:
                found = self.maker.executable(shapes, progress)
                self._executables[shapes] = found
                while len(self._executables) > MOST_EXECUTABLES:
                    self._executables.popitem(last=False)
            else:
                self._executables.move_to_end(shapes)
            return found

    def adopt(self, executable: Executable) -> None:
        """Take the executable of the reference shape, which the cache held."""
        self._executables[self.reference] = executable
        self.counters.templates += 1

    def reference_plan(self) -> Plan:
        """The plan at the reference shape, made again where the executable came from the cache."""
        with self._lock:
            return self.maker.reference_plan()

    def ready_template(self, at: Shapes) -> Ready:
        """See `Maker.ready_template`."""
        with self._lock:
            return self.maker.ready_template(at)
