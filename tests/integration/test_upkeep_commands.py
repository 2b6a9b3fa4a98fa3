"""`onboard gc`, `backup` and `restore` as commands: exit codes, one JSON document, and what people read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update
from support.command_line import CommandLine

from onboard.bases import Base
from onboard.domain.task import EmbeddingVersion
from onboard.operations.access import create_token
from onboard.registry.outbox import OutboxRepository
from onboard.registry.services import Services
from onboard.registry.webhook_tables import WebhookDeliveryRow
from onboard.settings import Settings


@pytest.fixture
def onboard(command_line: CommandLine, tiny_base: Base, tmp_path: Path) -> CommandLine:
    """The program; its home is that of `tiny_services`."""
    command_line.at_home(Settings(home=tmp_path / "home", base=str(tiny_base.folder), device="cpu"))
    return command_line


def test_a_service_moves_to_another_home(
    onboard: CommandLine, version: EmbeddingVersion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("predict", "mood@v1", "--text", "good film", "--json")
    before = onboard(*asked).document
    made = onboard("backup", tmp_path / "backup", "--json")
    assert made.code == 0
    assert made.document["rows"]["embedding_versions"] == made.document["rows"]["aliases"]
    assert made.document["copied"]["count"] == made.document["artifacts"]["count"]
    again = onboard("backup", tmp_path / "backup")
    assert "(0 copied" in again.out
    refused = onboard("restore", tmp_path / "backup", "--json")
    assert refused.code == 4
    assert refused.document["error"]["found"]["embedding_versions"] == 1
    monkeypatch.setenv("ONBOARD_HOME", str(tmp_path / "new"))
    restored = onboard("restore", tmp_path / "backup", "--json")
    assert restored.code == 0
    assert restored.document["bases"][0]["folder"]
    assert "warning" not in restored.err
    assert onboard(*asked).document == before
    assert onboard("gc", "--json").document["freed"] == {"count": 0, "bytes": 0}
    monkeypatch.setenv("ONBOARD_HOME", str(tmp_path / "third"))
    monkeypatch.setenv("ONBOARD_BASE", "mini")
    elsewhere = onboard("restore", tmp_path / "backup")
    assert elsewhere.code == 0
    assert "restored as of" in elsewhere.out
    assert "warning: base tiny" in elsewhere.err


def test_lost_bytes_are_told_by_exit_codes(
    onboard: CommandLine, tiny_services: Services, version: EmbeddingVersion, tmp_path: Path
) -> None:
    tiny_services.artifacts.delete(version.artifact)
    collected = onboard("gc", "--json")
    assert collected.code == 1
    assert [artifact["used_by"] for artifact in collected.document["damaged"]] == [["embedding_versions mood 1"]]
    assert "embedding_versions mood 1" in collected.err
    made = onboard("backup", tmp_path / "backup", "--json")
    assert made.code == 1
    assert [artifact["digest"] for artifact in made.document["absent"]] == [version.artifact]
    assert version.artifact in made.err


def test_the_store_of_another_service_is_told_by_an_exit_code(onboard: CommandLine, tiny_services: Services) -> None:
    for number in range(100):
        tiny_services.artifacts.put(bytes([number]), "test")
    assert onboard("gc").code == 0  # they are young
    stored = [path for path in Path(tiny_services.artifacts.url).rglob("*") if path.is_file()]
    for path in stored:
        os.utime(path, (0, 0))
    refused = onboard("gc")
    assert refused.code == 4
    assert "ONBOARD_ARTIFACT_URL" in refused.err
    assert all(path.exists() for path in stored)


def test_a_dry_run_says_what_would_go(onboard: CommandLine, tiny_services: Services) -> None:
    said = onboard("gc", "--dry-run")
    assert said.code == 0
    assert "would be deleted" in said.out


def test_a_restore_says_what_became_of_tokens_and_webhooks(
    onboard: CommandLine,
    version: EmbeddingVersion,
    tiny_services: Services,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_token(tiny_services.database, "reader", ["read"])
    onboard("promote", "mood@v1", "--alias", "production")
    with tiny_services.database.write() as session:
        OutboxRepository(session).address(["a.example.com/1"], 600.0)
    onboard("backup", tmp_path / "backup")
    monkeypatch.setenv("ONBOARD_HOME", str(tmp_path / "new"))
    said = onboard("restore", tmp_path / "backup")
    assert "1 token is revoked" in said.out
    assert "webhooks that had not been delivered will not be sent" in said.out
    assert "tokens" not in said.err
    monkeypatch.setenv("ONBOARD_HOME", str(tmp_path / "third"))
    restored = onboard("restore", tmp_path / "backup", "--keep-tokens", "--send-webhooks", "--json")
    assert {name: restored.document[name] for name in ("revoked_tokens", "kept_tokens", "dropped_webhooks")} == {
        "revoked_tokens": 0, "kept_tokens": 1, "dropped_webhooks": 0,
    }  # fmt: skip
    assert "even if revoked since" in restored.err


def test_a_restore_does_not_speak_of_webhooks_where_nobody_was_told_of_anything(
    onboard: CommandLine, version: EmbeddingVersion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    onboard("promote", "mood@v1", "--alias", "production")
    onboard("backup", tmp_path / "backup")
    monkeypatch.setenv("ONBOARD_HOME", str(tmp_path / "new"))
    assert "webhook" not in onboard("restore", tmp_path / "backup").out


def test_doctor_is_red_while_webhooks_fail_and_for_a_day_after_they_were_given_up(
    onboard: CommandLine, tiny_services: Services
) -> None:
    def seen() -> tuple[int, dict[str, Any]]:
        said = onboard("doctor", "--json")
        (check,) = (finding for finding in said.document["checks"] if finding["what"] == "webhooks")
        return said.code, check

    with tiny_services.database.write() as session:
        outbox = OutboxRepository(session)
        outbox.add("alias.moved", {})
        outbox.address(["a.example.com/1"], 60.0)
        (delivery,) = outbox.due("a.example.com/1")
    code, check = seen()
    assert (code, check["ok"]) == (0, True)
    assert "1 waiting" in check["found"]
    with tiny_services.database.write() as session:
        OutboxRepository(session).failed(delivery, "answered 503", 60.0)
    assert "1 failing, 0 given up, answered 503" in seen()[1]["found"]
    with tiny_services.database.write() as session:
        OutboxRepository(session).failed(delivery, "answered 410", None)
    code, check = seen()
    assert code == 5
    assert "0 failing, 1 given up, answered 410" in check["found"]
    with tiny_services.database.write() as session:
        session.execute(update(WebhookDeliveryRow).values(ended_at=WebhookDeliveryRow.ended_at - 86_400.0))
    assert seen()[0] == 0


@pytest.mark.parametrize("hours", ["0", "0.5", "-1", "soon"])
def test_what_is_younger_than_an_hour_cannot_be_asked_for(
    onboard: CommandLine, tiny_services: Services, hours: str
) -> None:
    assert onboard("gc", "--older-than", hours).code == 2


@pytest.mark.parametrize(("name", "days"), [("JOB", "-1"), ("EVENT", "soon"), ("EVENT", "1.5"), ("AUDIT", "-7")])
def test_a_wrong_retention_names_its_setting(
    onboard: CommandLine, tiny_services: Services, monkeypatch: pytest.MonkeyPatch, name: str, days: str
) -> None:
    monkeypatch.setenv(f"ONBOARD_RETENTION_{name}_DAYS", days)
    said = onboard("gc")
    assert said.code == 2
    assert f"ONBOARD_RETENTION_{name}_DAYS" in said.err


def test_an_empty_retention_is_the_default(
    onboard: CommandLine, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONBOARD_RETENTION_EVENT_DAYS", "")
    assert onboard("gc").code == 0
