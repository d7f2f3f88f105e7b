"""Every record of the table of calls, on one thread and on several."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.native import A, B, C, Table, control_functions, flush_bits, rotated, rotations

from glowstone.errors import ExecutionError
from glowstone.runtime.runner import prepare
from glowstone.table import Record

THREADS = [1, 3]
SHARED = 250_000
"""A cost in nanoseconds that makes a run shared."""


@pytest.mark.parametrize("threads", THREADS)
def test_calls_run_in_order(threads):
    arrays = np.arange(40), np.zeros(40, np.int64)
    rotations(5, 40, cost=SHARED).runner(arrays, threads=threads).run()
    np.testing.assert_array_equal(arrays[1], rotated(np.arange(40), 5))


@pytest.mark.parametrize("threads", THREADS)
def test_no_units_no_call(threads):
    output = np.zeros(4, np.int64)
    table = Table()
    table.call("increase", A, 1, units=0, cost=SHARED)
    table.call("increase", A, 2, units=3, cost=SHARED)
    table.runner([output], threads=threads).run()
    assert output.tolist() == [2, 2, 2, 0]


@pytest.mark.parametrize("threads", THREADS)
def test_a_loop_advances_its_slots(threads):
    count, output = np.array([3]), np.zeros((4, 5), np.int64)
    slot = C
    table = Table()
    loop = table.loop((A, 0), (slot, B, output.strides[0]))
    table.call("increase", slot, 7, units=5, cost=SHARED)
    table.next(loop)
    table.call("increase", slot, 1, units=2, cost=SHARED)
    table.runner([count, output], threads=threads, slots=1).run()
    expected = np.zeros((4, 5), np.int64)
    expected[:3] += 7
    expected[2, :2] += 1  # after the loop a slot stands where the last pass left it
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("counts", [(2, 3), (3, 0), (0, 2), (1, 1)])
def test_nested_loops(threads, counts):
    output = np.zeros((4, 4, 2), np.int64)
    outer_slot, inner_slot = C, C + 1
    table = Table()
    outer = table.loop((A, 0), (outer_slot, B, output.strides[0]))
    inner = table.loop((A, 8), (inner_slot, outer_slot, output.strides[1]))
    table.call("increase", inner_slot, 1, units=2, cost=SHARED)
    table.next(inner)
    table.next(outer)
    runner = table.runner([np.array(counts), output], threads=threads, slots=2)
    runner.run()
    runner.run()
    expected = np.zeros_like(output)
    expected[: counts[0], : counts[1]] = 2
    np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("condition", [True, False])
def test_branch_and_jump(threads, condition):
    flag, output = np.array([False, condition]), np.zeros(3, np.int64)
    table = Table()
    otherwise = table.branch((A, 1))
    table.call("increase", B, 1, units=3, cost=SHARED)
    end = table.jump()
    table.land(otherwise)
    table.call("increase", B, 10, units=3, cost=SHARED)
    table.land(end)
    table.call("increase", B, 100, units=3, cost=SHARED)
    table.runner([flag, output], threads=threads).run()
    assert output.tolist() == [101 if condition else 110] * 3


def test_jump_out_of_a_loop_and_into_it_again():
    flags, output = np.array([0, 5, 2]), np.zeros(1, np.int64)
    table = Table()
    outer = table.loop((A, 16))
    inner = table.loop((A, 8))
    table.call("increase", B, 1, units=1)
    leave = table.branch((A, 0))
    table.next(inner)
    table.land(leave)
    table.next(outer)
    table.runner([flags, output]).run()
    assert output.tolist() == [2]  # the inner loop is left in its first pass, twice


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_error_of_the_lowest_unit(threads):
    output = np.zeros(8, np.int64)
    table = Table()
    table.call("increase", A, 1, units=8, cost=SHARED)
    table.call("refuse", 61, units=300, grain=4, cost=SHARED, number=7)
    table.call("increase", A, 1, units=8, cost=SHARED)
    runner = table.runner([output], threads=threads)
    for attempt in range(1, 4):
        with pytest.raises(ExecutionError, match="an index is out of range") as caught:
            runner.run()
        assert (caught.value.node, caught.value.found) == ("instruction 7", 610)
        assert output.tolist() == [attempt] * 8, "instructions after the failing one must not run"


def test_good_after_an_error():
    flag, output = np.array([True]), np.zeros(2, np.int64)
    table = Table()
    good = table.branch((A, 0))
    table.call("refuse", 0, units=2)
    table.land(good)
    table.call("increase", B, 1, units=2)
    runner = table.runner([flag, output])
    with pytest.raises(ExecutionError):
        runner.run()
    flag[0] = False
    runner.run()
    assert output.tolist() == [1, 1]


@pytest.mark.parametrize("threads", THREADS)
def test_a_run_goes_on_after_a_pause(threads):
    # Each instruction is estimated at more than the budget: the run pauses before every other record.
    count, output = np.array([6]), np.zeros((6, 4), np.int64)
    table = Table()
    loop = table.loop((A, 0), (C, B, output.strides[0]))
    table.call("increase", C, 1, units=4, cost=30_000_000)
    table.next(loop)
    runner = table.runner([count, output], threads=threads, slots=1)
    runner.run()
    np.testing.assert_array_equal(output, np.ones_like(output))


@pytest.mark.parametrize("threads", [1, 2])
def test_denormals_are_kept_whatever_the_caller_has_set(threads):
    values = np.full(64, 2**-130, np.float32)
    output = np.zeros(64, np.float32)
    table = Table()
    table.call("halve", A, B, units=64, cost=SHARED)
    runner = table.runner([values, output], threads=threads)
    read, write, _ = control_functions()
    before = read()
    try:
        write(before | flush_bits())
        assert read() == before | flush_bits()
        runner.run()
        assert read() == before | flush_bits(), "the caller's setting must come back"
    finally:
        write(before)
    assert (output.view(np.uint32) == np.float32(2**-131).view(np.uint32)).all()


def test_prepare_sums_up():
    table = Table()
    table.call("increase", A, 1, units=1, cost=30, scratch=100)
    table.call("increase", A, 1, units=1, cost=12, scratch=40)
    prepared = prepare(np.array([*table.words, Record.END, 2]), [0] * 9, 4, None)
    assert (prepared.cost, prepared.scratch_bytes, prepared.has_loops) == (42, 100, False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([9, 2, 0, 2], "kind 9"),
        ([Record.CALL, 8, 5, 1, 1, 0, 0, 0, 0, 2], "kernel 5 of 2"),
        ([Record.JUMP, 0], "length"),
        ([Record.CALL, 8, 0], "length"),
        ([Record.JUMP, 3, 3], "END"),
    ],
)
def test_prepare_refuses(words, message):
    with pytest.raises(ValueError, match=message):
        prepare(np.array(words), [0, 0], 4, None)
