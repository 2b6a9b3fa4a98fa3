"""Folders for what is only passed on: gone with the block, and after a kill with the next such folder."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onboard.domain.temporary import remove_abandoned, temporary_folder

LONG_AGO = time.time() - 3600
PROGRAM = (
    "import sys, time; from pathlib import Path\n"
    "from onboard.domain.temporary import temporary_folder\n"
    "with temporary_folder('onboard-shard-', Path(sys.argv[1])) as folder:\n"
    "    (folder / 'rows.jsonl').write_bytes(b'x' * 4096)\n"
    "    print(folder, flush=True)\n"
    "    time.sleep(600)\n"
)


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The folder of a process that was ended by kill -9 an hour ago."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM, tmp_path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        os.utime(folder, (LONG_AGO, LONG_AGO))
        remove_abandoned(tmp_path, "onboard-shard-")
        assert folder.is_dir()  # it is held
        process.kill()
    return folder


def test_a_killed_process_leaves_nothing_to_the_next_one(killed: Path, tmp_path: Path) -> None:
    assert (killed / "rows.jsonl").is_file()
    with temporary_folder("onboard-shard-", tmp_path) as folder:
        assert not killed.exists()
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_what_is_held_young_of_another_kind_or_a_link_stays(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    (tmp_path / "onboard-shard-link").symlink_to(elsewhere)
    (tmp_path / "onboard-shard-young").mkdir()
    (tmp_path / "other").mkdir()
    os.utime(tmp_path / "other", (LONG_AGO, LONG_AGO))
    with temporary_folder("onboard-shard-", tmp_path) as first:
        os.utime(first, (LONG_AGO, LONG_AGO))
        with temporary_folder("onboard-shard-", tmp_path) as second:
            assert first.is_dir()
            assert second != first
    assert {path.name for path in tmp_path.iterdir()} == {
        "elsewhere", "onboard-shard-link", "onboard-shard-young", "other",
    }  # fmt: skip
    assert (elsewhere / "kept").is_dir()
