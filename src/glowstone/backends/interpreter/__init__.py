"""The interpreter backend: NumPy behind the same table of calls as machine code."""

from glowstone.backends.interpreter.backend import InterpreterBackend
from glowstone.backends.interpreter.executor import run_table
from glowstone.backends.interpreter.interpreter import AfterInstruction, Interpreter
from glowstone.backends.interpreter.planner import InterpreterKey, InterpreterLibrary, InterpreterPlanner

__all__ = [
    "AfterInstruction",
    "Interpreter",
    "InterpreterBackend",
    "InterpreterKey",
    "InterpreterLibrary",
    "InterpreterPlanner",
    "run_table",
]
