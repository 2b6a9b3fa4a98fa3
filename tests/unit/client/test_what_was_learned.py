"""Tasks, versions, jobs and reports through the client: typed, by name, and written where a program says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fake_service import FakeService, answer
from support.refusals import refused as error_of

from onboard import errors
from onboard.client.answers import digest_of_file
from onboard.domain.job import JobState
from onboard.storage.weights import pack_weights

VERSION: dict[str, Any] = {
    "task": "paws", "version": 2, "labels": ["no", "yes"], "metrics": {"validation": None, "test": {}}, "weak": True,
    "pairs": True, "parent": "mrpc@v1", "hypernetwork_version": 1, "created_at": "2026-01-02T00:00:00Z",
}  # fmt: skip
TASK: dict[str, Any] = {
    "task": "paws", "kind": "classification", "labels": ["no", "yes"], "version": 2, "weak": True, "pairs": True,
    "latest": VERSION,
}  # fmt: skip
JOB: dict[str, Any] = {"job": "0123456789ab", "task": "paws", "state": "succeeded", "version": 2, "weak": True}


def test_tasks_are_listed_and_searched(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", "/v1/tasks"] = answer({"tasks": [TASK], "next": None})
    service.routes["GET", "/v1/tasks/paws"] = answer({**TASK, "aliases": {"latest": 2}})
    client = service.client(tmp_path)
    (task,) = client.tasks()
    assert (task.name, task.labels, task.version, task.weak, task.pairs) == ("paws", ("no", "yes"), 2, True, True)
    client.tasks(metric="accuracy", at_least=0.8)
    assert dict(service.requests[-1].url.params) == {"metric": "accuracy", "at_least": "0.8", "limit": "200"}
    with error_of("unknown-metric-of-search", metric="accurracy"):
        client.tasks(metric="accurracy")
    assert client.task("paws").aliases == {"latest": 2}


def test_versions_say_which_aliases_name_them(service: FakeService, tmp_path: Path) -> None:
    aliases = {"latest": 2, "canary": 2, "production": 1}
    page = {"task": "paws", "aliases": aliases, "versions": [{**VERSION, "version": 1}, VERSION], "next": None}
    service.routes["GET", "/v1/tasks/paws/versions"] = answer(page)
    first, second = service.client(tmp_path).versions("paws")
    assert (first.reference, first.aliases, second.aliases) == ("paws@v1", ("production",), ("canary", "latest"))
    assert (second.init, second.weak, second.pairs) == ("mrpc@v1", True, True)
    assert (second.method, second.stored_bytes) == (None, None)  # of a service of an earlier release


def test_jobs_are_listed_and_a_report_is_read_and_written(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", "/v1/jobs"] = answer({"jobs": [JOB], "next": None})
    service.routes["GET", "/v1/jobs/paws"] = answer(JOB)
    service.routes["GET", "/v1/jobs/0123456789ab/report"] = answer("<html>")
    client = service.client(tmp_path)
    (job,) = client.jobs(["succeeded"])
    assert (job.id, job.state, job.version) == ("0123456789ab", JobState.SUCCEEDED, 2)
    report = client.report("paws")
    assert (report.version, report.weak, report.metrics) == (2, True, None)
    client.report("paws", str(tmp_path / "paws.html"))
    assert "<html>" in (tmp_path / "paws.html").read_text(encoding="utf-8")
    with error_of("report-not-writable"):
        client.report("paws", tmp_path / "nowhere" / "paws.html")


@pytest.mark.parametrize("kind", [str, Path])
def test_files_and_folders_may_be_texts_and_paths(kind: type[Any], service: FakeService, tmp_path: Path) -> None:
    rows = kind(tmp_path / "rows.jsonl")
    Path(rows).write_text('{"text": "a", "label": 1}\n', encoding="utf-8")
    service.routes["POST", "/v1/jobs"] = answer({**JOB, "warning": None, "warnings": []})
    client = service.client(kind(tmp_path))
    client.submit(rows, "paws", validation=rows, test=rows, unlabelled=rows)
    assert service.requests[-1].content.count(b'filename="rows.jsonl"') == 4


@pytest.mark.parametrize(
    ("path", "ask", "missing"),
    [
        ("/v1/tasks", lambda client: client.tasks(), "tasks"),
        ("/v1/tasks/paws", lambda client: client.task("paws"), "task"),
        ("/v1/tasks/paws/versions", lambda client: client.versions("paws"), "versions"),
        ("/v1/jobs", lambda client: client.jobs(), "jobs"),
        ("/v1/jobs/paws", lambda client: client.job("paws"), "job"),
        ("/v1/me", lambda client: client.me(), "name"),
        ("/v1/tokens", lambda client: client.tokens(), "tokens"),
    ],
)
def test_an_answer_that_lacks_a_part_is_told_as_that(
    service: FakeService, tmp_path: Path, path: str, ask: Any, missing: str
) -> None:
    service.routes["GET", path] = answer({"something": "else"})
    with error_of("answer-key-missing", missing=missing, place="service.test") as caught:
        ask(service.client(tmp_path))
    assert "ONBOARD_API_URL" in caught.value.remedy


def test_a_part_of_an_answer_that_lacks_a_part_is_told_as_that(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", "/v1/tasks"] = answer({"tasks": [{"task": "paws"}], "next": None})
    with error_of("answer-key-missing", missing="kind"):
        service.client(tmp_path).tasks()


def test_a_readout_is_fetched_by_its_version_and_verified(tmp_path: Path) -> None:
    service = FakeService()
    promised = {"task": "mood", "version": 3, "readout": digest_of_file(b"readout")}
    service.routes["GET", "/v1/tasks/mood/embeddings/latest"] = lambda _: httpx.Response(200, json=promised)
    file = ("GET", "/v1/tasks/mood/readouts/v3.safetensors")
    service.routes[file] = lambda _: httpx.Response(200, content=b"readout")
    with service.client(tmp_path) as client:
        assert client.readout("mood") == b"readout"
        service.routes[file] = lambda _: httpx.Response(200, content=b"other")
        with pytest.raises(errors.DamagedError):
            client.readout("mood")
        promised["readout"] = None  # type: ignore[assignment]  # as of a version from before
        with error_of("version-without-readout"):
            client.readout("mood")


def test_weights_of_a_version_without_an_embedding_are_fetched_and_verified(tmp_path: Path) -> None:
    service = FakeService()
    promised = {"task": "mood", "version": 3, "method": "compacter", "artifact": digest_of_file(b"weights")}
    document = ("GET", "/v1/tasks/mood/embeddings/latest")
    service.routes[document] = lambda _: httpx.Response(200, json=promised)
    file = ("GET", "/v1/tasks/mood/embeddings/v3.safetensors")
    service.routes[file] = lambda _: httpx.Response(200, content=b"weights")
    with service.client(tmp_path) as client:
        assert client.weights("mood") == b"weights"
        service.routes[file] = lambda _: httpx.Response(200, content=b"other")
        with error_of("received-bytes-differ", part="The weights of mood@v3"):
            client.weights("mood")
        for method, refused in (("hyperformer++", errors.NotFoundError), ("lora-2", errors.InputError)):
            service.routes[document] = answer({**promised, "method": method})
            with pytest.raises(refused):
                client.weights("mood")


def test_a_version_without_an_embedding_is_told_as_that(tmp_path: Path) -> None:
    service = FakeService()
    packed = pack_weights({"weights": np.zeros(2)}, {"format": "onboard-task-weights-1", "method": "linear"})
    headers = {"ETag": f'"{digest_of_file(packed)}"'}
    path = ("GET", "/v1/tasks/mood/embeddings/latest.safetensors")
    service.routes[path] = lambda _: httpx.Response(200, content=packed, headers=headers)
    with service.client(tmp_path) as client, error_of("readout-without-embedding"):
        client.embedding("mood")
