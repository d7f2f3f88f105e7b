"""Overlap and rebasing of views against element sets and NumPy arrays."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from glowstone.lir import Buffer, BufferKind, View
from glowstone.lir.overlap import is_injective, overlaps, rebase, same_elements
from glowstone.lir.strides import has_dense_planes, has_unit_inner_stride, has_unit_last_stride
from glowstone.types import ElementType

BUFFER = Buffer("b", BufferKind.ACTIVATION, ElementType.I32, (4, 6, 5))
OTHER = Buffer("c", BufferKind.ACTIVATION, ElementType.I32, (4, 6, 5))


def elements(view: View) -> list[int]:
    """Offsets of all elements, one by one."""
    return [
        view.offset + sum(i * stride for i, stride in zip(index, view.strides, strict=True))
        for index in itertools.product(*map(range, view.shape))
    ]


@st.composite
def boxes(draw: st.DrawFn, buffer: Buffer = BUFFER) -> View:
    """A transposed slice of the whole buffer."""
    view = buffer.view()
    starts = tuple(draw(st.integers(0, extent - 1)) for extent in view.shape)
    shape = tuple(draw(st.integers(1, extent - start)) for extent, start in zip(view.shape, starts, strict=True))
    return view.slice(starts, shape).transpose(tuple(draw(st.permutations(range(view.rank)))))


@st.composite
def views(draw: st.DrawFn) -> View:
    """Any strided view that stays inside the buffer."""
    rank = draw(st.integers(0, 3))
    shape = tuple(draw(st.integers(0, 4)) for _ in range(rank))
    strides = tuple(draw(st.integers(0, 8)) for _ in range(rank))
    reach = sum(max(extent - 1, 0) * stride for extent, stride in zip(shape, strides, strict=True))
    return View(BUFFER, draw(st.integers(0, max(BUFFER.size - 1 - reach, 0))), shape, strides)


@settings(max_examples=300, deadline=None)
@given(views(), views())
def test_no_overlap_is_never_missed(first, second):
    if set(elements(first)) & set(elements(second)):
        assert overlaps(first, second)
        assert overlaps(second, first)


@settings(max_examples=300, deadline=None)
@given(boxes(), boxes())
def test_overlap_of_slices_is_exact(first, second):
    assert overlaps(first, second) is bool(set(elements(first)) & set(elements(second)))


def test_even_and_odd_rows_do_not_overlap():
    whole = BUFFER.view()
    even = whole.slice((0, 0, 0), (4, 3, 5), (1, 2, 1))
    odd = whole.slice((0, 1, 0), (4, 3, 5), (1, 2, 1))
    assert not overlaps(even, odd)
    assert not overlaps(whole, OTHER.view())


@settings(max_examples=300, deadline=None)
@given(views())
def test_injective_views_name_no_element_twice(view):
    found = elements(view)
    if is_injective(view):
        assert len(set(found)) == len(found)


@settings(max_examples=100, deadline=None)
@given(boxes())
def test_slices_are_injective(view):
    assert is_injective(view)


@settings(max_examples=400, deadline=None)
@given(boxes(), st.data())
def test_rebase_shows_the_same_values(through, data):
    """Copy `onto` to `through`, then read any view of the copy through the source."""
    source = Buffer("s", BufferKind.ACTIVATION, ElementType.I32, through.shape)
    onto = source.view()
    if data.draw(st.booleans()):
        wide = Buffer("w", BufferKind.ACTIVATION, ElementType.I32, (*through.shape, 2))
        onto = wide.view().slice((0,) * 4, (*through.shape, 1))
        onto = View(wide, onto.offset, through.shape, onto.strides[:3])
    storage = np.arange(onto.buffer.size, dtype=np.int32) + 1
    copied = np.zeros(BUFFER.size, np.int32)
    through.array(copied)[...] = onto.array(storage)
    view = data.draw(st.one_of(st.just(through), boxes(), views()))
    found = rebase(view, through, onto)
    if found is not None:
        assert found.buffer is onto.buffer
        np.testing.assert_array_equal(found.array(storage), view.array(copied))
    if view is through:
        assert found is not None


@settings(max_examples=200, deadline=None)
@given(boxes(), st.data())
def test_rebase_finds_every_slice_and_transpose(through, data):
    inner = tuple(data.draw(st.integers(0, extent - 1)) for extent in through.shape)
    view = through.slice(inner, tuple(e - i for e, i in zip(through.shape, inner, strict=True)))
    view = view.transpose(tuple(data.draw(st.permutations(range(3)))))
    onto = Buffer("s", BufferKind.ACTIVATION, ElementType.I32, through.shape).view()
    assert rebase(view, through, onto) is not None


def test_rebase_refuses_what_strides_cannot_say():
    through = BUFFER.view()
    transposed = OTHER.view().slice((0, 0, 0), (4, 6, 5)).transpose((2, 1, 0))
    onto = Buffer("t", BufferKind.ACTIVATION, ElementType.I32, (5, 6, 4)).view().transpose((2, 1, 0))
    flat = BUFFER.view().reshape((120,))
    assert flat is not None
    assert rebase(flat, through, onto) is None
    part = through.slice((0, 0, 0), (2, 6, 5))
    assert rebase(through, part, OTHER.view().slice((0, 0, 0), (2, 6, 5))) is None
    assert transposed.shape == (5, 6, 4)


def test_strides_of_single_elements_do_not_matter():
    first = View(BUFFER, 0, (1, 5), (99, 1))
    assert same_elements(first, View(BUFFER, 0, (1, 5), (5, 1)))
    assert not same_elements(first, View(BUFFER, 1, (1, 5), (5, 1)))
    assert has_unit_inner_stride(View(BUFFER, 0, (5, 1), (1, 77)))
    assert not has_unit_inner_stride(View(BUFFER, 0, (5, 2), (1, 5)))
    assert not has_unit_last_stride(View(BUFFER, 0, (5, 2), (1, 5)))


def test_dense_planes_leave_batch_and_block_free():
    blocked = Buffer("x", BufferKind.ACTIVATION, ElementType.F32, (2, 6, 3, 4, 8)).view()
    assert has_dense_planes(blocked.slice((1, 2, 0, 0, 0), (1, 3, 3, 4, 8)))
    assert not has_dense_planes(blocked.slice((0, 0, 0, 1, 0), (2, 6, 3, 3, 8)))
    assert not has_dense_planes(blocked.slice((0, 0, 0, 0, 0), (2, 6, 3, 4, 4)))
