"""The program with standard streams as they come in scripts, cron and containers: closed, full, in another encoding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ONBOARD = (sys.executable, "-m", "onboard")
TEXTS = "".join(
    json.dumps({"text": f"row {number} of many ☃", "label": "grün" if number % 2 else "röt 😀", "note": "\ud83d"})
    + "\n"
    for number in range(40)
)


@pytest.fixture
def environment(tmp_path: Path, open_base: Path) -> dict[str, str]:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(TEXTS)
    onboard = {"ONBOARD_HOME": tmp_path / "home", "ONBOARD_BASE": open_base, "ONBOARD_START_WORKER": "false"}
    return {**os.environ, **{name: str(value) for name, value in onboard.items()}, "PYTHONUTF8": "0"}


def shell(command: str, environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    line = command.replace("onboard", " ".join(ONBOARD), 1)
    environment = {**environment, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["sh", "-c", line], env=environment, cwd=folder, capture_output=True, timeout=300, check=False
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "koi8-r"])
def test_what_an_encoding_lacks_is_replaced(encoding: str, environment: dict[str, str], tmp_path: Path) -> None:
    environment["PYTHONIOENCODING"] = encoding
    done = shell("onboard check rows.jsonl --json", environment, tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout.decode(encoding))
    assert "röt 😀" in json.dumps(document, ensure_ascii=False)
    done = shell("onboard check rows.jsonl", environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "text -> label" in done.stdout.decode(encoding)
    done = shell("onboard tasks show nothing", environment, tmp_path)
    assert done.returncode == 3
    assert b"-> " in done.stderr


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
def test_a_closed_stream_harms_neither_the_command_nor_the_database(
    closed: str, environment: dict[str, str], tmp_path: Path
) -> None:
    done = shell(f"onboard submit rows.jsonl {closed}", environment, tmp_path)
    assert done.returncode == 0, done.stderr
    listed = shell("onboard jobs list --json", environment, tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert [job["task"] for job in json.loads(listed.stdout)["jobs"]] == ["rows"]


def test_a_full_output_is_one_sentence_and_a_full_error_stream_none(
    environment: dict[str, str], tmp_path: Path
) -> None:
    for how in ("", " --json"):
        done = shell(f"onboard tasks list{how} > /dev/full", environment, tmp_path)
        assert done.returncode == 5, done.stderr
        assert b"Standard output cannot be written: No space left on device." in done.stderr
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr
    done = shell("onboard tasks show nothing 2> /dev/full", environment, tmp_path)
    assert done.returncode == 3
