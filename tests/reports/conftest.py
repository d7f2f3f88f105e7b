"""One new cache for all tests of this folder: kernels that many models share are compiled once."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports") / "cache"


@pytest.fixture(autouse=True)
def _shared_cache(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOWSTONE_CACHE_DIR", str(cache_folder))
