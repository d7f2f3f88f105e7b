"""For all tests: what they draw at random, and what they covered.

What a test draws does not depend on which tests ran before it in the same process. What tests recorded as property
"coverage" is printed at the end: (text, number ...), the text with one {} for each number; numbers of equal text are
added up.
"""

from __future__ import annotations

import gc
import signal
import zlib

import numpy as np
import pytest


def pytest_collection_finish() -> None:
    """What was collected stays to the end: it is not looked through again whenever memory is."""
    gc.collect()
    gc.freeze()


def pytest_configure() -> None:
    """Interrupts count whoever started the tests: a shell has its background jobs ignore them, and theirs do, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def begin_anew(generator: np.random.Generator, name: str) -> None:
    """Seed a generator by a name."""
    generator.bit_generator.state = np.random.default_rng(zlib.crc32(name.encode())).bit_generator.state


@pytest.fixture(autouse=True)
def numbers_of_the_test(request):
    """A module's generator is called `random`."""
    generator = getattr(getattr(request, "module", None), "random", None)
    if isinstance(generator, np.random.Generator):
        begin_anew(generator, request.node.nodeid)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    totals: dict[str, list[int]] = {}
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties if report.when == "call" else ():
            if name == "coverage":
                text, *numbers = value
                before = totals.get(text, [0] * len(numbers))
                totals[text] = [old + new for old, new in zip(before, numbers, strict=True)]
    if totals:
        terminalreporter.section("coverage")
        for text, numbers in sorted(totals.items()):
            terminalreporter.line(text.format(*numbers))
