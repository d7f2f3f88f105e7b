"""Runs passes, over either representation.

A pass is a function `pass(ir) -> bool` that edits in place and returns whether it changed anything; the function's name
is its name. In: an IR and passes in order. Out: the IR, edited; whether anything changed. Invariant of checked mode:
the IR is valid before and after every pass, and a pass says it changed something exactly if the printed text differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from glowstone.errors import GlowstoneError, InternalError
from glowstone.support.budget import budget

IR = TypeVar("IR")

Pass = Callable[[IR], bool]
Dump = Callable[[int, str, str], None]
"""Receives the number of the pass that changed something (from 1), its name, and the text after it."""


@dataclass(frozen=True)
class FixedPoint(Generic[IR]):
    """Passes repeated in order until a round changes nothing, `bound` rounds at most."""

    name: str
    passes: tuple[Pass[IR], ...]
    bound: int


Step = Pass[IR] | FixedPoint[IR]


def step_names(step: Step[IR]) -> tuple[str, ...]:
    """The names by which a step, or a part of it, is left out."""
    if isinstance(step, FixedPoint):
        return (step.name, *(member.__name__ for member in step.passes))
    return (step.__name__,)


class PassManager(Generic[IR]):
    """Runs passes with what surrounds them: checks, dumps, times, and errors that name the pass.

    Args:
        name: the pipeline's name, for error messages.
        verify: raises where the IR is invalid.
        print: the text form of the IR.
        checked: verify before the first and after every pass, and check what passes say of themselves.
        dump: called after each pass that changed something.
        skip: names of passes and fixed points to leave out.
        timings: seconds by pass name, added up here.
        parts: the representation and those inside it, one after another; each pass runs on all of them.
    """

    def __init__(
        self,
        name: str,
        *,
        verify: Callable[[IR], None],
        print: Callable[[IR], str],
        checked: bool = False,
        dump: Dump | None = None,
        skip: frozenset[str] = frozenset(),
        timings: dict[str, float] | None = None,
        parts: Callable[[IR], Iterable[IR]] | None = None,
    ) -> None:
        self._name = name
        self._verify = verify
        self._print = print
        self._checked = checked
        self._dump = dump
        self._skip = skip
        self._timings = timings
        self._parts = parts
        self._changes = 0
        self._text: str | None = None
        """Of the IR between two passes, where they are checked."""

    def run(self, ir: IR, passes: Sequence[Step[IR]]) -> bool:
        """Run the passes in order; returns whether any changed the IR.

        Raises:
            InternalError: a pass failed or lied, or left an invalid IR; carries the text before the pass.
            GlowstoneError: a pass found something wrong with the user's model (the pass is in the notes).
        """
        if self._checked:
            self._check_valid(ir, "the input", None)
            self._text = self._print(ir)
        changed = False
        for step in passes:
            changed |= self._run_step(ir, step)
        return changed

    def _run_step(self, ir: IR, step: Step[IR]) -> bool:
        if not isinstance(step, FixedPoint):
            return self._run_pass(ir, step)
        if step.name in self._skip:
            return False
        changed = False
        for _ in range(step.bound):
            round_changed = False
            for member in step.passes:
                round_changed |= self._run_pass(ir, member)
            changed |= round_changed
            if not round_changed:
                break
        return changed

    def _run_pass(self, ir: IR, function: Pass[IR]) -> bool:
        name = function.__name__
        if name in self._skip:
            return False
        before = self._text
        budget().look()
        start = time.perf_counter()
        changed = self._call(ir, function, before)
        if self._timings is not None:
            self._timings[name] = self._timings.get(name, 0.0) + time.perf_counter() - start
        if before is not None:
            self._check_claim(ir, name, before, changed)
        if changed:
            self._changes += 1
            if self._dump is not None:
                self._dump(self._changes, name, self._print(ir))
        return changed

    def _call(self, ir: IR, function: Pass[IR], before: str | None) -> bool:
        try:
            changed = False
            for part in (ir,) if self._parts is None else self._parts(ir):
                changed |= function(part)
            return changed
        except InternalError as error:
            raise self._failure(f"pass {function.__name__} failed: {error.message}", before) from error
        except GlowstoneError as error:
            error.add_note(f"in pass {function.__name__} of {self._name}")
            raise
        except (MemoryError, RecursionError):  # the model asks for more than there is: see `support/budget.py`
            raise
        except Exception as error:
            message = f"pass {function.__name__} failed: {type(error).__name__}: {error}"
            raise self._failure(message, before) from error

    def _check_claim(self, ir: IR, name: str, before: str, changed: bool) -> None:
        self._check_valid(ir, f"pass {name}", before)
        self._text = self._print(ir)
        if changed is not (self._text != before):
            claim = "says it changed something and did not" if changed else "changed something and did not say so"
            raise self._failure(f"pass {name} {claim}", before)

    def _check_valid(self, ir: IR, source: str, before: str | None) -> None:
        try:
            self._verify(ir)
        except Exception as error:
            raise self._failure(f"{source} left an invalid representation: {error}", before) from error

    def _failure(self, message: str, before: str | None) -> InternalError:
        remedy = "a fault in Glowstone; `reproducer` of this error holds the text before the pass"
        if before is None:
            remedy = "a fault in Glowstone; run again with checks on for a reproducer"
        error = InternalError(f"{self._name}: {message}", remedy=remedy)
        return error.with_reproducer(before) if before is not None else error
