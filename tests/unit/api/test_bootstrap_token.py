"""The token that a start of the service takes from a file."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest
from support.refusals import refused as error_of

from onboard.domain.access import Scope
from onboard.operations import access
from onboard.registry.database import Database
from onboard.registry.tokens import TokenRepository
from onboard.settings import SECRETS, Settings

GOOD = "a" * 40


def settings_with(file: Path) -> Settings:
    return Settings(home=file.parent, bootstrap_token_file=file)


def written(file: Path, text: str, mode: int = 0o600) -> Settings:
    file.write_text(text)
    file.chmod(mode)
    return settings_with(file)


def test_a_bootstrap_file_lets_in_and_its_successor_ends_it(database: Database, tmp_path: Path) -> None:
    settings = written(tmp_path / "token", GOOD + "\n")
    access.adopt_bootstrap_token(database, settings)
    access.adopt_bootstrap_token(database, settings)
    assert access.identify(database, GOOD).scopes == frozenset(Scope)
    access.adopt_bootstrap_token(database, written(tmp_path / "token", "b" * 40))
    assert access.identify(database, "b" * 40).name == "bootstrap"
    with error_of("token-not-valid", state="revoked"):
        access.identify(database, GOOD)


def test_a_bootstrap_token_that_was_revoked_by_hand_stays_so(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = written(tmp_path / "token", GOOD)
    access.adopt_bootstrap_token(database, settings)
    access.revoke_token(database, "bootstrap")
    assert caplog.text == ""
    access.adopt_bootstrap_token(database, settings)
    assert "is revoked: write another one to the file" in caplog.text
    with error_of("token-not-valid", state="revoked"):
        access.identify(database, GOOD)


def test_two_starts_at_once_adopt_one_bootstrap_token(database: Database, tmp_path: Path) -> None:
    access.adopt_bootstrap_token(database, written(tmp_path / "earlier", "b" * 40))
    settings = written(tmp_path / "token", GOOD)
    together = threading.Barrier(4)

    def start() -> None:
        together.wait(30)
        access.adopt_bootstrap_token(database, settings)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert access.identify(database, GOOD).name == "bootstrap"
    assert len(access.list_tokens(database, include_ended=True)) == 2


@pytest.mark.services
def test_a_start_that_another_one_overtakes_does_not_revoke_what_that_one_adopted(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(postgres_url)
    settings = written(tmp_path / "token", GOOD)
    find = TokenRepository.find

    def overtaken(self: TokenRepository, digest: str) -> object:
        record = find(self, digest)
        monkeypatch.setattr(TokenRepository, "find", find)
        access.adopt_bootstrap_token(database, settings)
        return record

    monkeypatch.setattr(TokenRepository, "find", overtaken)
    access.adopt_bootstrap_token(database, settings)
    assert access.identify(database, GOOD).name == "bootstrap"
    database.dispose()


@pytest.mark.parametrize(
    "text", ["", "\n", "short", "a" * 31, "a" * 257, "a b" * 20, "ä" * 40, "\0" * 40, "a" * 10_000]
)
def test_a_bootstrap_token_that_could_be_guessed_is_refused(database: Database, tmp_path: Path, text: str) -> None:
    with error_of("token-file-invalid") as refused:
        access.adopt_bootstrap_token(database, written(tmp_path / "token", text))
    assert text.strip() == "" or text.strip() not in refused.value.message


def test_a_bootstrap_file_that_is_not_there_or_no_file_is_said(database: Database, tmp_path: Path) -> None:
    for file in (tmp_path / "nothing", tmp_path):
        with error_of("bootstrap-token-unreadable"):
            access.adopt_bootstrap_token(database, settings_with(file))


def test_a_bootstrap_file_that_everybody_can_read_is_warned_of(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        access.adopt_bootstrap_token(database, written(tmp_path / "token", GOOD, 0o640))
        assert caplog.text == ""
        access.adopt_bootstrap_token(database, written(tmp_path / "token", GOOD, 0o644))
    assert "chmod 600" in caplog.text
    assert GOOD not in caplog.text
    assert SECRETS == "/run/secrets"  # files there are not warned of
