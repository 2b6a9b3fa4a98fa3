"""What a finished job publishes: files with their pins, never changed, numbered rightly even if two publish at once."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from support.real_jobs import Desk, opinions

from onboard.bases import Base
from onboard.hypernetworks.register import register_base
from onboard.pipeline import run as pipeline
from onboard.pipeline.publish import publish
from onboard.registry.database import Database
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.serving import Predictor
from onboard.settings import Settings
from onboard.storage.artifacts import ArtifactStore
from onboard.storage.embedding import unpack_embedding
from onboard.versions.fetch import fetch


def test_the_files_of_a_version_carry_what_was_published(desk: Desk, tiny_services: Services, tiny_base: Base) -> None:
    result = desk.learn(opinions(70), test=opinions(12, start=70), seed=5)
    fetched = fetch(tiny_services, "mood", desk.folder / "fetched")
    with safe_open(fetched.files[0], framework="np") as file:
        facts, z = file.metadata(), file.get_tensor("z")
    version = desk.version("mood@v1")
    assert fetched.version == version
    assert z.dtype == np.float32
    assert z.shape == (16,)
    np.testing.assert_array_equal(z, unpack_embedding(tiny_services.artifacts.get(version.artifact)))
    assert (facts["task"], facts["version"]) == ("mood", "1")
    assert json.loads(facts["labels"]) == ["no", "yes"]
    assert tuple(json.loads(facts["words"])) == version.words
    assert facts["backbone"] == tiny_base.backbone_digest
    assert facts["hypernetwork_version"] == "1"
    stored = tiny_base.folder / "hypernetwork.safetensors"
    assert tiny_services.artifacts.get(facts["hypernetwork"]) == stored.read_bytes()
    assert facts["dataset"] == result["pins"]["dataset"] == version.dataset_digest
    assert json.loads(facts["metrics"]) == result["metrics"]
    assert facts["init"] == result["init"]["chosen"]
    assert json.loads(facts["seeds"]) == [5]
    assert facts["onboard"] == version.code_version
    card = fetched.files[1].read_text(encoding="utf-8")
    assert card.startswith("# mood@v1")
    for pin in (version.embedding_digest, version.backbone_digest, version.dataset_digest, version.job):
        assert str(pin) in card


def test_the_same_job_gives_the_same_embedding_bit_for_bit(desk: Desk) -> None:
    asked = {"init": "sst2"}  # what the probe chooses depends on what else has been learned here
    first, again = desk.learn(opinions(30), "one", **asked), desk.learn(opinions(30)[::-1], "two", **asked)
    other = desk.learn(opinions(30), "three", seed=1, **asked)
    assert first["embedding_digest"] == again["embedding_digest"] != other["embedding_digest"]
    assert first["pins"]["dataset"] == again["pins"]["dataset"]


def test_a_published_version_predicts_the_same_in_a_fresh_process(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    desk.learn(opinions(30))
    inputs = [{"task": task, "text": row["text"]} for row in opinions(10) for task in ("mood", "sst2")]
    here = [answer.to_json() for answer in Predictor(tiny_services).predict(inputs)]
    program = (
        "import json, sys\nfrom onboard.serving import Predictor\n"
        "answers = Predictor(sys.argv[1]).predict(json.load(sys.stdin))\n"
        "print(json.dumps([answer.to_json() for answer in answers]))"
    )
    there = subprocess.run(
        [sys.executable, "-c", program, str(tiny_services.settings.resolved_home)],
        input=json.dumps(inputs), capture_output=True, text=True, check=True, env=_environment(tiny_base),
    )  # fmt: skip
    fresh = json.loads(there.stdout)
    assert [answer["label"] for answer in fresh] == [answer["label"] for answer in here]
    for one, other in zip(here, fresh, strict=True):
        assert other["probability"] == pytest.approx(one["probability"], abs=1e-6)


def _environment(base: Base) -> dict[str, str]:
    return {"ONBOARD_BASE": str(base.folder), "ONBOARD_DEVICE": "cpu", "OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}


def test_nothing_that_was_published_ever_changes(desk: Desk, tiny_services: Services) -> None:
    desk.learn(opinions(30))
    first = desk.version("mood@v1")
    content = tiny_services.artifacts.get(first.artifact)
    desk.learn(opinions(40))
    assert desk.version("mood@v1") == first
    assert tiny_services.artifacts.get(first.artifact) == content
    assert desk.version("mood@v2").embedding_digest != first.embedding_digest


def test_a_job_that_is_overtaken_while_it_publishes_packs_its_number_anew(
    desk: Desk, tiny_services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.submit(opinions(24))
    desk.submit(opinions(26))
    slow, quick = desk.claim(), desk.claim(pid=2)
    store = Services.store
    overtaken: list[str] = []

    def store_late(self: Services, data: bytes, kind: str) -> str:
        if kind == "embedding" and not overtaken:
            overtaken.append(kind)
            desk.run(quick)
        return store(self, data, kind)

    monkeypatch.setattr(Services, "store", store_late)
    result = desk.run(slow).result
    assert result is not None
    assert result["version"] == 2
    _require_right_numbers(desk, tiny_services, {quick.id: 1, slow.id: 2})


@pytest.mark.usefixtures("few_steps")
def test_two_jobs_of_one_task_that_publish_at_once_get_two_numbers_and_files_that_carry_them(
    database: Database, tiny_base: Base, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ArtifactStore(str(tmp_path / "artifacts"))
    services = Services(Settings(home=tmp_path, base=str(tiny_base.folder)), database, store, "cpu")
    register_base(services, tiny_base)
    desk = Desk(services, tmp_path)
    attempts: list[Any] = []
    monkeypatch.setattr(pipeline, "publish", lambda *arguments: attempts.append(arguments))
    for count in (24, 26):
        desk.submit(opinions(count))
        desk.run(desk.claim(pid=count))
    barrier, next_number = threading.Barrier(2, timeout=120), VersionRepository.next_number
    waiting = threading.local()

    def read_at_once(self: VersionRepository, task: str) -> int:
        number = next_number(self, task)
        if not getattr(waiting, "done", False):
            waiting.done = True
            barrier.wait()  # both have read the same number
        return number

    monkeypatch.setattr(VersionRepository, "next_number", read_at_once)
    errors: list[BaseException] = []

    def run(arguments: Any) -> None:
        try:
            publish(*arguments)
        except BaseException as error:  # noqa: BLE001 - a thread's error is the test's
            errors.append(error)

    threads = [threading.Thread(target=run, args=[arguments]) for arguments in attempts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    assert errors == []
    numbers = {job.id: (job.result or {})["version"] for job in desk.jobs()}
    assert sorted(numbers.values()) == [1, 2]
    _require_right_numbers(desk, services, numbers)


def _require_right_numbers(desk: Desk, services: Services, numbers: dict[str, int]) -> None:
    versions = desk.versions("mood")
    assert {version.job: version.version for version in versions} == numbers
    for version in versions:
        path = desk.folder / f"{version.version}.safetensors"
        path.write_bytes(services.artifacts.get(version.artifact))
        with safe_open(path, framework="np") as file:
            assert file.metadata()["version"] == str(version.version)
            assert file.metadata()["dataset"] == version.dataset_digest
