"""GroupQueryAttention of the domain com.microsoft, against ONNX Runtime."""

import numpy as np
import pytest
from helpers.microsoft import DOMAIN, assert_close, feeds_of, node_model, runtime_results

import glowstone

RANDOM = np.random.default_rng(12)
HEADS, GROUPS, SIZE = 4, 2, 32
LAST, TOTAL, BIAS, SINK = 5, 6, 10, 11
TOLERANCES = {np.float32: 2e-5, np.float16: 4e-3}


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def step(
    new: int, counts: list[int], cache: int | None, packed: bool = False, dtype: type = np.float32
) -> list[np.ndarray | None]:
    """Operands of a step of `new` positions, after which the batches have `counts` keys."""
    batch = len(counts)
    if packed:
        projections = [normal(batch, new, (HEADS + 2 * GROUPS) * SIZE, dtype=dtype), None, None]
    else:
        projections = [normal(batch, new, count * SIZE, dtype=dtype) for count in (HEADS, GROUPS, GROUPS)]
    past = [None if cache is None else normal(batch, GROUPS, cache, SIZE, dtype=dtype) for _ in range(2)]
    last = np.array(counts, np.int32) - 1
    return [*projections, *past, last, np.array(max(counts), np.int32)]


def compare(
    case: list[np.ndarray | None], results: int = 3, tolerance: float = 2e-5, **attributes: object
) -> list[np.ndarray]:
    """Compare what is defined: positions and keys that are no padding."""
    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS, **attributes}
    model = node_model("GroupQueryAttention", [case], attributes, results, fixed=(TOTAL,))
    feeds = feeds_of(case, (TOTAL,))
    found = list(glowstone.compile(model).run(feeds).values())
    counts = case[LAST].ravel() + 1
    for number, (ours, theirs) in enumerate(zip(found, runtime_results(model, feeds), strict=True)):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        for batch, count in enumerate(counts):
            if number == 0:
                defined = np.s_[batch, :count]
            elif number < 3:
                defined = np.s_[batch, :, :count]
            else:
                defined = np.s_[batch, :, : min(count, ours.shape[2]), :count]
            assert_close(_visible(ours[defined]), _visible(theirs[defined]), tolerance, what=f"result {number}")
    return found


def _visible(scores: np.ndarray) -> np.ndarray:
    """Hidden scores are minus infinity, or the lowest number."""
    return np.where(scores < -1e4, 0, scores)


STEPS = {
    "prompt": (5, [5, 5], None),
    "ragged prompt": (5, [3, 5], None),
    "prompt in a cache": (5, [5, 2], 9),
    "prompt in an empty cache": (4, [4, 4], 0),
    "token": (1, [6, 4], 9),
    "token in a growing cache": (1, [6, 6], 5),
    "more tokens": (3, [8], 9),
}


@pytest.mark.parametrize("shape", STEPS)
@pytest.mark.parametrize("packed", [False, True])
def test_steps(shape, packed):
    new, counts, cache = STEPS[shape]
    compare(step(new, counts, cache, packed))


@pytest.mark.parametrize("shape", ["ragged prompt", "token", "more tokens"])
@pytest.mark.parametrize(
    "attributes",
    [
        {"softcap": 2.0, "scale": 0.5},
        {"local_window_size": 2},
        {"smooth_softmax": 1, "local_window_size": 3, "softcap": 1.5},
    ],
)
def test_attributes(shape, attributes):
    compare(step(*STEPS[shape]), **attributes)


@pytest.mark.parametrize("shape", ["ragged prompt", "token", "more tokens"])
@pytest.mark.parametrize(("interleaved", "part", "positions"), [(0, False, True), (0, True, False), (1, False, False)])
def test_rotary_embedding(shape, interleaved, part, positions):
    new, counts, cache = STEPS[shape]
    case = step(new, counts, cache)
    turned = SIZE // 2 if part else SIZE
    case += [normal(20, turned // 2) for _ in range(2)]
    if positions:
        first = [max(count - new, 0) for count in counts]
        case.append(np.array(first)[:, None] + np.arange(new))
    compare(case, do_rotary=1, rotary_interleaved=interleaved)


@pytest.mark.parametrize("shape", ["prompt", "token"])
@pytest.mark.parametrize(("batches", "heads"), [(True, False), (False, True), (True, True)])
def test_bias_and_sink(shape, batches, heads):
    new, counts, cache = STEPS[shape]
    case = step(new, counts, cache)
    bias = normal(len(counts) if batches else 1, HEADS if heads else 1, new, max(counts))
    case += [None, None, None, bias, normal(HEADS) if heads else None]
    compare(case)


@pytest.mark.parametrize("mode", [1, 2])
@pytest.mark.parametrize("shape", ["ragged prompt", "token"])
def test_scores(mode, shape):
    found = compare(step(*STEPS[shape]), 4, qk_output=mode)
    assert found[3].shape == (2, HEADS, STEPS[shape][0], max(STEPS[shape][1]))


def test_half_precision_and_every_head_of_its_own():
    compare(step(3, [3, 2], None, dtype=np.float16), tolerance=4e-3)
    compare(step(1, [7, 2], 8, dtype=np.float16), tolerance=4e-3)
    case = step(4, [4], None)
    case[1:3] = [normal(1, 4, HEADS * SIZE) for _ in range(2)]
    compare(case, kv_num_heads=HEADS)


def test_without_causality():
    compare(step(4, [4, 4], None), causal=0)
    compare(step(1, [4, 6], 8), causal=0)


def test_a_decoder_compiled_once_runs_step_after_step():
    """Keys grow from call to call; what the total follows from has an open dimension."""
    steps = [step(1, [count, count], count - 1) for count in (3, 4, 7)]
    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS}
    model = node_model("GroupQueryAttention", steps, attributes, 3)
    model.graph.input.remove(next(port for port in model.graph.input if port.name == "x6"))
    _total_from_a_mask(model)

    def feeds(case: list[np.ndarray | None]) -> dict[str, np.ndarray]:
        rest = {name: array for name, array in feeds_of(case).items() if name != "x6"}
        return {**rest, "mask": np.ones((2, int(case[TOTAL])), np.int64)}

    first = feeds(steps[0])
    compiled = glowstone.compile(model, shapes={name: array.shape for name, array in first.items()})
    for case in steps:
        given = feeds(case)
        for ours, theirs in zip(compiled.run(given).values(), runtime_results(model, given), strict=True):
            assert_close(ours, theirs, 2e-5)


def _total_from_a_mask(model: object) -> None:
    """Operand x6 as the length of an attention mask, as exporters write it."""
    from onnx import TensorProto, helper, numpy_helper

    graph = model.graph
    graph.input.append(helper.make_tensor_value_info("mask", TensorProto.INT64, [2, "total"]))
    graph.initializer.append(numpy_helper.from_array(np.array(1), "one"))
    nodes = [
        helper.make_node("Shape", ["mask"], ["extents"]),
        helper.make_node("Gather", ["extents", "one"], ["length"]),
        helper.make_node("Cast", ["length"], ["x6"], to=TensorProto.INT32),
    ]
    for index, node in enumerate(nodes):
        graph.node.insert(index, node)


@pytest.mark.parametrize(
    ("change", "attributes", "message"),
    [
        ({}, {"kv_num_heads": 0}, "kv_num_heads is no number of heads"),
        ({}, {"kv_num_heads": 3}, "do not split in heads"),
        ({}, {"k_quant_type": "PER_TENSOR"}, "attribute k_quant_type"),
        ({}, {"sliding_window_cache": 1, "local_window_size": 2}, "attribute sliding_window_cache"),
        ({}, {"causal": 0, "local_window_size": 2}, "a window needs causal attention"),
        ({}, {"do_rotary": 1}, "an operand is missing"),
        ({2: None}, {}, "keys and values go together"),
        ({5: np.zeros(3, np.int32)}, {}, "number of elements"),
        ({14: normal(SIZE), 15: normal(SIZE)}, {}, "operand q_norm_weight is not supported"),
        ({BIAS: normal(1, 1, 1, 5)}, {}, "number of elements"),
        ({SINK: normal(HEADS + 1)}, {}, "number of elements"),
    ],
)
def test_refusals(change, attributes, message):
    case = step(1, [6, 4], 9) + [None] * 9
    for index, operand in change.items():
        case[index] = operand
    attributes = {"num_heads": HEADS, "kv_num_heads": GROUPS, **attributes}
    with pytest.raises(glowstone.GlowstoneError, match=message) as caught:
        glowstone.compile(node_model("GroupQueryAttention", [case], attributes, fixed=(TOTAL,), domain=DOMAIN))
    assert caught.value.node == "the node"
