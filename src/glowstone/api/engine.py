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
MOST_PLANS = 256
"""The same of a part of a model that runs in steps, whose shapes follow from data."""

Shapes = tuple[Shape, ...]
"""One shape per input, in order."""

Values = tuple[bytes, ...]
"""The elements of each input whose value decides shapes, in order."""

Call = tuple[Shapes, Values]
"""What a plan depends on."""

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
    """One model, or a part of one. `make` gives the maker of what is not ready, and is called at most once.

    `deciding` are the inputs whose values decide shapes, by number; `reference_values` are theirs where the engine was
    made.
    """

    def __init__(
        self,
        signature: Signature,
        reference: Shapes,
        library: KernelLibrary,
        make: Callable[[Engine], Maker],
        deciding: tuple[int, ...] = (),
        reference_values: Values = (),
        most_executables: int = MOST_EXECUTABLES,
    ) -> None:
        self.signature = signature
        self.reference = reference
        self.deciding = deciding
        self.reference_values = reference_values
        self._most_executables = most_executables
        self.library = library
        self.arenas = ArenaPool()
        self.counters = Counters()
        self._make = make
        self._maker: Maker | None = None
        self._executables: OrderedDict[Call, Executable] = OrderedDict()
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

    def executable(self, shapes: Shapes, progress: Progress | None = None, values: Values = ()) -> Executable:
        """What runs these shapes, and these values of deciding inputs; made on first use.

        Raises:
            GlowstoneError: the model cannot have these shapes, or planned memory is above the limit.
        """
        with self._lock:
            call = (shapes, values)
            found = self._executables.get(call)
            if found is None:
                found = self.maker.executable(call, progress)
                self._executables[call] = found
                while len(self._executables) > self._most_executables:
                    self._executables.popitem(last=False)
            else:
                self._executables.move_to_end(call)
            return found

    def adopt(self, executable: Executable) -> None:
        """Take the executable of the reference shape, which the cache held."""
        self._executables[self.reference_call] = executable
        self.counters.templates += 1

    @property
    def reference_call(self) -> Call:
        """The call that the engine was made for."""
        return self.reference, self.reference_values

    def reference_plan(self) -> Plan:
        """The plan at the reference shape, made again where the executable came from the cache."""
        with self._lock:
            return self.maker.reference_plan()

    def reference_template(self) -> Ready:
        """The template at the reference shape."""
        with self._lock:
            return self.maker.ready_template(self.reference_call)
