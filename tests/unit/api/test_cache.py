"""The cache of models: what a hit needs, what damage, strangers and full disks do, and when a file is read again."""

from __future__ import annotations

import json
import os
import stat

import numpy as np
import pytest
from helpers.models import save_matrix_product, save_small_convolution
from helpers.processes import run_python

import glowstone
from glowstone.api.digest_index import file_state, known_digest, remember_digest
from glowstone.runtime.cache import HEADER_BYTES, LARGE_BYTES, Cache

_COMPILE = """
import json, sys
import numpy as np
import glowstone
model = glowstone.compile(sys.argv[1], shapes={"x": (1, 3, 48, 20)})
y = model(np.ones((1, 3, 48, 20), np.float32))
compiler = {"onnx", "llvmlite", "glowstone.compiler", "glowstone.ops", "glowstone.graph", "glowstone.lir"}
print(json.dumps({"sum": float(y[0, 0].sum()), "imported": sorted(compiler & set(sys.modules))}))
"""


def test_a_hit_needs_neither_compiler_nor_onnx_nor_llvm(tmp_path):
    model = str(save_small_convolution(tmp_path / "model.onnx"))
    environment = {"GLOWSTONE_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (json.loads(run_python(_COMPILE, model, environment=environment)) for _ in range(2))
    assert {"onnx", "llvmlite", "glowstone.ops"} <= set(first["imported"])
    assert second["imported"] == []
    assert second["sum"] == first["sum"]


def test_another_shape_of_a_model_from_the_cache(tmp_path):
    path = save_small_convolution(tmp_path / "model.onnx")
    options = {"cache_dir": str(tmp_path / "cache")}
    compiled, loaded = (glowstone.compile(path, shapes={"x": (1, 3, 48, 20)}, options=options) for _ in range(2))
    x = np.random.default_rng(0).standard_normal((2, 3, 48, 33)).astype(np.float32)
    np.testing.assert_array_equal(loaded(x), compiled(x))
    assert loaded.report()["counters"]["kernels_compiled"] == 0
    assert loaded.report()["instructions"] == compiled.report()["instructions"]


@pytest.fixture
def cache(tmp_path) -> Cache:
    made = Cache.open(tmp_path / "cache", 1 << 20)
    assert made is not None
    return made


def test_entries_come_back_whatever_their_parts(cache):
    content = np.random.default_rng(0).bytes(300_000)
    cache.put("whole", content)
    cache.put("parts", content[:64], content[64:131_136], content[131_136:])
    assert bytes(cache.get("whole")) == bytes(cache.get("parts")) == content
    assert cache.get("nothing") is None


@pytest.mark.parametrize("place", [0, 9, HEADER_BYTES, HEADER_BYTES + 70_001, -1])
def test_a_damaged_entry_is_dropped(cache, tmp_path, place):
    cache.put("entry", np.random.default_rng(1).bytes(100_003))
    path = tmp_path / "cache" / "entry"
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= 1
    path.write_bytes(damaged)
    assert cache.get("entry") is None
    assert not path.exists()


def test_a_cut_entry_is_dropped(cache, tmp_path):
    cache.put("entry", bytes(1000))
    path = tmp_path / "cache" / "entry"
    path.write_bytes(path.read_bytes()[:500])
    assert cache.get("entry") is None


def test_the_oldest_entries_go_and_mapped_ones_stay_readable(tmp_path):
    cache = Cache.open(tmp_path / "cache", 3000)
    cache.put("old", b"o" * 1000)
    mapped = cache.get("old")
    os.utime(tmp_path / "cache" / "old", (1, 1))
    cache.put("new", b"n" * 2500)
    assert cache.get("old") is None
    assert bytes(mapped) == b"o" * 1000


def test_a_folder_open_to_others_is_not_used(tmp_path):
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with pytest.warns(RuntimeWarning, match="not private"):
        assert Cache.open(folder, 1000) is None
    path = save_matrix_product(tmp_path / "model.onnx", 2, 3, 4)
    with pytest.warns(RuntimeWarning, match="not private"):
        model = glowstone.compile(path, options={"cache_dir": str(folder)})
    assert model(np.ones((2, 3), np.float32)).shape == (2, 4)
    assert list(folder.iterdir()) == []


def test_a_new_folder_is_private(tmp_path):
    assert Cache.open(tmp_path / "deep" / "cache", 1000) is not None
    assert stat.S_IMODE((tmp_path / "deep" / "cache").stat().st_mode) == 0o700


def test_a_file_in_the_way_is_a_warning(tmp_path):
    (tmp_path / "cache").write_text("no folder")
    with pytest.warns(RuntimeWarning, match="cannot be used"):
        assert Cache.open(tmp_path / "cache", 1000) is None


def test_digests_are_believed_only_of_settled_files(cache, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    remember_digest(path, "digest", file_state(path), cache)
    assert known_digest(path, cache) is None, "written a moment ago"


def test_digests_of_settled_files(cache, tmp_path, monkeypatch):
    monkeypatch.setattr("glowstone.api.digest_index.SETTLED_NANOSECONDS", -1)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"one")
    remember_digest(path, "digest", file_state(path), cache)
    assert known_digest(path, cache) == "digest"
    path.write_bytes(b"two")
    assert known_digest(path, cache) is None


def test_a_changed_file_is_compiled_again(tmp_path):
    options = {"cache_dir": str(tmp_path / "cache")}
    x = np.ones((2, 3), np.float32)
    path = save_matrix_product(tmp_path / "model.onnx", 2, 3, 4)
    first = glowstone.compile(path, options=options)(x)
    save_matrix_product(path, 2, 3, 4, scale=2.0)
    np.testing.assert_allclose(glowstone.compile(path, options=options)(x), 2 * first, rtol=1e-6)


@pytest.mark.parametrize("size", [LARGE_BYTES // 2, LARGE_BYTES + 24])
def test_entries_of_any_size_are_whole_and_read_only(size, tmp_path):
    """Large ones are read, small ones mapped; damage of either is found."""
    folder = tmp_path / "entries"
    cache = Cache.open(folder, 1 << 40)
    content = np.random.default_rng(size).integers(256, size=size, dtype=np.uint8)
    cache.put("entry", content.data)
    found = cache.get("entry")
    assert found.readonly
    np.testing.assert_array_equal(np.frombuffer(found, np.uint8), content)
    with (folder / "entry").open("r+b") as file:
        file.seek(size // 2)
        file.write(bytes([content[size // 2 - HEADER_BYTES] ^ 1]))
    assert cache.get("entry") is None
