"""The pass manager over a toy representation: a list of integers that must be sorted."""

import pickle

import pytest

from glowstone.errors import InternalError, UnsupportedError
from glowstone.support.pass_manager import FixedPoint, PassManager


def verify(ir: list[int]) -> None:
    if ir != sorted(ir):
        raise ValueError("not sorted")


def drop_first(ir: list[int]) -> bool:
    return bool(ir and ir.pop(0) is not None)


def halve_largest(ir: list[int]) -> bool:
    if not ir or ir[-1] < 2:
        return False
    ir[-1] //= 2
    ir.sort()
    return True


def lie_changed(ir: list[int]) -> bool:
    return True


def lie_unchanged(ir: list[int]) -> bool:
    ir.append(99)
    return False


def reverse(ir: list[int]) -> bool:
    ir.reverse()
    return True


def crash(ir: list[int]) -> bool:
    raise KeyError("lost")


def refuse(ir: list[int]) -> bool:
    raise UnsupportedError("no such operator")


def manager(**options: object) -> PassManager[list[int]]:
    return PassManager("toy", verify=verify, print=str, **{"checked": True, **options})  # type: ignore[arg-type]


def test_runs_in_order_and_tells_whether_anything_changed():
    ir = [1, 2, 8]
    assert manager().run(ir, [drop_first, halve_largest]) is True
    assert ir == [2, 4]
    assert manager().run([], [drop_first]) is False


def test_fixed_point_ends_by_itself_and_at_its_bound():
    ir = [64]
    assert manager().run(ir, [FixedPoint("halve", (halve_largest,), 100)])
    assert ir == [1]
    ir = [64]
    manager().run(ir, [FixedPoint("halve", (halve_largest,), 2)])
    assert ir == [16]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lie_changed, "says it changed something"),
        (lie_unchanged, "did not say so"),
        (reverse, "not sorted"),
        (crash, "KeyError"),
    ],
)
def test_faults_name_the_pass_and_carry_the_text_before(function, words):
    with pytest.raises(InternalError) as caught:
        manager().run([1, 2], [function])
    assert words in str(caught.value)
    assert f"pass {function.__name__}" in str(caught.value)
    assert caught.value.reproducer == "[1, 2]"
    assert pickle.loads(pickle.dumps(caught.value)).reproducer == "[1, 2]"


def test_an_invalid_input_is_found_before_any_pass():
    with pytest.raises(InternalError, match="the input"):
        manager().run([2, 1], [])


def test_errors_of_the_user_pass_through_with_the_pass_in_their_notes():
    with pytest.raises(UnsupportedError) as caught:
        manager().run([], [refuse])
    assert caught.value.__notes__ == ["in pass refuse of toy"]


def test_unchecked_mode_checks_nothing_but_still_wraps():
    assert manager(checked=False).run([1], [lie_changed]) is True
    with pytest.raises(InternalError) as caught:
        manager(checked=False).run([1], [crash])
    assert caught.value.reproducer is None


def test_skip_dump_and_timings():
    dumped: list[tuple[int, str, str]] = []
    timings: dict[str, float] = {}
    ir = [1, 2, 8]
    steps = [drop_first, halve_largest, FixedPoint("again", (halve_largest,), 5)]
    skip = frozenset({"drop_first", "again"})
    manager(dump=lambda *entry: dumped.append(entry), skip=skip, timings=timings).run(ir, steps)
    assert dumped == [(1, "halve_largest", "[1, 2, 4]")]
    assert set(timings) == {"halve_largest"}
