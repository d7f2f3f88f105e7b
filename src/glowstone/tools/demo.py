"""The demonstration: read rendered lines of text, then time ResNet-50, both compiled to machine code.

Without a network handwritten digits are read instead of lines.

In: a function that is told each step. Out: what was read, what the compiler reported, and times in seconds.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import glowstone
from glowstone import examples
from glowstone.errors import GlowstoneError
from glowstone.tools import recognizer, resnet50
from glowstone.tools.benchmark import Timing, time_calls
from glowstone.tools.fetch import RECOGNIZER, fetch

STEPS: Final = 6
_REFERENCE_WIDTH: Final = 320  # pixels; what the recognizer is compiled for, other widths specialize from it
_TIMED_SECONDS: Final = 2.0

Step = Callable[[str], None]


@dataclass(frozen=True)
class LineRead:
    """A rendered line, what was read, and the width of its image in pixels.

    `first_seconds` is the first run at this width, which specializes the template to it; `seconds` the next.
    """

    text: str
    read: str
    width: int
    first_seconds: float
    seconds: float


@dataclass(frozen=True)
class RecognizerResult:
    """The lines, the seconds of `compile`, and the compiler's report."""

    lines: tuple[LineRead, ...]
    compile_seconds: float
    report: Mapping[str, Any]


@dataclass(frozen=True)
class ResNetResult:
    """The seconds of `compile`, the times of the runs, and the compiler's report."""

    compile_seconds: float
    timing: Timing
    report: Mapping[str, Any]


@dataclass(frozen=True)
class DigitsResult:
    """Digits on images and what was read, the seconds of `compile` and of a run of all, and the compiler's report."""

    digits: tuple[int, ...]
    read: tuple[int, ...]
    compile_seconds: float
    seconds: float
    report: Mapping[str, Any]

    @property
    def right(self) -> int:
        """How many digits were read right."""
        return sum(digit == read for digit, read in zip(self.digits, self.read, strict=True))


def require_pillow() -> None:
    """Pillow renders the lines.

    Raises:
        GlowstoneError: it is not installed.
    """
    if importlib.util.find_spec("PIL") is None:
        raise GlowstoneError(
            "the demo renders text with Pillow, which is missing", remedy="pip install glowstone[demo]"
        )


def read_lines(step: Step, texts: Sequence[str] = recognizer.SAMPLE_LINES) -> RecognizerResult:
    """Fetch the recognizer, compile it and read the texts, each as an image as wide as it needs."""
    require_pillow()
    step("fetching the recognizer")
    path = fetch(RECOGNIZER)
    characters = recognizer.read_characters(path)
    step("compiling the recognizer")
    begin = time.perf_counter()
    shape = (1, 3, recognizer.HEIGHT, _REFERENCE_WIDTH)
    model = glowstone.compile(path, shapes={recognizer.INPUT_NAME: shape})
    compile_seconds = time.perf_counter() - begin
    step("reading the lines")
    lines = []
    for text in texts:
        image = recognizer.prepare(recognizer.render_line(text))
        begin = time.perf_counter()
        (scores,) = model.run({recognizer.INPUT_NAME: image}).values()
        specialized = time.perf_counter()
        model.run({recognizer.INPUT_NAME: image})
        end = time.perf_counter()
        read = recognizer.decode(scores, characters)[0]
        lines.append(LineRead(text, read, image.shape[3], specialized - begin, end - specialized))
    return RecognizerResult(tuple(lines), compile_seconds, model.report())


def read_digits(step: Step) -> DigitsResult:
    """Compile the digit classifier that the package ships and read handwritten digits: needs no network."""
    step("compiling the digit classifier")
    images, labels = examples.digit_images()
    begin = time.perf_counter()
    model = glowstone.compile(examples.DIGITS, shapes={examples.DIGITS_INPUT: images.shape})
    compile_seconds = time.perf_counter() - begin
    step("reading the digits")
    call = model.bind({examples.DIGITS_INPUT: images})
    begin = time.perf_counter()
    probabilities = call()[examples.DIGITS_OUTPUT]
    seconds = time.perf_counter() - begin
    read = probabilities.argmax(axis=1)
    return DigitsResult(tuple(labels.tolist()), tuple(read.tolist()), compile_seconds, seconds, model.report())


def time_resnet50(step: Step) -> ResNetResult:
    """Build ResNet-50 with random weights, compile it and time it."""
    step("building ResNet-50")
    content = resnet50.build_resnet50()
    step("compiling ResNet-50")
    begin = time.perf_counter()
    model = glowstone.compile(content, shapes={resnet50.INPUT_NAME: resnet50.INPUT_SHAPE})
    compile_seconds = time.perf_counter() - begin
    step("timing ResNet-50")
    call = model.bind({resnet50.INPUT_NAME: resnet50.sample_image()})
    return ResNetResult(compile_seconds, time_calls(call, seconds=_TIMED_SECONDS), model.report())
