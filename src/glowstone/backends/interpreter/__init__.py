"""The interpreter backend: NumPy behind the same table of calls as machine code."""

from glowstone.backends.interpreter.backend import InterpreterBackend
from glowstone.backends.interpreter.executor import run_table
from glowstone.backends.interpreter.interpreter import Interpreter, Watcher
from glowstone.backends.interpreter.planner import InterpreterKey, InterpreterLibrary, InterpreterPlanner

__all__ = [
    "Interpreter",
    "InterpreterBackend",
    "InterpreterKey",
    "InterpreterLibrary",
    "InterpreterPlanner",
    "Watcher",
    "run_table",
]
