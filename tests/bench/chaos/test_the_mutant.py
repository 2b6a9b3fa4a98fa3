"""Without the fence a late writer gets through, and the checker sees what it leaves; with it nothing is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.registry_samples import add_job, claim_job, register_sample_base, sample_task, sample_version

from bench.chaos import __main__ as program
from bench.chaos import mutant
from bench.chaos.checker import DOUBLED, check
from bench.chaos.unfenced import owned_by
from onboard.domain.job import JobState
from onboard.errors import FencedError
from onboard.registry import claims
from onboard.registry.claims import ClaimRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding


def slept(services: Services) -> str:
    """A job whose first attempt wakes when the second one has published, and goes on; its id."""
    register_sample_base(services.database)
    services.store(b"tensors", "hypernetwork")
    job = add_job(services.database, "red").id
    late = claim_job(services.database, "w1", lease_seconds=-1)
    publish(services, claim_job(services.database, "w2").attempt, job)
    with suppress(FencedError), services.database.write() as session:
        assert not ClaimRepository(session).cancel_requested(job, late.attempt)
        ClaimRepository(session).heartbeat(job, late.attempt)
        ClaimRepository(session).append(job, late.attempt, "note", "goes on")
        ClaimRepository(session).finish(job, late.attempt, JobState.FAILED, error={"message": "published already"})
    return job


def publish(services: Services, attempt: int, job: str) -> None:
    z = np.ones(4, np.float32)
    draft = replace(sample_version("red", job=job), version=1, embedding_digest=embedding_digest(z))
    artifact = services.store(pack_embedding(z, embedding_facts(draft, "sha256:0")), "embedding")
    with services.database.write() as session:
        VersionRepository(session).publish(
            replace(draft, artifact=artifact), sample_task("red"), attempt=attempt, result={"state": "succeeded"}
        )


def test_with_the_fence_a_late_writer_leaves_nothing(services: Services) -> None:
    assert check(services, [slept(services)]).violations == []


def test_without_the_fence_the_checker_sees_the_late_writer(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "owned_by", owned_by)
    verdict = check(services, [slept(services)])
    assert verdict.count(DOUBLED) >= 1
    assert {"order", "ended"} <= {violation.kind for violation in verdict.violations}


@contextmanager
def runs(monkeypatch: pytest.MonkeyPatch, by_fence: dict[bool, list[dict[str, str]]]) -> Iterator[None]:
    def run(_name: str, options: Any, _folder: Path, _base: Path) -> dict[str, Any]:
        assert options.asleep
        return {
            "violations": by_fence[options.fence], "faults": {"sleeper": 5}, "late_writers_refused": 3, "seconds": 60.0,
        }  # fmt: skip

    monkeypatch.setattr(mutant, "run", run)
    monkeypatch.setattr(program, "base_for", lambda folder: folder)
    yield


WRONG = [{"kind": "doubled", "what": "job 1 is failed and published 1 versions"}]


@pytest.mark.parametrize(("with_fence", "without", "code"), [([], WRONG, 0), ([], [], 1), (WRONG, WRONG, 1)])
def test_the_program_is_right_where_the_mutant_alone_is_found_wrong(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    with_fence: list[dict[str, str]],
    without: list[dict[str, str]],
    code: int,
) -> None:
    with runs(monkeypatch, {True: with_fence, False: without}):
        assert program.main(["--mutant", "--place", "sqlite", "--work", str(tmp_path)]) == code
    assert ("NOT seen" in capsys.readouterr().out) == bool(code)
    assert (tmp_path / "mutant-sqlite" / "mutant.json").is_file()
