"""The main function of a process that compiles kernels for another one. See `compile_pool`.

In, on standard input: a pickled `Target`, then pickled kernel keys. Out, on standard output: for every key the length
of its object file as a little-endian int64, then its bytes. It ends when the input does. Nothing else writes there.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys

from glowstone.backends.cpu.compile import emit_object
from glowstone.backends.cpu.kernel_family import families
from glowstone.backends.cpu.machine import create_target_machine

LENGTH_BYTES = 8


def main() -> None:
    """Compile until the input ends."""
    gc.disable()  # it ends soon
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    target = pickle.load(requests)
    create_target_machine(target.triple, target.cpu, target.features)
    families()
    while True:
        try:
            key = pickle.load(requests)
        except EOFError:
            return
        content = emit_object([key], target)
        answers.write(len(content).to_bytes(LENGTH_BYTES, "little") + content)
        answers.flush()
