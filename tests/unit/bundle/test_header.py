"""The C header of a bundle: names and sizes."""

from __future__ import annotations

import pytest

from glowstone.bundle.argument import Argument
from glowstone.bundle.header import header_text
from glowstone.types import ElementType

NAMES = ("x", "X", "a.b/c:0", "a_b_c_0", "", "***", "count", "日本")


@pytest.fixture(scope="module")
def text():
    arguments = [Argument(name, ElementType.F32, (2, 3)) for name in NAMES]
    return header_text("model", arguments, [Argument("y", ElementType.BOOL, ())], 4096)


def test_every_name_is_an_identifier_of_its_own(text):
    lines = [line.split() for line in text.splitlines() if line.startswith("#define MODEL_INPUT_")]
    positions = [(name, value) for _, name, value, *_ in lines if not name.endswith(("_BYTES", "_COUNT"))]
    assert [int(value) for _, value in positions] == list(range(len(NAMES)))
    assert len({name for name, _ in positions}) == len(NAMES)
    assert positions[0][0] == "MODEL_INPUT_X"


def test_sizes(text):
    assert "#define MODEL_INPUT_X_BYTES 24\n" in text
    assert "#define MODEL_OUTPUT_Y_BYTES 1\n" in text
    assert "#define MODEL_OUTPUT_COUNT 1\n" in text
    assert "#define MODEL_ARENA_BYTES 4096\n" in text
