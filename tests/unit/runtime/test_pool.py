"""The claiming pool: same results on any number of threads, with everything that can happen to threads."""

from __future__ import annotations

import ctypes
import os
import threading
from pathlib import Path

import helpers
import numpy as np
import pytest
from helpers.native import A, Table, code, kernels, rotated, rotations
from helpers.processes import run_python

from glowstone.backends.cpu.native.layout import WORD_BYTES, PoolField

ENVIRONMENT = {"PYTHONPATH": str(Path(helpers.__file__).parent.parent)}
INSTRUCTIONS = 2_000


def run_rotations(threads, *, count=50, instructions=INSTRUCTIONS):
    arrays = np.arange(count), np.zeros(count, np.int64)
    rotations(instructions, count).runner(arrays, threads=threads).run()
    return arrays[instructions % 2]


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("count", [4, 50])
def test_thousands_of_short_instructions(threads, count):
    np.testing.assert_array_equal(run_rotations(threads, count=count), rotated(np.arange(count), INSTRUCTIONS))


def test_runs_of_different_sizes_follow_each_other():
    expected = rotated(np.arange(50), 300)
    for threads in (64, 2, 8, 1, 3, 64, 2) * 3:
        np.testing.assert_array_equal(run_rotations(threads, instructions=300), expected)


@pytest.mark.parametrize("threads", [2, 8])
def test_every_participant_has_scratch_of_its_own(threads):
    output = np.zeros(400, np.int64)
    table = Table()
    table.call("sum_scratch", A, 200, units=400, cost=500_000, scratch=1600)
    table.runner([output], threads=threads).run()
    np.testing.assert_array_equal(output, np.arange(400) * 200)


def test_the_last_chunk_is_shorter():
    output = np.zeros(8, np.int64)
    table = Table()
    table.call("increase", A, 1, units=6, grain=4, cost=300_000)
    table.runner([output], threads=2).run()
    assert output.tolist() == [1] * 6 + [0] * 2


def test_a_taken_pool_does_not_stop_a_run():
    run_rotations(2)
    lock = ctypes.c_int64.from_address(code().pool.address + PoolField.LOCK * WORD_BYTES)
    lock.value = 1
    try:
        np.testing.assert_array_equal(run_rotations(2), rotated(np.arange(50), INSTRUCTIONS))
    finally:
        lock.value = 0


@pytest.mark.parametrize("callers", [2, 8])
def test_python_threads_run_at_once(callers):
    expected = rotated(np.arange(50), INSTRUCTIONS)
    start = threading.Barrier(callers)
    wrong = []

    def work():
        start.wait()
        wrong.extend(1 for _ in range(5) if not np.array_equal(run_rotations(2), expected))

    workers = [threading.Thread(target=work) for _ in range(callers)]
    kernels()
    code()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_other_python_threads_go_on_meanwhile():
    # The run waits in native code until the other Python thread has changed its input: it would never end otherwise.
    flag, output = np.array([True]), np.zeros(1, np.int64)
    table = Table()
    start = len(table.words)
    leave = table.branch((A, 0))
    table.call("increase", A + 1, 1, units=1)
    table.words[table.jump()] = start
    table.land(leave)
    runner = table.runner([flag, output])

    def work():
        while output[0] == 0:
            pass
        flag[0] = False

    worker = threading.Thread(target=work)
    worker.start()
    runner.run()
    worker.join()
    assert output[0] > 0


INTERRUPT = """
import os, signal, threading
import numpy as np
from helpers.native import A, B, Table, rotated, rotations
threads = int(__import__("sys").argv[1])
count, output = np.array([1 << 60]), np.zeros(64, np.int64)
table = Table()
loop = table.loop((A, 0))
table.call("increase", B, 1, units=64, cost=300_000)
table.next(loop)
runner = table.runner([count, output], threads=threads)
for attempt in range(2):
    output[:] = 0
    def interrupt():
        while output[0] == 0:
            pass
        os.kill(os.getpid(), signal.SIGINT)
    worker = threading.Thread(target=interrupt)
    worker.start()
    try:
        runner.run()
    except KeyboardInterrupt:
        print("interrupted")
    worker.join()
    assert (output == output[0]).all()
count[0] = 3
output[:] = 0
runner.run()
assert (output == 3).all()
arrays = np.arange(50), np.zeros(50, np.int64)
rotations(1001, 50).runner(arrays, threads=2).run()
assert (arrays[1] == rotated(np.arange(50), 1001)).all()
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_interrupt(threads):
    assert run_python(INTERRUPT, threads, environment=ENVIRONMENT).split() == ["interrupted"] * 2


FORK = """
import os, sys, signal
import numpy as np
from helpers.native import code, rotated, rotations
def run():
    arrays = np.arange(50), np.zeros(50, np.int64)
    rotations(1001, 50).runner(arrays, threads=3).run()
    assert (arrays[1] == rotated(np.arange(50), 1001)).all()
    assert code().pool.started == 2
run()
for _ in range(3):
    child = os.fork()
    if child == 0:
        try:
            assert code().pool.started == 0
            signal.alarm(60)
            run()
            run()
            os._exit(0)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    run()
"""


def test_a_forked_child_has_a_pool_of_its_own():
    run_python(FORK, environment=ENVIRONMENT)


EXIT = """
import numpy as np
from helpers.native import code, rotations
arrays = np.arange(50), np.zeros(50, np.int64)
rotations(1000, 50).runner(arrays, threads=8).run()
print(code().pool.started)
"""


def test_the_interpreter_exits_with_parked_helpers():
    for _ in range(3):
        assert run_python(EXIT, environment=ENVIRONMENT) == "7\n"


NUMPY_ALONE = """
import sys
for name in ("onnx", "llvmlite"):
    sys.modules[name] = None
import numpy as np
from glowstone.runtime.loader import load_object
from glowstone.runtime.native import native_code
from glowstone.runtime.runner import Runner, prepare
run_loop, kernels = (open(path, "rb").read() for path in sys.argv[1:])
loaded = load_object(kernels)
words = np.array([1, 10, 0, 4, 1, 0, 300_000, 0, 3, 5, 0, 2])
runner = Runner(native_code(lambda: run_loop), prepare(words, [loaded.symbols["increase"]], 4, loaded), 2, str)
output = np.zeros(4, np.int64)
runner.bases[3] = output.ctypes.data
runner.run()
print(output.tolist())
"""


def test_a_compiled_model_runs_with_numpy_alone(tmp_path):
    from helpers.native import KERNELS, emit

    from glowstone.backends.cpu.native.emit import emit_run_loop
    from glowstone.backends.cpu.target import Target

    files = tmp_path / "run_loop.o", tmp_path / "kernels.o"
    for file, content in zip(files, (emit_run_loop(Target.host()), emit(KERNELS["increase"])), strict=True):
        file.write_bytes(content)
    assert run_python(NUMPY_ALONE, *map(os.fspath, files)) == "[5, 5, 5, 5]\n"


EMIT = """
import hashlib
from glowstone.backends.cpu.native.emit import emit_run_loop
from glowstone.backends.cpu.target import Target
print(hashlib.sha256(emit_run_loop(Target("x86_64-unknown-linux-gnu", "x86-64"))).hexdigest())
"""


def test_the_run_loop_is_the_same_bytes_every_time():
    assert len({run_python(EMIT, environment={"PYTHONHASHSEED": seed}) for seed in ("1", "2")}) == 1


def test_threads_that_do_not_start_are_done_without():
    source = """
from helpers.native import code, rotated, rotations
import numpy as np
from glowstone.runtime import operating_system
attempts = []
def refuse(function, argument):
    attempts.append(argument)
    raise OSError(11, "no thread left")
operating_system.start_thread = refuse
for _ in range(3):
    arrays = np.arange(50), np.zeros(50, np.int64)
    rotations(1001, 50).runner(arrays, threads=4).run()
    assert (arrays[1] == rotated(np.arange(50), 1001)).all()
print(len(attempts), code().pool.started)
"""
    assert run_python(source, environment=ENVIRONMENT) == "1 0\n"


MEET = """
import sys
import numpy as np
from helpers.native import A, B, C, Table, control_functions, flush_bits
threads = int(sys.argv[1])
read, write, _ = control_functions()
write(read() | flush_bits())  # before the helpers start: they would inherit it
values = np.full(threads, 1 << 20, np.uint32).view(np.float32)
output, counter = np.zeros(threads, np.float32), np.zeros(1, np.int64)
table = Table()
table.call("meet", A, B, C, threads, units=threads, cost=1_000_000)
runner = table.runner([values, output, counter], threads=threads)
for _ in range(5):
    counter[0] = 0
    output[:] = 0
    runner.run()
    print(output.view(np.uint32).tolist())
"""


@pytest.mark.parametrize("threads", [2, 8])
def test_helpers_take_part_and_keep_denormals(threads):
    printed = run_python(MEET, str(threads), environment=ENVIRONMENT).splitlines()
    assert printed == [str([1 << 19] * threads)] * 5
