"""How the claiming loop shares short instructions, alone and beside a busy process.

3,000 instructions of some 12 microseconds each, on one thread and on two in turn; prints the shortest times and their
ratios, in milliseconds. Usage: python bench/claim_loop.py [rounds]
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from glowstone.backends.cpu.machine import create_target_machine, parse_module
from glowstone.backends.cpu.native.emit import emit_run_loop
from glowstone.backends.cpu.target import Target
from glowstone.runtime.loader import load_object
from glowstone.runtime.native import native_code
from glowstone.runtime.runner import Runner, prepare
from glowstone.table import FIRST_ARGUMENT_BASE, Record

INSTRUCTIONS = 3_000
UNITS = 64
UNIT_STEPS = 180
"""Dependent steps of one unit, some nanosecond each."""
COST_NANOSECONDS = 12_000
THREADS = (1, 2)

KERNEL = f"""
define void @steps(ptr %call, ptr %bases, i64 %begin, i64 %end, ptr %scratch, ptr %status) {{
entry:
  %from = mul i64 %begin, {UNIT_STEPS}
  %to = mul i64 %end, {UNIT_STEPS}
  %slot = getelementptr ptr, ptr %bases, i64 {FIRST_ARGUMENT_BASE}
  %output = load ptr, ptr %slot
  br label %step
step:
  %i = phi i64 [ %from, %entry ], [ %next, %step ]
  %x = phi i64 [ %begin, %entry ], [ %y, %step ]
  %product = mul i64 %x, 6364136223846793005
  %y = add i64 %product, %i
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %to
  br i1 %more, label %step, label %done
done:
  %place = getelementptr i64, ptr %output, i64 %begin
  store i64 %y, ptr %place
  ret void
}}
"""


def make_runners() -> dict[int, tuple[Runner, np.ndarray]]:
    """A runner and its output for each number of threads."""
    target = Target.host()
    machine = create_target_machine(target.triple, target.cpu, target.features)
    kernels = load_object(bytes(machine.emit_object(parse_module(KERNEL))))
    call = [Record.CALL, 8, 0, UNITS, 1, 0, COST_NANOSECONDS, 0]
    table = prepare(np.array(call * INSTRUCTIONS + [Record.END, 2]), [kernels.symbols["steps"]], 4, kernels)
    code = native_code(lambda: emit_run_loop(target))
    runners = {}
    for threads in THREADS:
        runner = Runner(code, table, threads, str)
        output = np.zeros(UNITS, np.int64)
        runner.bases[FIRST_ARGUMENT_BASE] = output.ctypes.data
        runners[threads] = runner, output
    return runners


def measure(rounds: int) -> dict[int, list[float]]:
    """Times in milliseconds by number of threads, taken in turn."""
    runners = make_runners()
    times: dict[int, list[float]] = {threads: [] for threads in THREADS}
    for _ in range(rounds):
        for threads, (runner, _) in runners.items():
            begin = time.perf_counter()
            runner.run()
            times[threads].append((time.perf_counter() - begin) * 1e3)
    return times


@contextmanager
def busy_process() -> Iterator[None]:
    """Another process that wants a processor all the time."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def report(title: str, times: dict[int, list[float]]) -> None:
    one, two = (np.array(times[threads]) for threads in THREADS)
    print(
        f"{title}: one thread {one.min():.1f} ms (median {np.median(one):.1f}), "
        f"two {two.min():.1f} ms (median {np.median(two):.1f}), "
        f"ratio two/one {two.min() / one.min():.2f} (median of pairs {np.median(two / one):.2f})"
    )


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    report("alone", measure(rounds))
    with busy_process():
        report("one busy process beside", measure(rounds))


if __name__ == "__main__":
    main()
