"""The folder of uploads: cleaned of what killed servers left, never of what living ones have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.refusals import refused

from onboard.api.upload_folder import upload_folder

_HOLDER = """
import sys
from pathlib import Path
from onboard.api.upload_folder import upload_folder
with upload_folder(Path(sys.argv[1])) as folder:
    (folder / "half.jsonl").write_text("some ro")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_what_a_killed_server_left_is_removed_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", _HOLDER, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    try:
        killed, living = (Path(str(holder.stdout and holder.stdout.readline()).strip()) for holder in holders)
        holders[0].kill()
        holders[0].wait()
        assert (killed / "half.jsonl").exists()
        with upload_folder(tmp_path) as own:
            assert own.parent == tmp_path / "uploads"
            assert not killed.exists()
            assert (living / "half.jsonl").exists()
        assert not own.exists()
    finally:
        for holder in holders:
            holder.communicate("")
    assert not living.exists()


def test_a_home_that_cannot_be_written_to_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(error: OSError) -> None:
        def mkdtemp(**_: object) -> str:
            raise error

        monkeypatch.setattr("onboard.api.upload_folder.tempfile.mkdtemp", mkdtemp)

    refuse(PermissionError(13, "Permission denied"))
    with refused("upload-folder-forbidden"), upload_folder(tmp_path):
        pass
    refuse(OSError(28, "No space left on device"))
    with refused("uploads-not-stored", reason="No space left on device"), upload_folder(tmp_path):
        pass
