"""The recurrence of linear attention as machine code, against a loop over steps in float64."""

from __future__ import annotations

import numpy as np
import pytest
from instruction_check import Storage, check, sample

from glowstone.lir import LinearRecurrence


@pytest.mark.parametrize("decays", [False, True], ids=["keeps", "decays"])
@pytest.mark.parametrize("corrects", [False, True], ids=["adds", "corrects"])
@pytest.mark.parametrize("shape", [(2, 3, 4, 2, 5, 9), (1, 1, 1, 1, 1, 1), (1, 4, 6, 2, 3, 40), (1, 0, 2, 2, 3, 4)])
def test_steps(shape, corrects, decays):
    batch, steps, heads, groups, depth, width = shape
    sizes = [(heads, depth), (groups, depth), (groups, width)]
    q, k, v = (sample((batch, steps, *size), low=-1, high=1) for size in sizes)
    state = sample((batch, groups, depth, width), low=-1, high=1)
    decay = sample((batch, steps, groups, depth), low=-1, high=0)
    rate = sample((batch, steps, groups, 1), low=0, high=1)
    extras = ([decay] if decays else []) + ([rate] if corrects else [])
    storage = Storage()
    views = [storage.result((batch, steps, heads, width)), storage.result(state.shape)]
    views += [storage.add(array) for array in (q, k, v, state, *extras)]
    found = check(LinearRecurrence(decays, corrects), views, storage).arrays
    last, expected = state.astype(np.float64), np.zeros((batch, steps, heads, width))
    for n, step, group in np.ndindex(batch, steps, groups):
        key, value = k[n, step, group].astype(np.float64), v[n, step, group].astype(np.float64)
        if decays:
            last[n, group] *= np.exp(decay[n, step, group].astype(np.float64))[:, None]
        if corrects:
            value = rate[n, step, group] * (value - key @ last[n, group])
        last[n, group] += np.outer(key, value)
        run = slice(group * heads // groups, (group + 1) * heads // groups)
        expected[n, step, run] = q[n, step, run] @ last[n, group]
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found[1], last, rtol=1e-5, atol=1e-5)
