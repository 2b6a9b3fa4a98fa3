"""In a folder where strangers may write too, nothing follows a link that they planted, and answers are not for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from onboard.contract import version_files
from onboard.domain.private import open_new, part_beside
from onboard.serving.bulk.outputs import LocalOutputs, write_whole

MINE = b"a file of the one who runs the command"


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Path]:
    """A folder with links to a file outside of it, under every name that was ever used for half-written files."""
    before = os.umask(0o022)
    victim = tmp_path / "victim"
    victim.write_bytes(MINE)
    folder = tmp_path / "shared"
    folder.mkdir()
    for name in ("embedding.safetensors", "part-000001.jsonl", "card.md"):
        for pattern in (".{}.part", ".{}.1.part", ".{}.unsorted", "{}.part"):
            (folder / pattern.format(name)).symlink_to(victim)
        (folder / name).symlink_to(victim)
    yield folder
    os.umask(before)
    assert victim.read_bytes() == MINE
    assert victim.stat().st_mode & 0o777 == 0o644


def test_what_is_fetched_replaces_a_link_and_does_not_follow_it(shared: Path) -> None:
    for name in ("embedding.safetensors", "card.md"):
        version_files.write_whole(shared / name, b"fetched")
        assert not (shared / name).is_symlink()
        assert (shared / name).read_bytes() == b"fetched"


@pytest.mark.parametrize("attempt", [0, 1])
def test_answers_follow_no_link_and_only_their_owner_reads_them(shared: Path, attempt: int) -> None:
    outputs = LocalOutputs(str(shared))
    name = "part-000001.jsonl"
    write_whole(outputs, name, iter(["answers\n"]), attempt, lambda part: outputs.publish(part, name))
    assert not (shared / name).is_symlink()
    assert (shared / name).read_text() == "answers\n"
    assert (shared / name).stat().st_mode & 0o777 == 0o600
    assert "part-000001.jsonl" in outputs.names()


def test_tensors_follow_no_link(shared: Path) -> None:
    import torch

    from onboard.model.weights import read_tensors, write_tensors

    write_tensors({"z": torch.ones(2)}, shared / "embedding.safetensors", {})
    assert not (shared / "embedding.safetensors").is_symlink()
    assert read_tensors(shared / "embedding.safetensors")[0]["z"].tolist() == [1.0, 1.0]


def test_a_half_written_file_has_another_name_each_time_and_is_never_one_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    assert part_beside(path) != part_beside(path)
    assert part_beside(path).parent == tmp_path
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        open_new(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()
