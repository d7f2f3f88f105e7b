"""Options: an argument beats the environment, the environment beats the default; what cannot be read is refused."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import pytest

from glowstone.errors import InputError
from glowstone.options import Options, option_table


def test_defaults_hold_in_an_empty_environment():
    assert Options.resolve(None, {}) == Options()


def test_argument_beats_environment_beats_default():
    environment = {"GLOWSTONE_CHECK": "1", "GLOWSTONE_TIME_PASSES": "1"}
    resolved = Options.resolve({"check": False}, environment)
    assert resolved.check is False
    assert resolved.time_passes is True
    assert resolved.dump is None


def test_the_process_environment_is_read(monkeypatch):
    monkeypatch.setenv("GLOWSTONE_SKIP_PASSES", "fold_constants, share_buffers,,fold_constants")
    assert Options.resolve().skip_passes == ("fold_constants", "share_buffers")


@pytest.mark.parametrize(
    ("text", "expected"), [("4096", 4096), ("1k", 1024), ("512M", 512 << 20), ("3g", 3 << 30), ("1t", 1 << 40)]
)
def test_sizes_take_a_suffix(text, expected):
    assert Options.resolve({"memory_limit": text}, {}).memory_limit == expected
    assert Options.resolve(None, {"GLOWSTONE_CACHE_LIMIT": text}).cache_limit_bytes == expected


def test_paths_are_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/somebody")
    assert Options.resolve({"dump": "~/dump"}, {}).dump == Path("/home/somebody/dump")
    assert Options.resolve(None, {"GLOWSTONE_DUMP": ""}).dump is None


@pytest.mark.parametrize("text", ["on", "TRUE", " yes "])
def test_booleans_that_are_true(text):
    assert Options.resolve(None, {"GLOWSTONE_CHECK": text}).check is True


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("check", "perhaps"),
        ("cache_limit_bytes", "many"),
        ("cache_limit_bytes", -1),
        ("cache_limit_bytes", True),
        ("memory_limit", "1.5g"),
        ("dump", 3),
        ("skip_passes", 7),
        ("skip_passes", [7]),
    ],
)
def test_a_value_that_cannot_be_read_is_refused(name, value):
    with pytest.raises(InputError) as caught:
        Options.resolve({name: value}, {})
    assert name in str(caught.value)
    assert repr(value) in str(caught.value)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(InputError) as caught:
        Options.resolve({"chekc": True}, {})
    assert "chekc" in str(caught.value)
    assert all(option.name in str(caught.value) for option in fields(Options))


def test_options_are_frozen_and_hashable():
    with pytest.raises(FrozenInstanceError):
        Options().check = True
    assert len({Options(), Options()}) == 1


def test_every_option_has_its_own_variable_and_help():
    table = option_table()
    variables = [variable for _, variable, _, _ in table]
    assert len(set(variables)) == len(variables) == len(fields(Options))
    assert all(variable.startswith("GLOWSTONE_") and text for _, variable, _, text in table)


def test_the_cache_folder_is_the_users_unless_given(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Options().cache_folder() == tmp_path / "glowstone" / "compiled"
    assert Options(cache_dir=tmp_path / "other").cache_folder() == tmp_path / "other"
