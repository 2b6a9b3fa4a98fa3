"""What is told of an error of the store says why, and not where the store is or how we get there; the log does."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from support.refusals import refused

from onboard.contract.jobs import JobEventDocument, JobFacts
from onboard.domain.job import JobSpec
from onboard.errors import NotAllowedError, NotFoundError, OnboardError
from onboard.registry.events import EventRepository
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.storage.artifacts import digest_of
from onboard.storage.files import Files, errors_in_our_words
from onboard.storage.objects import Objects
from workers.logs import hide_places
from workers.shell import work

PLACE = "s3://inner-bucket/prefix"
REASONS = [
    (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
    (OSError(errno.EIO, "http://minio.internal:9000 did not answer"), "Input/output error"),
    (PermissionError(errno.EACCES, "inner-bucket: key AKIA123 may not"), "Permission denied"),
    (TimeoutError("http://minio.internal:9000"), "cannot be used."),
]
SECRETS = ("inner-bucket", "minio.internal", "AKIA123")


def raised(failure: OSError) -> OnboardError:
    with pytest.raises(OnboardError) as caught, errors_in_our_words(PLACE, "it cannot be stored", "SETTING"):
        raise failure
    return caught.value


def ended(services: Services, failure: Exception) -> tuple[dict[str, Any], str]:
    """The error of a job that met a failure, and all that its document and its events say."""
    with services.database.write() as session:
        job, _ = JobRepository(session).add(JobSpec(task="mood", dataset="sha256:" + "0" * 64))

    def run(*_: object) -> None:
        raise failure

    done = work(services, "w1", ["default"], run)
    assert done is not None
    assert done.error is not None
    with services.database.read() as session:
        events = [JobEventDocument.of(event).to_json() for event in EventRepository(session).list(job.id)]
    return done.error, json.dumps([JobFacts.of_job(done).to_json(), events])


@pytest.mark.parametrize(("failure", "reason"), REASONS)
def test_the_error_of_a_job_keeps_the_reason(services: Services, failure: OSError, reason: str) -> None:
    error, _ = ended(services, raised(failure))
    assert reason in error["message"]
    assert error["remedy"]


@pytest.mark.parametrize(("failure", "reason"), REASONS)
def test_the_error_of_a_job_says_not_where_the_store_is(
    services: Services, failure: OSError, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    _, said = ended(services, raised(failure))
    assert [secret for secret in SECRETS if secret in said] == []
    assert PLACE in caplog.text, reason  # whoever runs the service reads it there


def test_what_nobody_expected_says_not_where_the_store_is(services: Services) -> None:
    home = services.settings.resolved_home
    error, said = ended(services, ValueError(f"{PLACE} and http://minio.internal:9000/x of {home}/artifacts: too odd"))
    assert error["message"] == "ValueError: … and … of …: too odd"
    assert [secret for secret in (*SECRETS, str(home)) if secret in said] == []
    assert "in run" in "".join(error["trace"])


def test_a_dataset_of_the_hub_and_passwords_are_as_they_were(services: Services) -> None:
    assert hide_places("hf://glue/rte password=hush", services.settings) == "hf://glue/rte password=***"


def test_an_artifact_that_is_gone_says_not_where_it_was(services: Services) -> None:
    with refused("artifact-not-in-store", url=str(services.settings.resolved_home / "artifacts")) as caught:
        services.read(digest_of(b"nothing"))
    assert str(services.settings.resolved_home) not in json.dumps(caught.value.outside.to_json())
    assert caught.value.outside.type == "artifact-gone"


def test_a_file_that_is_missing_says_not_where_it_was(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError) as caught:
        Files(str(tmp_path)).read("nothing")
    assert str(tmp_path) not in json.dumps(caught.value.outside.to_json())


def test_a_store_that_may_not_be_written_is_told_to_whoever_runs_it() -> None:
    error = raised(PermissionError(errno.EACCES, "inner-bucket: key AKIA123 may not"))
    assert isinstance(error, NotAllowedError)
    assert (error.data["store"], "ONBOARD" in error.remedy or "SETTING" in error.remedy) == (PLACE, True)


def test_an_object_that_may_not_be_looked_up_is_told_in_our_words_at_the_first_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    one = Objects("memory://bucket/rows.jsonl", "--input")
    monkeypatch.setattr("fsspec.implementations.memory.MemoryFileSystem.info", refuse)
    with refused("store-forbidden", failed="rows.jsonl cannot be looked up"):
        one.look("rows.jsonl")
