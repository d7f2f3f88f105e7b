"""For all tests: what a test draws at random does not depend on which tests ran before it in the same process."""

from __future__ import annotations

import zlib

import numpy as np
import pytest


def begin_anew(generator: np.random.Generator, name: str) -> None:
    """Seed a generator by a name."""
    generator.bit_generator.state = np.random.default_rng(zlib.crc32(name.encode())).bit_generator.state


@pytest.fixture(autouse=True)
def numbers_of_the_test(request):
    """A module's generator is called `random`."""
    generator = getattr(getattr(request, "module", None), "random", None)
    if isinstance(generator, np.random.Generator):
        begin_anew(generator, request.node.nodeid)
