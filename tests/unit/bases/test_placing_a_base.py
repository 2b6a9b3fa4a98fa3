"""A base comes into a folder whole or not at all, and never over something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.refusals import refused

from onboard.bases import folder_digest
from onboard.bases.placing import place_base
from onboard.errors import DamagedError


def fill(folder: Path) -> None:
    folder.mkdir()
    (folder / "base.json").write_text("{}", encoding="utf-8")


@pytest.fixture
def digest(tmp_path: Path) -> str:
    fill(tmp_path / "original")
    return folder_digest(tmp_path / "original")


def refuse(folder: Path) -> None:
    raise AssertionError(f"{folder} is not to be filled")


def test_a_base_that_lies_there_already_is_not_fetched_again(tmp_path: Path, digest: str) -> None:
    assert place_base(tmp_path / "base", digest, fill) == tmp_path / "base"
    assert place_base(tmp_path / "base", digest, refuse) == tmp_path / "base"
    assert folder_digest(tmp_path / "base") == digest


def test_something_else_is_never_replaced(tmp_path: Path, digest: str) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "mine.txt").write_text("hours of work", encoding="utf-8")
    with refused("base-folder-occupied"):
        place_base(tmp_path / "base", digest, refuse)
    assert [path.name for path in (tmp_path / "base").iterdir()] == ["mine.txt"]


def test_other_bytes_and_half_a_base_leave_nothing(tmp_path: Path, digest: str) -> None:
    def other(folder: Path) -> None:
        fill(folder)
        (folder / "more").write_bytes(b"evil")

    def half(folder: Path) -> None:
        fill(folder)
        raise OSError(28, "No space left on device")

    with pytest.raises(DamagedError):
        place_base(tmp_path / "base", digest, other)
    with pytest.raises(OSError, match="No space left"):
        place_base(tmp_path / "base", digest, half)
    assert [path.name for path in tmp_path.iterdir()] == ["original"]


def test_what_an_interrupted_try_left_does_no_harm(tmp_path: Path, digest: str) -> None:
    (tmp_path / ".base.part").mkdir()
    (tmp_path / ".base.part" / "left").write_bytes(b"old")
    place_base(tmp_path / "base", digest, fill)
    assert folder_digest(tmp_path / "base") == digest
