"""Train the digit classifier that the package ships, on the digits that scikit-learn bundles.

Usage: python scripts/train_digits.py [FOLDER]

Needs NumPy, onnx and scikit-learn (for its data alone). Writes `digits.onnx` and `digits_test.npz`, the images held
back with their labels, into FOLDER, by default the `examples` folder of the package. The seed is fixed and NumPy does
all arithmetic, so one machine makes one file; another may differ in last places.

The network: two 3 x 3 convolutions with ReLU, a 2 x 2 maximum pool, one matrix product, softmax.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

SEED = 20
EPOCHS = 60
BATCH = 64
STEP = 2e-3
"""Step of Adam at the first epoch; it falls to nothing along half a cosine."""
HELD_BACK = 360
"""Images for the test, a fifth of all."""
LARGEST_PIXEL = 16.0
CHANNELS = (16, 32)
CLASSES = 10
EXTENT = 8
OPSET = 17
LEAST_ACCURACY = 0.97

Array = np.ndarray[Any, np.dtype[Any]]
Parameters = dict[str, Array]


def main() -> int:
    """Train, test, write; 1 where the test accuracy is too low."""
    root = Path(__file__).resolve().parent.parent
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else root / "src" / "glowstone" / "examples"
    images, labels = load_images()
    random = np.random.default_rng(SEED)
    order = random.permutation(len(images))
    test, train = order[:HELD_BACK], order[HELD_BACK:]
    parameters = fit(images[train], labels[train], random)
    accuracy = float((scores(parameters, images[test])[0].argmax(axis=1) == labels[test]).mean())
    print(f"test accuracy {accuracy:.4f} on {HELD_BACK} images")
    if accuracy < LEAST_ACCURACY:
        print(f"less than {LEAST_ACCURACY}", file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "digits.onnx").write_bytes(as_onnx(parameters, accuracy).SerializeToString(deterministic=True))
    held_back = (images[test, 0] * LARGEST_PIXEL).astype(np.uint8)
    np.savez_compressed(folder / "digits_test.npz", images=held_back, labels=labels[test].astype(np.uint8))
    return 0


def load_images() -> tuple[Array, Array]:
    """Images [n, 1, 8, 8] within [0, 1] and their digits."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.images[:, None] / LARGEST_PIXEL).astype(np.float32), data.target.astype(np.int64)


def fit(images: Array, labels: Array, random: np.random.Generator) -> Parameters:
    """Adam on the cross entropy; images are shifted by up to a pixel each time they are seen."""
    parameters = initial_parameters(random)
    means = {name: np.zeros_like(value) for name, value in parameters.items()}
    squares = {name: np.zeros_like(value) for name, value in parameters.items()}
    steps = 0
    for epoch in range(EPOCHS):
        step = STEP * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = random.permutation(len(images))
        for start in range(0, len(images), BATCH):
            chosen = order[start : start + BATCH]
            gradients = cross_entropy_gradients(parameters, shifted(images[chosen], random), labels[chosen])
            steps += 1
            for name, gradient in gradients.items():
                means[name] = 0.9 * means[name] + 0.1 * gradient
                squares[name] = 0.999 * squares[name] + 0.001 * gradient**2
                mean = means[name] / (1 - 0.9**steps)
                deviation = np.sqrt(squares[name] / (1 - 0.999**steps)) + 1e-8
                parameters[name] = (parameters[name] - step * mean / deviation).astype(np.float32)
    return parameters


def initial_parameters(random: np.random.Generator) -> Parameters:
    """Normal weights scaled to keep the variance, biases of zero."""
    first, second = CHANNELS
    features = second * (EXTENT // 2) ** 2
    shapes = {"conv1": (first, 1, 3, 3), "conv2": (second, first, 3, 3), "dense": (features, CLASSES)}
    inputs = {"conv1": 9, "conv2": 9 * first, "dense": features}
    parameters: Parameters = {}
    for name, shape in shapes.items():
        scale = np.sqrt(2 / inputs[name])
        parameters[f"{name}_weights"] = (random.standard_normal(shape) * scale).astype(np.float32)
        parameters[f"{name}_bias"] = np.zeros(CLASSES if name == "dense" else shape[0], np.float32)
    return parameters


def shifted(images: Array, random: np.random.Generator) -> Array:
    """Each image moved by -1, 0 or 1 pixel along both axes."""
    padded = np.pad(images, [(0, 0), (0, 0), (1, 1), (1, 1)])
    moves = random.integers(0, 3, (len(images), 2))
    windows = [
        image[:, down : down + EXTENT, right : right + EXTENT]
        for image, (down, right) in zip(padded, moves, strict=True)
    ]
    return np.stack(windows)


def patches(x: Array) -> Array:
    """The 3 x 3 neighbourhoods of x [n, c, h, w], zero around it: [n, h, w, c * 9]."""
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    n, c, h, w = x.shape
    return np.ascontiguousarray(windows.transpose(0, 2, 3, 1, 4, 5)).reshape(n, h, w, c * 9)


def unpatch(gradient: Array, channels: int) -> Array:
    """The transpose of `patches`: every neighbourhood's gradient added where it came from."""
    n, h, w, _ = gradient.shape
    taps = gradient.reshape(n, h, w, channels, 3, 3)
    padded = np.zeros((n, channels, h + 2, w + 2), np.float32)
    for down in range(3):
        for right in range(3):
            padded[:, :, down : down + h, right : right + w] += taps[..., down, right].transpose(0, 3, 1, 2)
    return padded[:, :, 1:-1, 1:-1]


def scores(parameters: Parameters, images: Array) -> tuple[Array, dict[str, Array]]:
    """Scores before the softmax [n, 10], and what the gradients need."""
    kept: dict[str, Array] = {"patches1": patches(images)}
    first, second = CHANNELS
    hidden = kept["patches1"] @ parameters["conv1_weights"].reshape(first, -1).T + parameters["conv1_bias"]
    kept["active1"] = np.maximum(hidden, 0)
    kept["patches2"] = patches(kept["active1"].transpose(0, 3, 1, 2))
    hidden = kept["patches2"] @ parameters["conv2_weights"].reshape(second, -1).T + parameters["conv2_bias"]
    kept["active2"] = np.maximum(hidden, 0)
    n, half = len(images), EXTENT // 2
    windows = kept["active2"].reshape(n, half, 2, half, 2, second).transpose(0, 1, 3, 5, 2, 4).reshape(n, -1, 4)
    kept["best"] = windows.argmax(axis=2)
    pooled = windows.max(axis=2).reshape(n, half, half, second)
    kept["features"] = pooled.transpose(0, 3, 1, 2).reshape(n, -1)
    return kept["features"] @ parameters["dense_weights"] + parameters["dense_bias"], kept


def cross_entropy_gradients(parameters: Parameters, images: Array, labels: Array) -> Parameters:
    """Gradients of the mean cross entropy by parameter."""
    found, kept = scores(parameters, images)
    n, half, second = len(images), EXTENT // 2, CHANNELS[1]
    chances = np.exp(found - found.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    chances[np.arange(n), labels] -= 1
    chances /= n
    gradients: Parameters = {"dense_weights": kept["features"].T @ chances, "dense_bias": chances.sum(axis=0)}
    features = (chances @ parameters["dense_weights"].T).reshape(n, second, half, half).transpose(0, 2, 3, 1)
    windows = np.zeros((n, half * half * second, 4), np.float32)
    np.put_along_axis(windows, kept["best"][..., None], features.reshape(n, -1, 1), axis=2)
    hidden = windows.reshape(n, half, half, second, 2, 2).transpose(0, 1, 4, 2, 5, 3)
    hidden = hidden.reshape(n, EXTENT, EXTENT, second) * (kept["active2"] > 0)
    backward = add_convolution_gradients(gradients, parameters, "conv2", hidden, kept["patches2"])
    hidden = unpatch(backward, CHANNELS[0]).transpose(0, 2, 3, 1) * (kept["active1"] > 0)
    add_convolution_gradients(gradients, parameters, "conv1", hidden, kept["patches1"])
    return gradients


def add_convolution_gradients(
    gradients: Parameters, parameters: Parameters, name: str, hidden: Array, neighbourhoods: Array
) -> Array:
    """Enter the gradients of a convolution's weights and bias; returns that of its neighbourhoods."""
    weights = parameters[f"{name}_weights"]
    flat = hidden.reshape(-1, len(weights))
    gradients[f"{name}_weights"] = (flat.T @ neighbourhoods.reshape(len(flat), -1)).reshape(weights.shape)
    gradients[f"{name}_bias"] = flat.sum(axis=0)
    return (flat @ weights.reshape(len(weights), -1)).reshape(neighbourhoods.shape)


def as_onnx(parameters: Parameters, accuracy: float) -> ModelProto:
    """The network as an ONNX model: image [n, 1, 8, 8] within [0, 1] to probabilities [n, 10]."""
    nodes = [
        helper.make_node("Conv", ["image", "conv1_weights", "conv1_bias"], ["sums1"], "conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["sums1"], ["active1"], "relu1"),
        helper.make_node("Conv", ["active1", "conv2_weights", "conv2_bias"], ["sums2"], "conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["sums2"], ["active2"], "relu2"),
        helper.make_node("MaxPool", ["active2"], ["pooled"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["pooled"], ["features"], "flatten"),
        helper.make_node("Gemm", ["features", "dense_weights", "dense_bias"], ["scores"], "dense"),
        helper.make_node("Softmax", ["scores"], ["probabilities"], "softmax", axis=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 1, EXTENT, EXTENT])
    probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["n", CLASSES])
    weights = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in parameters.items()]
    graph = helper.make_graph(nodes, "digits", [image], [probabilities], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    model.doc_string = "A digit classifier, trained on the digits bundled with scikit-learn (UCI, CC BY 4.0)."
    helper.set_model_props(model, {"test_accuracy": f"{accuracy:.4f}", "labels": "\n".join(map(str, range(CLASSES)))})
    checker.check_model(model, full_check=True)
    return model


if __name__ == "__main__":
    sys.exit(main())
