"""A base that every user of this machine can read, and homes to use the program in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.program import Place

from onboard.bases import Base


@pytest.fixture(scope="session")
def open_base(tiny_base: Base) -> Iterator[Path]:
    """The base where every user of this machine can read it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copytree(tiny_base.folder, Path(folder) / "base"))


@pytest.fixture
def elsewhere(tmp_path: Path, open_base: Path) -> Iterator[Place]:
    """An empty home."""
    place = Place(tmp_path / "elsewhere", open_base)
    place.folder.mkdir()
    yield place
    place.leave()
