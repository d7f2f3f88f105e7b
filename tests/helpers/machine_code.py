"""Makes sure that what runs is machine code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from glowstone.graph.operator import OPERATORS
from glowstone.lir.operation import OPERATIONS


class RanInPythonError(AssertionError):
    """The meaning of an operator was computed in Python."""


def _forbidden(*_: object, **__: object) -> NoReturn:
    raise RanInPythonError("a model ran in Python")


@contextmanager
def machine_code_alone() -> Iterator[None]:
    """Within, every `reference` of an operator, every `interpret` of an operation and onnx's evaluator raise.

    To be entered once `compile` has returned, which computes known values and folds constants with references. So does
    the first run at another shape.
    """
    with pytest.MonkeyPatch.context() as patch:
        for operator in OPERATORS.values():
            patch.setattr(operator, "reference", _forbidden)
        for operation in OPERATIONS.values():
            patch.setattr(operation, "interpret", _forbidden)
        patch.setattr(ReferenceEvaluator, "run", _forbidden)
        patch.setattr(OpRun, "run", _forbidden)
        yield
