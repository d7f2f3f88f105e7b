r"""Classes of characters in patterns: \d and such, [a-z], [[:alpha:]], and Unicode's categories."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterator

from glowstone.errors import ModelError

CharacterTest = Callable[[str], bool]

_WORD = frozenset(string.ascii_letters + string.digits + "_")
_SPACE = frozenset("\t\n\f\r ")
_DIGITS = frozenset(string.digits)
ESCAPED: dict[str, CharacterTest] = {
    "d": lambda c: c in _DIGITS,
    "D": lambda c: c not in _DIGITS,
    "w": lambda c: c in _WORD,
    "W": lambda c: c not in _WORD,
    "s": lambda c: c in _SPACE,
    "S": lambda c: c not in _SPACE,
}
"""RE2's: of ASCII alone."""
_POSIX = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": frozenset(map(chr, range(128))),
    "blank": frozenset("\t "),
    "cntrl": frozenset([*map(chr, range(32)), "\x7f"]),
    "digit": _DIGITS,
    "graph": frozenset(map(chr, range(33, 127))),
    "lower": frozenset(string.ascii_lowercase),
    "print": frozenset(map(chr, range(32, 127))),
    "punct": frozenset(string.punctuation),
    "space": _SPACE | {"\v"},
    "upper": frozenset(string.ascii_uppercase),
    "word": _WORD,
    "xdigit": frozenset(string.hexdigits),
}
_CATEGORIES = frozenset("CLMNPSZ")
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}


def unicode_class(name: str, is_negated: bool) -> CharacterTest:
    """A general category, such as L or Lu; ^ before the name negates.

    Raises:
        ModelError: there is no such category.
    """
    is_negated ^= name.startswith("^")
    category = name.removeprefix("^")
    if not 1 <= len(category) <= 2 or category[0] not in _CATEGORIES:
        raise _unreadable(f"\\p{{{name}}}")
    return lambda c: unicodedata.category(c).startswith(category) is not is_negated


def character_class(text: str, ignore_case: bool) -> CharacterTest:
    """What stands between brackets: characters, ranges and classes, negated where ^ comes first.

    Raises:
        ModelError: a range that is none, or an unknown class.
    """
    is_negated = text.startswith("^")
    ranges: list[tuple[str, str]] = []
    tests: list[CharacterTest] = []
    members = _members(text[is_negated:])
    for member in members:
        if callable(member):
            tests.append(member)
            continue
        low, high = member
        if high < low:
            raise _unreadable(f"{low}-{high}")
        ranges.append((low, high))

    def is_member(character: str) -> bool:
        return any(low <= character <= high for low, high in ranges) or any(test(character) for test in tests)

    def test(character: str) -> bool:
        spellings = {character, character.lower(), character.upper()} if ignore_case else (character,)
        return any(map(is_member, spellings)) is not is_negated

    return test


def _members(text: str) -> Iterator[CharacterTest | tuple[str, str]]:
    """The classes and ranges of a text; a single character is a range of one."""
    place = 0
    while place < len(text):
        if text.startswith("[:", place) and ":]" in text[place:]:
            name = text[place + 2 : text.index(":]", place)]
            place += len(name) + 4
            yield _posix_class(name)
            continue
        member, place = _member(text, place)
        if callable(member):
            yield member
            continue
        if text.startswith("-", place) and place + 1 < len(text):
            end, place = _member(text, place + 1)
            if callable(end):
                raise _unreadable(text)
            yield member, end
        else:
            yield member, member


def _member(text: str, place: int) -> tuple[CharacterTest | str, int]:
    """A character or an escaped class, and where the text goes on."""
    character = text[place]
    if character != "\\" or place + 1 >= len(text):
        return character, place + 1
    escaped = text[place + 1]
    if escaped in ESCAPED:
        return ESCAPED[escaped], place + 2
    if escaped in "pP" or escaped == "x":
        return _braced(text, place + 1)
    if escaped in _CONTROLS:
        return _CONTROLS[escaped], place + 2
    if escaped.isascii() and escaped.isalnum():
        raise _unreadable(f"\\{escaped}")
    return escaped, place + 2


def _braced(text: str, place: int) -> tuple[CharacterTest | str, int]:
    r"""\pN, \p{Name}, \x41 or \x{41}, from the letter on."""
    letter, width = text[place], 2 if text[place] == "x" else 1
    if text.startswith("{", place + 1):
        content, _, _ = text[place + 2 :].partition("}")
        end = place + 3 + len(content)
    else:
        content, end = text[place + 1 : place + 1 + width], place + 1 + width
    if letter != "x":
        return unicode_class(content, letter == "P"), end
    try:
        return chr(int(content, 16)), end
    except (ValueError, OverflowError) as error:
        raise _unreadable(text) from error


def _posix_class(name: str) -> CharacterTest:
    members = _POSIX.get(name.removeprefix("^"))
    if members is None:
        raise _unreadable(f"[:{name}:]")
    is_negated = name.startswith("^")
    return lambda c: (c in members) is not is_negated


def _unreadable(found: str) -> ModelError:
    return ModelError("a class of characters cannot be read", expected="the syntax of RE2", found=found[:80])
