"""Makes `kernel_runner` importable for the tests of this folder, and its numbers those of the test."""

import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def numbers_of_the_instruction(request):
    """`instruction_check` draws for many modules."""
    import instruction_check

    seed = zlib.crc32(request.node.nodeid.encode())
    instruction_check.random.bit_generator.state = np.random.default_rng(seed).bit_generator.state
