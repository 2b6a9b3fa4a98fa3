"""Who publishes while a task is deleted is waited for, and what it published is found."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from support.real_jobs import Desk, opinions

from bench.harness.services import wait_until
from onboard.bases import Base
from onboard.hypernetworks.register import register_base
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore
from onboard.versions.delete import delete_task


@pytest.mark.services
def test_what_is_published_from_a_task_while_it_is_deleted_is_named_and_rebuilt(
    postgres_url: str, tiny_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few_steps: None
) -> None:
    settings = Settings(home=tmp_path, base=str(tiny_base.folder))
    services = Services(settings, Database(postgres_url), ArtifactStore(str(tmp_path / "artifacts")), "cpu")
    register_base(services, tiny_base)
    desk = Desk(services, tmp_path)
    desk.learn(opinions(24, ("x", "y"), start=8), "gone", init="random")
    desk.submit(opinions(24), "child", init="gone")
    publish, deletion = VersionRepository.publish, {}

    def delete() -> None:
        deletion.update(delete_task(services, "gone", unlearning=True).to_document().to_json())

    deleting = threading.Thread(target=delete)

    def published(self: VersionRepository, *given: Any, **more: Any) -> Any:
        result = publish(self, *given, **more)
        deleting.start()
        wait_until(lambda: waits_for_a_lock(services), 30, "the deletion to wait")
        return result

    monkeypatch.setattr(VersionRepository, "publish", published)
    desk.run(desk.claim())
    deleting.join(30)
    assert [version["version"] for version in deletion["descendants"]["versions"]] == ["child@v1"]
    assert [rebuilt["versions"] for rebuilt in deletion["unlearning"]["rebuilding"]] == [["child@v1"]]
    services.close()


def waits_for_a_lock(services: Services) -> bool:
    with services.database.read() as session:
        return bool(session.scalar(text("SELECT count(*) FROM pg_locks WHERE NOT granted")))
