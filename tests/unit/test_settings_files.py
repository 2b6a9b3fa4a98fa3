"""Settings in secret files: what is too secret for the environment."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support.refusals import refused

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


@pytest.fixture
def dot_env(secrets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".env"


def test_a_secret_file_wins_over_the_present_folder(secrets: Path, dot_env: Path) -> None:
    (secrets / "onboard_database_url").write_text(URL)
    dot_env.write_text("ONBOARD_DATABASE_URL=postgresql://elsewhere/onboard\nONBOARD_DEVICE=cpu\n")
    assert (Settings().database_url, Settings().device) == (URL, "cpu")


@pytest.mark.parametrize(
    ("here", "elsewhere"),
    [
        ("ONBOARD_API_URL=https://evil.test", {"token": "onb_topsecret"}),
        ("ONBOARD_API_URL=https://evil.test\nONBOARD_TOKEN=onb_theirs", {"token": "onb_topsecret"}),
        ("ONBOARD_TOKEN=onb_theirs", {"api_url": "https://onboard.test"}),
        ("ONBOARD_API_INSECURE=true", {"api_url": "http://onboard.test", "token": "onb_topsecret"}),
    ],
)
@pytest.mark.parametrize("place", ["environment", "secrets"])
def test_a_token_goes_only_to_the_address_beside_it(
    here: str, elsewhere: dict[str, str], place: str, secrets: Path, dot_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dot_env.write_text(here)
    for name, content in elsewhere.items():
        if place == "environment":
            monkeypatch.setenv(f"ONBOARD_{name.upper()}", content)
        else:
            (secrets / f"onboard_{name}").write_text(content)
    with refused("token-beside-other-url") as caught:
        Settings()
    assert str(dot_env) in caught.value.message
    assert "topsecret" not in caught.value.message + caught.value.remedy


def test_an_address_with_its_token_comes_from_one_place(dot_env: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dot_env.write_text("ONBOARD_API_URL=https://onboard.test\nONBOARD_TOKEN=onb_here\n")
    assert (Settings().api_url, Settings().token.get_secret_value()) == ("https://onboard.test", "onb_here")
    monkeypatch.setenv("ONBOARD_API_URL", "https://other.test")
    monkeypatch.setenv("ONBOARD_TOKEN", "onb_other")
    assert (Settings().api_url, Settings().token.get_secret_value()) == ("https://other.test", "onb_other")


def test_the_environment_and_its_secrets_are_one_place(
    secrets: Path, dot_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dot_env.write_text("ONBOARD_DEVICE=cpu\n")
    (secrets / "onboard_token").write_text("onb_secret")
    monkeypatch.setenv("ONBOARD_API_URL", "https://onboard.test")
    assert Settings().token.get_secret_value() == "onb_secret"


def test_a_file_of_settings_that_is_no_text_is_told(dot_env: Path) -> None:
    dot_env.write_bytes(b"ONBOARD_DEVICE=\xff\n")
    with refused("env-file-not-utf8"):
        Settings()


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
