"""MatMulNBits of the domain com.microsoft, against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from helpers.microsoft import Array, compare, node_model

import glowstone
from glowstone.ops import Constant
from glowstone.tools.graph_stages import graph_at_stage

RANDOM = np.random.default_rng(13)
ZERO_POINTS = 3
TOLERANCES = {np.float32: 3e-5, np.float16: 3e-3}


def operands(
    rows: tuple[int, ...], depth: int, columns: int, bits: int, block: int, zeros: str, dtype: type = np.float32
) -> tuple[list[Array | None], dict[str, int]]:
    """Operands 0 to 3, and attributes."""
    blocks = -(-depth // block)
    points: Array | None = None
    if zeros == "packed":
        points = RANDOM.integers(0, 256, (columns, -(-blocks * bits // 8)), np.uint8)
    elif zeros == "floats":
        points = RANDOM.uniform(0, 2**bits, (columns, blocks)).astype(dtype)
    case = [
        RANDOM.standard_normal((*rows, depth)).astype(dtype),
        RANDOM.integers(0, 256, (columns, blocks, block * bits // 8), np.uint8),
        RANDOM.uniform(-0.2, 0.2, (columns, blocks)).astype(dtype),
        points,
    ]
    return case, {"K": depth, "N": columns, "bits": bits, "block_size": block}


def fixed_of(case: list[Array | None]) -> list[int]:
    return [index for index in range(1, len(case)) if case[index] is not None]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(
    ("block", "depth", "columns", "zeros"),
    [
        (16, 48, 5, "none"),
        (16, 37, 9, "packed"),
        (32, 96, 4, "packed"),
        (32, 70, 7, "floats"),
        (64, 200, 6, "none"),
        (128, 129, 3, "packed"),
        (256, 300, 8, "floats"),
    ],
)
def test_bits_and_blocks(bits, block, depth, columns, zeros):
    zeros = "packed" if (bits, zeros) == (8, "floats") else zeros  # which ONNX Runtime does not take
    first, attributes = operands((2, 3), depth, columns, bits, block, zeros)
    second = [RANDOM.standard_normal((1, 1, depth)).astype(np.float32), *first[1:]]
    third = [RANDOM.standard_normal((3, 7, depth)).astype(np.float32), *first[1:]]
    compare("MatMulNBits", first, second, third, fixed=fixed_of(first), tolerance=3e-5, **attributes)


@pytest.mark.parametrize("level", [0, 1, 2, 4])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_accuracy_levels_and_half_precision(level, dtype):
    """At level 4 ONNX Runtime rounds A to 8 bits; here nothing is rounded."""
    case, attributes = operands((5,), 64, 8, 4, 32, "packed", dtype)
    tolerance = 3e-2 if level == 4 else TOLERANCES[dtype]
    compare("MatMulNBits", case, fixed=fixed_of(case), tolerance=tolerance, accuracy_level=level, **attributes)


def test_a_bias_flat_scales_and_weights_that_are_inputs():
    case, attributes = operands((2,), 40, 6, 4, 16, "packed")
    bias = RANDOM.standard_normal(6).astype(np.float32)
    compare("MatMulNBits", [*case, None, bias], fixed=(1, 2, 3, 5), **attributes)
    flat = [case[0], case[1], case[2].reshape(-1), case[3].reshape(-1)]
    compare("MatMulNBits", flat, fixed=(1, 2, 3), **attributes)
    compare("MatMulNBits", case, tolerance=3e-5, **attributes)


def test_a_vector_of_activations_is_one_row():
    case, attributes = operands((), 40, 6, 4, 32, "none")
    model = glowstone.compile(node_model("MatMulNBits", [case], attributes, fixed=(1, 2)))
    matrix = [case[0][None], *case[1:]]
    expected = glowstone.compile(node_model("MatMulNBits", [matrix], attributes, fixed=(1, 2)))
    np.testing.assert_array_equal(model(case[0]), expected(matrix[0])[0])


def test_weights_stay_packed():
    case, attributes = operands((1,), 1024, 512, 4, 32, "packed")
    graph = graph_at_stage(node_model("MatMulNBits", [case], attributes, fixed=(1, 2, 3)), {}, "compiled")
    held = sum(node.operator.tensor.array.nbytes for node in graph.nodes if isinstance(node.operator, Constant))
    packed, per_block = case[1].nbytes, 2 * case[2].nbytes
    assert packed < held <= packed + per_block + 4096


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bits": 3}, "unknown number of bits"),
        ({"block_size": 24}, "unknown length"),
        ({"block_size": 0}, "unknown length"),
        ({"K": 65}, "does not fit attribute K"),
        ({"N": 7}, "packed weights do not fit|number of elements"),
        ({"weight_prepacked": 1}, "attribute weight_prepacked"),
        ({"block_size": None}, "attribute block_size is missing"),
    ],
)
def test_refusals(changes, message):
    case, attributes = operands((2,), 64, 6, 4, 32, "none")
    given = {name: value for name, value in {**attributes, **changes}.items() if value is not None}
    with pytest.raises(glowstone.GlowstoneError, match=message) as caught:
        glowstone.compile(node_model("MatMulNBits", [case], given, fixed=(1, 2)))
    assert caught.value.node == "the node"


def test_permuted_groups_are_refused():
    case, attributes = operands((2,), 64, 6, 4, 32, "none")
    groups = np.arange(64, dtype=np.int32) // 32
    with pytest.raises(glowstone.UnsupportedError, match="g_idx"):
        glowstone.compile(node_model("MatMulNBits", [[*case, groups]], attributes, fixed=(1, 2, 4)))


def test_the_model_is_small_on_disk_as_well(tmp_path):
    """Weights from a file, as an exporter leaves them."""
    case, attributes = operands((1,), 256, 64, 4, 32, "none")
    path = tmp_path / "model.onnx"
    onnx.save(node_model("MatMulNBits", [case], attributes, fixed=(1, 2)), path)
    assert path.stat().st_size < 256 * 64
    assert glowstone.compile(path)(case[0]).shape == (1, 64)
