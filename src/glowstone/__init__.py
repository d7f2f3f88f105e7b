"""Glowstone: a neural-network compiler, from an ONNX model to machine code.

Importing this package starts no thread, touches no file, and imports neither onnx nor llvmlite: the public names are
looked up when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from glowstone.errors import (
    ExecutionError,
    GlowstoneError,
    InputError,
    LimitError,
    ModelError,
    ShapeError,
    UnsupportedError,
)
from glowstone.options import Options

if TYPE_CHECKING:
    from glowstone.api import InferenceSession, Model, compile

__version__ = "0.1.0"

__all__ = [
    "ExecutionError",
    "GlowstoneError",
    "InferenceSession",
    "InputError",
    "LimitError",
    "Model",
    "ModelError",
    "Options",
    "ShapeError",
    "UnsupportedError",
    "__version__",
    "compile",
]

_FROM_API = frozenset({"InferenceSession", "Model", "compile"})


def __getattr__(name: str) -> object:
    """Import `glowstone.api` when one of its names is first asked for."""
    if name not in _FROM_API:
        raise AttributeError(f"module 'glowstone' has no attribute {name!r}")
    value: object = getattr(importlib.import_module("glowstone.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
