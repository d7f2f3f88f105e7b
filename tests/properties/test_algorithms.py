"""Every algorithm of convolutions and products with every epilogue on odd shapes, against ONNX Runtime.

Shapes are drawn by hypothesis. Each algorithm is forced where the rules would take another; the test prints what it
covered and fails where a pair of algorithm and epilogue, or an odd value, was never met.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from glowstone.api.compilation import Request, compile_request
from glowstone.backends.cpu.target import Target
from glowstone.backends.cpu.tuning import DIRECT, WINOGRAD, ConvolutionCase, ConvolutionChoice, Tuning

CHANNELS = (1, 3, 17, 65)
WIDTHS = (1, 5, 13)
EXAMPLES = 4
TOLERANCE = 3e-5
"""Of the largest value: what Winograd's algorithm is allowed; all others are far below."""
SSE = "x86_64-unknown-linux-gnu/x86-64-v2"


@dataclass(frozen=True)
class Shape:
    """One convolution."""

    inputs: int
    outputs: int
    groups: int
    kernel: tuple[int, int]
    stride: int
    dilation: int
    pads: tuple[int, int, int, int]
    height: int
    width: int

    @property
    def result(self) -> tuple[int, int]:
        """Extents of the output."""
        window = [(extent - 1) * self.dilation + 1 for extent in self.kernel]
        padded = (self.height + self.pads[0] + self.pads[2], self.width + self.pads[1] + self.pads[3])
        height, width = ((extent - size) // self.stride + 1 for extent, size in zip(padded, window, strict=True))
        return height, width

    @property
    def is_valid(self) -> bool:
        return min(self.result) >= 1


@dataclass(frozen=True)
class Algorithm:
    """How shapes are drawn, and the word that the report has for what is to run."""

    word: str
    inputs: tuple[int, ...] = CHANNELS
    outputs: tuple[int, ...] = CHANNELS
    kernels: tuple[tuple[int, int], ...] = ((1, 1), (3, 3), (2, 3))
    strides: tuple[int, ...] = (1, 2, 3)
    dilations: tuple[int, ...] = (1, 2)
    groups: Callable[[int], int] = lambda inputs: 1
    outputs_follow: bool = False
    choice: str = DIRECT


ALGORITHMS = {
    "direct": Algorithm("BlockedConvolution", inputs=(17, 65, 5), kernels=((3, 3), (2, 3), (1, 3))),
    "direct 1x1": Algorithm("BlockedConvolution", inputs=(17, 65, 5), kernels=((1, 1),), dilations=(1,)),
    "few channels": Algorithm("StemConvolution", inputs=(1, 3, 4), kernels=((3, 3), (7, 7), (1, 2))),
    "grouped": Algorithm(
        "BlockedConvolution", inputs=(16, 48), outputs=(16, 80), groups=lambda inputs: 2, kernels=((1, 1), (3, 3))
    ),
    "depthwise": Algorithm(
        "DepthwiseConvolution",
        inputs=(3, 17, 65),
        groups=lambda inputs: inputs,
        outputs_follow=True,
        kernels=((3, 3), (5, 5), (1, 3), (7, 7)),
    ),
    "plain": Algorithm(
        "Convolution", inputs=(6, 34), outputs=(2, 34), groups=lambda inputs: 2, kernels=((1, 1), (3, 3))
    ),
    **{
        name: Algorithm(
            "WinogradConvolution", inputs=(5, 17, 65), kernels=((3, 3),), strides=(1,), dilations=(1,), choice=name
        )
        for name in WINOGRAD
    },
}


def shapes(algorithm: Algorithm) -> st.SearchStrategy[Shape]:
    """Odd shapes of an algorithm."""

    @st.composite
    def draw(choose) -> Shape:
        inputs = choose(st.sampled_from(algorithm.inputs))
        kernel = choose(st.sampled_from(algorithm.kernels))
        pad = st.integers(0, max(kernel) - 1)
        return Shape(
            inputs,
            inputs if algorithm.outputs_follow else choose(st.sampled_from(algorithm.outputs)),
            algorithm.groups(inputs),
            kernel,
            choose(st.sampled_from(algorithm.strides)),
            choose(st.sampled_from(algorithm.dilations)),
            choose(st.tuples(pad, pad, pad, pad)),
            choose(st.sampled_from((*WIDTHS, 7, 9))),
            choose(st.sampled_from(WIDTHS)),
        )

    return draw().filter(lambda shape: shape.is_valid)


class Writer:
    """A model of one convolution, and what follows it."""

    def __init__(self, shape: Shape) -> None:
        self.random = np.random.default_rng(sum(shape.pads) + shape.inputs)
        self.shape = shape
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.result = (1, shape.outputs, *shape.result)
        self.inputs = {"x": (1, shape.inputs, shape.height, shape.width)}
        w = self.tensor(shape.outputs, shape.inputs // shape.groups, *shape.kernel)
        self.value = self.node(
            "Conv",
            "x",
            w,
            group=shape.groups,
            strides=[shape.stride] * 2,
            dilations=[shape.dilation] * 2,
            pads=list(shape.pads),
        )

    def tensor(self, *extents: int) -> str:
        name = f"w{len(self.weights)}"
        array = self.random.standard_normal(extents) / np.sqrt(np.prod(extents[1:]))
        array = array.astype(np.float32)  # so that sums are about 1, where no activation is flat
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def scalar(self, value: float) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.array(value, np.float32), name))
        return name

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def model(self) -> onnx.ModelProto:
        self.nodes.append(helper.make_node("Identity", [self.value], ["y"]))
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in self.inputs.items()]
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, self.result)
        graph = helper.make_graph(self.nodes, "case", inputs, [y], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def bias(write: Writer) -> None:
    write.value = write.node("Add", write.value, write.tensor(1, write.shape.outputs, 1, 1))


def residual(write: Writer) -> None:
    bias(write)
    write.inputs["r"] = write.result
    write.value = write.node("Relu", write.node("Add", "r", write.value))


def gate(write: Writer) -> None:
    """One number per channel, as squeeze-and-excite has it."""
    write.inputs["g"] = (1, write.shape.outputs, 1, 1)
    write.value = write.node("Mul", write.value, "g")


def clip(write: Writer) -> None:
    bias(write)
    write.value = write.node("Clip", write.value, write.scalar(-0.5), write.scalar(6.0))


def silu(write: Writer) -> None:
    bias(write)
    write.value = write.node("Mul", write.value, write.node("Sigmoid", write.value))


def activation(kind: str, **attributes: object) -> Callable[[Writer], None]:
    def add(write: Writer) -> None:
        bias(write)
        write.value = write.node(kind, write.value, **attributes)

    return add


EPILOGUES: dict[str, Callable[[Writer], None]] = {
    "none": lambda write: None,
    "bias": bias,
    "relu": activation("Relu"),
    "leaky relu": activation("LeakyRelu", alpha=0.2),
    "clip": clip,
    "silu": silu,
    "hard swish": activation("HardSwish"),
    "gelu": activation("Gelu"),
    "tanh": activation("Tanh"),
    "residual": residual,
    "gate": gate,
}


@dataclass
class Coverage:
    """What was met."""

    pairs: set[str] = field(default_factory=set)
    values: set[str] = field(default_factory=set)
    cases: int = 0

    def note(self, epilogue: str, shape: Shape) -> None:
        self.cases += 1
        self.pairs.add(epilogue)
        is_lopsided = shape.pads[:2] != shape.pads[2:]
        self.values |= {
            f"inputs {shape.inputs}",
            f"outputs {shape.outputs}",
            f"width {shape.width}",
            f"stride {shape.stride}",
            f"dilation {shape.dilation}",
            *(["asymmetric padding"] if is_lopsided else []),
        }

    def holes(self, algorithm: Algorithm) -> list[str]:
        """What should have been met and was not."""
        wanted = {f"inputs {count}" for count in algorithm.inputs} | {f"width {width}" for width in WIDTHS}
        wanted |= set() if algorithm.outputs_follow else {f"outputs {count}" for count in algorithm.outputs}
        wanted |= {f"stride {step}" for step in algorithm.strides} | {
            f"dilation {step}" for step in algorithm.dilations
        }
        if max(map(max, algorithm.kernels)) > 1:
            wanted.add("asymmetric padding")
        return sorted((set(EPILOGUES) - self.pairs) | (wanted - self.values))


def run(algorithm: Algorithm, epilogue: str, shape: Shape, target: str) -> None:
    write = Writer(shape)
    EPILOGUES[epilogue](write)
    proto = write.model()
    case = ConvolutionCase(
        shape.inputs,
        shape.outputs,
        shape.groups,
        shape.kernel,
        (shape.stride, shape.stride),
        (shape.dilation, shape.dilation),
        1,
        *shape.result,
    )
    blocks = 1 + shape.width % 3
    tuning = Tuning({case: ConvolutionChoice(algorithm.choice, blocks)})
    options = {"skip_passes": ["shrink_convolutions"]}  # so that the window is the one drawn
    model = compile_request(Request(proto, tuning=tuning, target=target, threads=1, options=options))
    used = [one["algorithm"] for one in model.report()["instructions"]]
    assert any(one.startswith(algorithm.word) for one in used), (used, shape)
    inputs = {name: write.random.standard_normal(size).astype(np.float32) for name, size in write.inputs.items()}
    (found,) = model.run(inputs).values()
    (expected,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    assert np.abs(found - expected).max() <= TOLERANCE * max(np.abs(expected).max(), 1.0), shape


def draw_and_run(algorithm: Algorithm, epilogue: str, coverage: Coverage) -> None:
    @seed(zlib.crc32(f"{algorithm.word} {epilogue}".encode()))
    @settings(max_examples=EXAMPLES, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(shape=shapes(algorithm))
    def check(shape: Shape) -> None:
        run(algorithm, epilogue, shape, "host")
        coverage.note(epilogue, shape)

    check()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_epilogue_on_odd_shapes(name, capsys):
    algorithm, coverage = ALGORITHMS[name], Coverage()
    for epilogue in EPILOGUES:
        draw_and_run(algorithm, epilogue, coverage)
    holes = coverage.holes(algorithm)
    with capsys.disabled():
        met = ", ".join(sorted(coverage.values))
        sys.stdout.write(f"\n{name}: {coverage.cases} cases, {len(coverage.pairs)} epilogues, {met}\n")
    assert not holes


@pytest.mark.skipif(not Target.host().triple.startswith("x86_64"), reason="a level of another architecture")
@pytest.mark.parametrize("name", ALGORITHMS)
def test_narrow_vectors(name):
    """SSE4.2: one shape for each way in which an epilogue works."""
    algorithm = ALGORITHMS[name]
    kernel = algorithm.kernels[0]
    inputs = algorithm.inputs[0]
    outputs = inputs if algorithm.outputs_follow else algorithm.outputs[-1]
    stride = algorithm.strides[-1]
    shape = Shape(inputs, outputs, algorithm.groups(inputs), kernel, stride, 1, (0, 0, kernel[0] - 1, 0), 9, 13)
    for number, epilogue in enumerate(("none", "silu", "residual", "gate")):
        run(algorithm, epilogue, replace(shape, width=13 + number), SSE)
