"""A process that runs cases of onnx's backend suite as onnx's own runner does, one at a time, on request.

In: on standard input, the name of a case per line. Out: on standard output, first a line with all cases, each as
`kind/name=operators`, then for each request `outcome<TAB>detail`. Outcomes are `pass`, `host` (right, with steps on the
host), `unsupported` (UnsupportedError), `wrong` (a result differs) and `error`. A process of its own, for a case may
also crash or never end.
"""

from __future__ import annotations

import gc
import os
import sys
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import numpy as np
import onnx
from onnx.backend.test import BackendTest
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

import glowstone.onnx_backend as backend
from glowstone.errors import UnsupportedError

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "real")
DEFAULT_DOMAINS = ("", "ai.onnx")
DETAIL_LENGTH = 300
PACKAGE = os.path.dirname(os.path.dirname(onnx.__file__))


class Suite:
    """The cases by name, and the functions that onnx's runner makes of them for our backend."""

    def __init__(self) -> None:
        self.cases = {case.name: case for kind in KINDS for case in load_model_tests(kind=kind)}
        self._functions: dict[str, Callable[[], None]] = {}
        self._prepared: backend.GlowstoneBackendRep | None = None
        prepare = backend.prepare

        def watched(*arguments: Any, **options: Any) -> backend.GlowstoneBackendRep:
            self._prepared = prepare(*arguments, **options)
            return self._prepared

        backend.prepare = watched
        for kind in BackendTest(backend, __name__).test_cases.values():
            for name in unittest.defaultTestLoader.getTestCaseNames(kind):
                self._functions[name] = getattr(kind(name), name)

    def run(self, name: str) -> tuple[str, str]:
        """Outcome and detail of a case."""
        self._prepared = None
        try:
            self._run(name)
        except UnsupportedError as error:
            return "unsupported", str(error)
        except AssertionError as error:
            return "wrong", str(error)
        except TypeError as error:  # onnx's comparison has no length of a scalar inside a sequence
            return ("wrong" if str(error).startswith("Unable to compare") else "error"), f"TypeError: {error}"
        except Exception as error:
            return "error", f"{type(error).__name__}: {error}"
        if self._prepared is None:
            return "error", "nothing was compiled"
        return ("host" if self._prepared.model.report()["host_steps"] else "pass"), ""

    def _run(self, name: str) -> None:
        try:
            self._functions[f"{name}_cpu"]()
        except unittest.SkipTest:  # because it does not compile: why?
            backend.prepare(model_of(self.cases[name]))
            raise


def model_of(case: TestCase) -> onnx.ModelProto:
    """The model of a case, made in memory or read from onnx's package."""
    if case.model is not None:
        return case.model
    path = os.path.join(PACKAGE, case.url) if case.model_dir is None else os.path.join(case.model_dir, "model.onnx")
    return onnx.load(path)


def operators_of(graph: onnx.GraphProto) -> Iterator[str]:
    """Operators of a graph and of the graphs in it, with their domain where it is not the default one."""
    for node in graph.node:
        yield node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}.{node.op_type}"
        for attribute in node.attribute:
            for inner in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from operators_of(inner)


def main() -> None:
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the runner prints is no reply
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    suite = Suite()
    listed = [
        f"{case.kind}/{name}={','.join(sorted(set(operators_of(model_of(case).graph))))}"
        for name, case in suite.cases.items()
    ]
    _reply(replies, " ".join(listed))
    gc.freeze()  # the suite stays to the end
    for line in sys.stdin:
        outcome, detail = suite.run(line.strip())
        _reply(replies, f"{outcome}\t{' '.join(detail.split())[:DETAIL_LENGTH]}")


def _reply(replies: TextIO, text: str) -> None:
    replies.write(text + "\n")
    replies.flush()


if __name__ == "__main__":
    main()
