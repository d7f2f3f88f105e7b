"""Inputs from files: NumPy's, raw elements, images."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest

from glowstone import examples
from glowstone.errors import GlowstoneError, InputError, ShapeError
from glowstone.tools.arrays import ALL_INPUTS
from glowstone.tools.images import Frame, Preparation, frame_of, prepare, read_pixels
from glowstone.tools.input_files import InputPort, model_inputs, read_files, read_input, read_inputs

FLOAT = np.dtype(np.float32)
PORT = InputPort("x", ("n", 3, 2, 4), FLOAT)
ANY = np.arange(24, dtype=np.float32).reshape(1, 3, 2, 4)


def test_inputs_as_the_model_declares_them():
    assert model_inputs(examples.DIGITS) == [InputPort("image", ("n", 1, 8, 8), FLOAT)]


def test_npy_and_npz(tmp_path):
    np.save(tmp_path / "x.npy", ANY)
    np.savez(tmp_path / "one.npz", anything=ANY)
    np.savez(tmp_path / "two.npz", x=ANY, z=ANY + 1)
    np.savez(tmp_path / "other.npz", y=ANY, z=ANY)
    for name in ("x.npy", "one.npz", "two.npz"):
        np.testing.assert_array_equal(read_input(PORT, tmp_path / name, None, Preparation()), ANY)
    with pytest.raises(InputError, match="no array 'x'"):
        read_input(PORT, tmp_path / "other.npz", None, Preparation())


def test_one_archive_has_all_inputs(tmp_path):
    np.savez(tmp_path / "all.npz", x=ANY, z=ANY + 1)
    other = InputPort("z", (1, 3, 2, 4), FLOAT)
    arrays = read_files([PORT, other], {ALL_INPUTS: tmp_path / "all.npz"}, {})
    np.testing.assert_array_equal(arrays["z"], ANY + 1)
    with pytest.raises(InputError, match="no input of this name"):
        read_files([PORT], {ALL_INPUTS: tmp_path / "all.npz"}, {})


def test_objects_in_numpy_files_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(InputError, match="no NumPy file"):
        read_input(PORT, tmp_path / "x.npy", None, Preparation())


def test_raw_elements_take_the_open_extent_from_the_length(tmp_path):
    file = tmp_path / "x.bin"
    np.concatenate([ANY, ANY]).astype("<f4").tofile(file)
    assert read_input(PORT, file, None, Preparation()).shape == (2, 3, 2, 4)
    np.testing.assert_array_equal(read_input(PORT, file, (1, 6, 2, 4), Preparation()).ravel(), np.tile(ANY.ravel(), 2))
    open_twice = InputPort("x", ("n", 3, "h", 4), FLOAT)
    for port, shape in ((open_twice, None), (PORT, (1, 3, 2, 4))):
        with pytest.raises(ShapeError, match="does not fit"):
            read_input(port, file, shape, Preparation())


@pytest.mark.parametrize("suffix", ["png", "ppm"])
def test_images_in_both_layouts_and_orders(tmp_path, suffix):
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 3), np.uint8)
    file = tmp_path / f"photo.{suffix}"
    PIL.Image.fromarray(pixels).save(file)
    plain = read_input(PORT, file, None, Preparation())
    np.testing.assert_allclose(plain, pixels.transpose(2, 0, 1)[None] / np.float32(255), rtol=1e-6)
    nhwc = InputPort("x", (1, 2, 4, 3), FLOAT)
    preparation = Preparation(scale=1.0, mean=(1, 2, 3), std=(2, 4, 8), order="BGR", layout="NHWC")
    expected = (pixels[None, ..., ::-1] - np.float32([1, 2, 3])) / np.float32([2, 4, 8])
    np.testing.assert_allclose(read_input(nhwc, file, None, preparation), expected, rtol=1e-6)
    single = InputPort("x", (2, 4, 3), np.dtype(np.uint8))
    np.testing.assert_array_equal(read_input(single, file, None, Preparation(layout="NHWC")), pixels)


def test_jpeg_is_read_and_images_are_scaled_to_the_model(tmp_path):
    file = tmp_path / "photo.jpg"
    PIL.Image.new("RGB", (40, 20), (200, 100, 50)).save(file, quality=95)
    image = read_input(PORT, file, None, Preparation(scale=1.0))
    assert image.shape == (1, 3, 2, 4)
    np.testing.assert_allclose(image.mean(axis=(0, 2, 3)), [200, 100, 50], atol=3)
    assert read_pixels(file, Frame(1, None, None)).shape == (20, 40, 1)


def test_what_is_no_image_is_refused(tmp_path):
    (tmp_path / "broken.png").write_bytes(b"\x89PNG....")
    with pytest.raises(GlowstoneError, match="cannot be read"):
        read_pixels(tmp_path / "broken.png", Frame(3, None, None))
    with pytest.raises(InputError, match="no image"):
        frame_of(("n", 17, 2, 4), "NCHW")
    with pytest.raises(InputError, match="no image"):
        frame_of((3, 4), "NCHW")
    with pytest.raises(InputError, match="another number of channels"):
        prepare([np.zeros((2, 2, 3), np.uint8)], Preparation(mean=(1, 2)), FLOAT)


def test_inputs_without_a_file_are_random_and_names_are_checked(tmp_path):
    np.save(tmp_path / "x.npy", ANY)
    other = InputPort("z", (2, "k"), FLOAT)
    arrays = read_inputs([PORT, other], {"x": tmp_path / "x.npy"}, {"z": (2, 5)})
    assert arrays["z"].shape == (2, 5)
    assert arrays["z"].std() > 0
    with pytest.raises(InputError, match="no input of this name"):
        read_inputs([PORT], {"y": tmp_path / "x.npy"}, {})
    with pytest.raises(InputError, match="is open"):
        read_inputs([PORT, other], {"x": tmp_path / "x.npy"}, {})
