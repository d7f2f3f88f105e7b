"""A process that runs cases of onnx's backend suite as onnx's own runner does, one at a time, on request.

In: on standard input, the name of a case per line. Out: on standard output, first a line with the names of all cases as
`kind/name`, then for each request `outcome<TAB>detail`. Outcomes are `pass`, `unsupported` (UnsupportedError), `wrong`
(a result differs) and `error`. A process of its own, for a case may also crash or never end.
"""

from __future__ import annotations

import os
import sys
import unittest
import warnings
from collections.abc import Callable
from typing import TextIO

import numpy as np
import onnx
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import load_model_tests

import glowstone.onnx_backend as backend
from glowstone.errors import UnsupportedError

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted", "real")
DETAIL_LENGTH = 300


def main() -> None:
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the runner prints is no reply
    warnings.simplefilter("ignore")
    cases = {case.name: case for kind in KINDS for case in load_model_tests(kind=kind)}
    functions = _functions()
    _reply(replies, " ".join(f"{case.kind}/{name}" for name, case in cases.items()))
    for line in sys.stdin:
        name = line.strip()
        outcome, detail = _outcome(functions[f"{name}_cpu"], cases[name].model_dir)
        _reply(replies, f"{outcome}\t{' '.join(detail.split())[:DETAIL_LENGTH]}")


def _functions() -> dict[str, Callable[[], None]]:
    """The test functions that onnx's runner makes for our backend, by name."""
    functions = {}
    for kind in BackendTest(backend, __name__).test_cases.values():
        for name in unittest.defaultTestLoader.getTestCaseNames(kind):
            functions[name] = getattr(kind(name), name)
    return functions


def _outcome(function: Callable[[], None], model_dir: str | None) -> tuple[str, str]:
    try:
        try:
            function()
        except unittest.SkipTest:
            assert model_dir is not None
            backend.prepare(onnx.load(os.path.join(model_dir, "model.onnx")))
            return "error", "skipped, yet it compiles"
    except UnsupportedError as error:
        return "unsupported", str(error)
    except AssertionError as error:
        return "wrong", str(error)
    except TypeError as error:  # onnx's comparison has no length of a scalar inside a sequence
        return ("wrong" if str(error).startswith("Unable to compare") else "error"), f"TypeError: {error}"
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"
    return "pass", ""


def _reply(replies: TextIO, text: str) -> None:
    replies.write(text + "\n")
    replies.flush()


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
