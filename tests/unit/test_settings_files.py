"""Settings in secret files: what is too secret for the environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from onboard.settings import Settings

URL = "postgresql://onboard:hunter2@db/onboard"


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    monkeypatch.setenv("ONBOARD_SECRETS_DIR", str(folder))
    return folder


def test_a_file_named_like_a_variable_sets_it(secrets: Path) -> None:
    (secrets / "onboard_database_url").write_text(URL + "\n")
    (secrets / "onboard_broker_url").write_text("redis://cache/0")
    (secrets / "postgres_password").write_text("not ours")
    settings = Settings()
    assert (settings.database_url, settings.broker_url) == (URL, "redis://cache/0")
    assert not settings.embedded


def test_the_environment_wins_over_a_file(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (secrets / "onboard_database_url").write_text(URL)
    monkeypatch.setenv("ONBOARD_DATABASE_URL", "postgresql://other/onboard")
    assert Settings().database_url == "postgresql://other/onboard"


def test_a_folder_that_is_not_there_has_no_secrets(secrets: Path) -> None:
    secrets.rmdir()
    assert Settings().embedded


_AS_NOBODY = """
import os
from onboard.errors import NotAllowedError
from onboard.settings import Settings
os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    print(Settings().embedded)
except NotAllowedError as error:
    print(error.message, error.remedy)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be someone else")
@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "said"), [(0o755, 0o600, "Let that user read the file"), (0o700, 0o644, "True")]
)
def test_a_secret_of_someone_else_is_told_and_a_folder_of_someone_else_is_none_of_ours(
    folder_mode: int, file_mode: int, said: str
) -> None:
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)
        folder = Path(outer) / "secrets"
        folder.mkdir()
        (folder / "onboard_database_url").write_text(URL)
        (folder / "onboard_database_url").chmod(file_mode)
        folder.chmod(folder_mode)
        done = subprocess.run(
            [sys.executable, "-c", _AS_NOBODY], env={"ONBOARD_SECRETS_DIR": str(folder), "HOME": outer},
            capture_output=True, text=True, check=False, cwd=outer,
        )  # fmt: skip
    assert said in done.stdout, done.stderr
    assert "hunter2" not in done.stdout
