"""Values by name while a graph of a file runs in steps; a body sees those of the graphs around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
HostValue = Any
"""An array, a list, a dictionary, or None for an empty optional."""


class Environment:
    """See the module."""

    def __init__(self, values: Mapping[str, HostValue], outer: Environment | None = None) -> None:
        self._values = dict(values)
        self._outer = outer

    def __getitem__(self, name: str) -> HostValue:
        environment: Environment | None = self
        while environment is not None:
            if name in environment._values:
                return environment._values[name]
            environment = environment._outer
        raise KeyError(name)

    def __setitem__(self, name: str, value: HostValue) -> None:
        self._values[name] = value

    def forget(self, names: Iterable[str]) -> None:
        """Drop values of this graph that nothing reads any more."""
        for name in names:
            self._values.pop(name, None)
