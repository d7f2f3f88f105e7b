"""Patterns in the syntax of RE2, matched in time linear in the text: no pattern makes matching exponential.

A pattern becomes a program whose states are followed all at once (Thompson, 1968). In: a pattern. Out: `matches(text)`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from glowstone.errors import LimitError, ModelError
from glowstone.host.characters import ESCAPED, CharacterTest, character_class, unicode_class

MOST_STATES = 10_000
"""Of a program: repeated parts are written out."""
MOST_STEPS = 200_000_000
"""Of matching one text."""
MOST_REPEATS = 1000
"""As in RE2."""
DEEPEST_GROUPS = 100
NEWLINE = "\n"
WORD_END, NO_WORD_END, TEXT_START, TEXT_END, LINE_START, LINE_END = range(6)
_ANCHORS = {"b": WORD_END, "B": NO_WORD_END, "A": TEXT_START, "z": TEXT_END}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_IS_WORD = ESCAPED["w"]


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False
    multi_line: bool = False


@dataclass
class _State:
    """What is tested, or where to go on from without a character."""

    test: CharacterTest | None = None
    anchor: int | None = None
    targets: tuple[int, ...] = ()


Build = Callable[["list[_State]"], None]
"""Appends the states of a part; matching goes on behind them."""


class Pattern:
    """A compiled pattern.

    Raises:
        ModelError: the pattern is not in the syntax of RE2.
        LimitError: its program is too large.
    """

    def __init__(self, text: str) -> None:
        parser = _Parser(text)
        build = parser.alternatives(_Flags(), 0)
        parser.expect_end()
        self._states: list[_State] = []
        build(self._states)
        self._end = len(self._states)
        self._has_anchors = any(state.anchor is not None for state in self._states)
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, text: str) -> bool:
        """Whether the whole text matches.

        Raises:
            LimitError: the text is too long for the pattern.
        """
        steps = 0
        current = frozenset((0,))
        for place, character in enumerate(text):
            key = (current, character)
            following = None if self._has_anchors else self._known.get(key)
            if following is None:
                steps += len(self._states)
                if steps > MOST_STEPS:
                    raise LimitError("a text is too long for its pattern", expected=f"{MOST_STEPS} steps", found=steps)
                following = self._after(self._closure(current, text, place), character)
                if len(self._known) < MOST_STATES:
                    self._known[key] = following
            if not following:
                return False
            current = following
        return self._end in self._closure(current, text, len(text))

    def _after(self, states: Iterable[int], character: str) -> frozenset[int]:
        result = []
        for number in states:
            test = self._states[number].test if number < self._end else None
            if test is not None and test(character):
                result.append(number + 1)
        return frozenset(result)

    def _closure(self, states: Iterable[int], text: str, place: int) -> set[int]:
        """The states that are reached without a character."""
        found: set[int] = set()
        stack = list(states)
        while stack:
            number = stack.pop()
            if number in found:
                continue
            found.add(number)
            if number == self._end:
                continue
            state = self._states[number]
            if state.anchor is not None:
                if _holds(state.anchor, text, place):
                    stack.append(number + 1)
            elif state.test is None:
                stack.extend(state.targets)
        return found


def _holds(anchor: int, text: str, place: int) -> bool:
    is_start, is_end = place == 0, place == len(text)
    if anchor == TEXT_START:
        return is_start
    if anchor == TEXT_END:
        return is_end
    if anchor == LINE_START:
        return is_start or text[place - 1] == NEWLINE
    if anchor == LINE_END:
        return is_end or text[place] == NEWLINE
    before = not is_start and _IS_WORD(text[place - 1])
    behind = not is_end and _IS_WORD(text[place])
    return (before != behind) is (anchor == WORD_END)


class _Parser:
    """Reads a pattern by recursive descent; every method gives what builds the part that it read."""

    def __init__(self, text: str) -> None:
        self._text = _without_quotes(text)
        self._place = 0

    def alternatives(self, flags: _Flags, depth: int) -> Build:
        """Sequences with | between."""
        if depth > DEEPEST_GROUPS:
            raise LimitError("groups of a pattern are nested too deep", expected=f"at most {DEEPEST_GROUPS}")
        parts: list[Build] = []
        options: list[Build] = []
        while not self._is_at("") and not self._is_at(")"):
            if self._take("|"):
                options.append(_sequence(parts))
                parts = []
            elif self._text.startswith("(?", self._place) and (changed := self._flag_group(flags)) is not None:
                flags = changed
            else:
                parts.append(self._repeated(self._atom(flags, depth)))
        options.append(_sequence(parts))
        return _alternatives(options)

    def expect_end(self) -> None:
        if not self._is_at(""):
            raise self._error("a group is closed that is not open")

    def _flag_group(self, flags: _Flags) -> _Flags | None:
        """The flags behind (?i) and such; None where a group begins."""
        end = self._text.find(")", self._place)
        letters = self._text[self._place + 2 : end] if end >= 0 else ""
        if not letters or set(letters) - set("imsU-"):
            return None
        self._place = end + 1
        return _changed(flags, letters)

    def _repeated(self, build: Build) -> Build:
        """A part with what says how often it is there; lazy or not is the same for a whole match."""
        while (bounds := self._bounds()) is not None:
            self._take("?")
            build = _repeat(build, *bounds)
        return build

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        end = self._text.find("}", self._place)
        if not self._is_at("{") or end < 0:
            return None
        low, comma, high = self._text[self._place + 1 : end].partition(",")
        if not low.isdecimal() or not (high.isdecimal() or high == ""):
            return None  # a brace that stands for itself
        least, most = int(low[:9]), int(high[:9]) if high else (None if comma else int(low[:9]))
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise self._error("a part of a pattern is repeated too often")
        self._place = end + 1
        return least, most

    def _atom(self, flags: _Flags, depth: int) -> Build:
        character = self._next()
        if character == "(":
            return self._group(flags, depth)
        if character == "[":
            return _test(character_class(self._class_text(), flags.ignore_case))
        if character == "\\":
            return self._escape(flags)
        if character == ".":
            return _test((lambda c: True) if flags.dot_all else (lambda c: c != NEWLINE))
        if character == "^":
            return _anchor(LINE_START if flags.multi_line else TEXT_START)
        if character == "$":
            return _anchor(LINE_END if flags.multi_line else TEXT_END)
        if character in "*+?":
            raise self._error("nothing to repeat")
        return _literal(character, flags.ignore_case)

    def _group(self, flags: _Flags, depth: int) -> Build:
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                name, closing, _ = self._text[self._place :].partition(">")
                if not closing or not name.isidentifier():
                    raise self._error("a group has no name")
                self._place += len(name) + 1
            else:
                letters = self._text[self._place :].partition(":")[0]
                if set(letters) - set("imsU-") or not self._take(f"{letters}:"):
                    raise self._error("a kind of group that RE2 does not have")
                flags = _changed(flags, letters)
        build = self.alternatives(flags, depth + 1)
        if not self._take(")"):
            raise self._error("a group is not closed")
        return build

    def _class_text(self) -> str:
        """What stands between brackets; a bracket in the first place, or behind a backslash, is a member."""
        start = self._place
        self._take("^")
        self._take("]")
        while not self._is_at("]"):
            if self._take("[:"):
                end = self._text.find(":]", self._place)
                self._place = end + 2 if end >= 0 else self._place
            elif self._next() == "\\":
                self._next()
        text = self._text[start : self._place]
        self._place += 1
        return text

    def _escape(self, flags: _Flags) -> Build:
        character = self._next()
        if character in ESCAPED:
            return _test(ESCAPED[character])
        if character in _ANCHORS:
            return _anchor(_ANCHORS[character])
        if character in "pP":
            name = self._next()
            if name == "{":
                name, _, _ = self._text[self._place :].partition("}")
                self._place += len(name) + 1
            return _test(unicode_class(name, character == "P"))
        if character == "x":
            return _literal(self._hexadecimal(), flags.ignore_case)
        if character in _CONTROLS:
            return _literal(_CONTROLS[character], flags.ignore_case)
        if character.isascii() and character.isalnum():
            raise self._error("an escape that RE2 does not have")
        return _literal(character, flags.ignore_case)

    def _hexadecimal(self) -> str:
        if self._take("{"):
            digits, _, _ = self._text[self._place :].partition("}")
            self._place += len(digits) + 1
        else:
            digits = self._next() + self._next()
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError) as error:
            raise self._error("not the number of a character") from error

    def _is_at(self, text: str) -> bool:
        return self._text.startswith(text, self._place) if text else self._place >= len(self._text)

    def _take(self, text: str) -> bool:
        if not self._is_at(text):
            return False
        self._place += len(text)
        return True

    def _next(self) -> str:
        if self._is_at(""):
            raise self._error("the pattern ends too early")
        self._place += 1
        return self._text[self._place - 1]

    def _error(self, message: str) -> ModelError:
        return ModelError(f"a pattern cannot be read: {message}", expected="the syntax of RE2", found=self._text[:80])


def _without_quotes(text: str) -> str:
    r"""The pattern with a backslash before every sign between \Q and \E instead."""
    parts = []
    place = 0
    while place < len(text):
        if text.startswith("\\Q", place):
            quoted, _, _ = text[place + 2 :].partition("\\E")
            parts += [one if one.isalnum() or not one.isascii() else f"\\{one}" for one in quoted]
            place += len(quoted) + 4
        else:
            width = 2 if text[place] == "\\" else 1
            parts.append(text[place : place + width])
            place += width
    return "".join(parts)


def _changed(flags: _Flags, letters: str) -> _Flags:
    names = {"i": "ignore_case", "s": "dot_all", "m": "multi_line"}
    added, _, removed = letters.partition("-")
    values = {names[letter]: True for letter in added if letter in names}
    values.update({names[letter]: False for letter in removed if letter in names})
    return replace(flags, **values)


def _add(states: list[_State], state: _State) -> None:
    if len(states) >= MOST_STATES:
        raise LimitError("a pattern is too large", expected=f"at most {MOST_STATES} states")
    states.append(state)


def _test(test: CharacterTest) -> Build:
    return lambda states: _add(states, _State(test))


def _anchor(kind: int) -> Build:
    return lambda states: _add(states, _State(anchor=kind))


def _literal(character: str, ignore_case: bool) -> Build:
    if not ignore_case:
        return _test(lambda c: c == character)
    folded = character.casefold()
    return _test(lambda c: c.casefold() == folded)


def _sequence(parts: list[Build]) -> Build:
    def build(states: list[_State]) -> None:
        for part in parts:
            part(states)

    return build


def _alternatives(options: list[Build]) -> Build:
    if len(options) == 1:
        return options[0]

    def build(states: list[_State]) -> None:
        ends = []
        for option in options[:-1]:
            split = _State()
            _add(states, split)
            first = len(states)
            option(states)
            ends.append(_State())
            _add(states, ends[-1])
            split.targets = (first, len(states))
        options[-1](states)
        for end in ends:
            end.targets = (len(states),)

    return build


def _repeat(part: Build, least: int, most: int | None) -> Build:
    def build(states: list[_State]) -> None:
        for _ in range(least):
            _add(states, _State(targets=(len(states) + 1,)))  # an empty part counts, too
            part(states)
        if most is None:
            split = _State()
            _add(states, split)
            start = len(states)
            part(states)
            _add(states, _State(targets=(start - 1,)))
            split.targets = (start, len(states))
            return
        splits = []
        for _ in range(most - least):
            splits.append(_State(targets=(len(states) + 1,)))
            _add(states, splits[-1])
            part(states)
        for split in splits:
            split.targets = (*split.targets, len(states))

    return build
