"""Jobs of measured length that compute nothing (`--pipeline bench.fleet.pipeline`).

The stages sleep for as long as `options.sleep` of the job says. Everything else is that of a real job: claim, lease,
heartbeats, events, the version and its file, the end of the job in the transaction that publishes it.

A job with `options.tuning` also tunes and is guarded, and moves the real head if the guard accepts. One job per base
used to tune at a time (`SLOT`); now tunings run side by side, and a step whose head moved is judged again (`MOVED`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bench.harness.deployed import MANY
from onboard.domain.job import LEASE_SECONDS, Job, Stage
from onboard.domain.names import LATEST
from onboard.domain.progress import Progress
from onboard.domain.task import EmbeddingVersion, HypernetworkVersion, Task
from onboard.errors import ConflictError, SlotTakenError
from onboard.pipeline.run import MOST_MOVES
from onboard.registry.aliases import AliasRepository
from onboard.registry.bases import BaseRepository
from onboard.registry.events import EventRepository
from onboard.registry.leases import LeaseRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository

LABELS: Final = ("no", "yes")
SLOT: Final = "one at a time, as before"
MOVED: Final = "side by side"
BEFORE: Final = ("check", "readout", "probe", "train")  # stages before a tuning
_STEP_SECONDS: Final = 0.5  # between two checks whether the job was cancelled
_NOTE_SECONDS: Final = 5.0  # between two lines of progress
_EMBEDDING_BYTES: Final = 4_096
_RESULT_NUMBERS: Final = 400  # losses in a result


def preload(services: Services) -> None:
    """Nothing is needed."""


@dataclass(frozen=True)
class Tuning:
    """How a job tunes.

    Args:
        how: SLOT or MOVED.
        again: seconds of a judgement on a head that moved.
        accepted: whether the guard accepts the step.
    """

    how: str
    again: float
    accepted: bool


def run(job: Job, services: Services, progress: Progress) -> None:
    """Sleep through the stages of a claimed job, and publish a version."""
    seconds: dict[str, float] = job.spec.options["sleep"]
    options = job.spec.options.get("tuning")
    tuning = None if options is None else Tuning(**options)
    if tuning is None:
        _stages(list(seconds), seconds, progress)
        _publish(job, services, seconds, {})
    elif tuning.how == SLOT:
        _behind_slot(job, services, progress, tuning)
    else:
        _side_by_side(job, services, progress, tuning)


def _stages(names: list[str], seconds: Mapping[str, float], progress: Progress, **numbers: Any) -> None:
    for stage in (Stage(name) for name in names):
        progress.stage_started(stage)
        _sleep(seconds[stage], progress)
        progress.stage_finished(stage, seconds[stage], {"loss": 0.5, **numbers})


def _behind_slot(job: Job, services: Services, progress: Progress, tuning: Tuning) -> None:
    """Tune as the releases before did: only with the slot, and from the head that is there then."""
    seconds = job.spec.options["sleep"]
    before, after = _parted(seconds)
    head, began = _head(job, services), _began_with(job, services)
    if began is None:
        began = head
        _stages(before, seconds, progress, head=head)
    with services.database.write() as session:
        leases, name = LeaseRepository(session), f"tuning {job.spec.options['base_digest']}"
        if not leases.take(name, job.id, LEASE_SECONDS):
            holder = leases.holder(name)
            raise SlotTakenError(f"Job {holder} tunes the hypernetwork.", "It continues by itself.", holder=holder)
    if (head := _head(job, services)) != began:
        _stages(before, seconds, progress, head=head)
    _stages(after, seconds, progress)
    if not _publish(
        job, services, seconds, {"judgements": 1, "kept": tuning.accepted}, head if tuning.accepted else None
    ):
        raise ConflictError("The head moved although this job had the slot.")


def _side_by_side(job: Job, services: Services, progress: Progress, tuning: Tuning) -> None:
    """Tune and be judged on the head that is there then, again and again if it moves."""
    seconds = job.spec.options["sleep"]
    before, after = _parted(seconds)
    _stages([*before, "tune"], seconds, progress)
    head = _head(job, services)
    _stages(after[1:], seconds, progress)
    for judgements in range(1, MOST_MOVES + 2):
        facts = {"judgements": judgements, "kept": tuning.accepted}
        if _publish(job, services, seconds, facts, head if tuning.accepted else None):
            return
        if judgements <= MOST_MOVES:
            head = _head(job, services)
            _stages(["guard"], {"guard": tuning.again}, progress)
    _publish(job, services, seconds, {"judgements": 1 + MOST_MOVES, "kept": False, "given_up": True})


def _parted(seconds: Mapping[str, float]) -> tuple[list[str], list[str]]:
    """The stages before the tuning, and the others."""
    return [name for name in seconds if name in BEFORE], [name for name in seconds if name not in BEFORE]


def _head(job: Job, services: Services) -> int:
    with services.database.read() as session:
        return BaseRepository(session).get(job.spec.options["base_digest"]).head


def _began_with(job: Job, services: Services) -> int | None:
    """The head under which an earlier attempt finished the stages before the tuning; None if none did."""
    with services.database.read() as session:
        events = EventRepository(session).list(job.id)
    heads = [event.numbers["head"] for event in events if event.kind == "stage_finished" and event.stage == Stage.TRAIN]
    return heads[-1] if heads else None


def _sleep(seconds: float, progress: Progress) -> None:
    ends = time.monotonic() + seconds
    note_at = time.monotonic() + _NOTE_SECONDS
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, _STEP_SECONDS))
        progress.raise_if_cancelled_or_fenced()
        if time.monotonic() >= note_at:
            progress.note("step", loss=0.5)
            note_at += _NOTE_SECONDS


def _publish(
    job: Job, services: Services, seconds: dict[str, float], tuning: dict[str, Any], head: int | None = None
) -> bool:
    """Publish a version and, if `head` is given, the next head; False, and nothing is published, if it moved on."""
    stored = services.store(job.id.encode().ljust(_EMBEDDING_BYTES, b"\0"), "embedding")
    with services.database.read() as session:
        present = AliasRepository(session).find(job.spec.task, LATEST) or 0
        version = _version(VersionRepository(session), job, stored)
    result = {
        "job": job.id, "state": "succeeded", "task": job.spec.task, "metrics": {"accuracy": 0.5}, "seconds": seconds,
        "training": {"loss": [0.5] * _RESULT_NUMBERS}, "latest": {"alias": LATEST, "moved": True}, "tuning": tuning,
    }  # fmt: skip
    task = Task(job.spec.task, "classification", LABELS, LABELS)
    try:
        with services.database.write() as session:
            if head is not None:
                draft = HypernetworkVersion(version.base_digest, 0, stored, stored, job=job.id)
                BaseRepository(session).advance(draft, expected_head=head)
            VersionRepository(session).publish(version, task, attempt=job.attempt, result=result, present=present)
    except ConflictError:
        if head is None:
            raise
        return False
    return True


def _version(versions: VersionRepository, job: Job, artifact: str) -> EmbeddingVersion:
    """A version like the first one of a source, made by this job."""
    source = versions.resolve(f"{MANY}@v1")
    return replace(
        source, task=job.spec.task, version=versions.next_number(job.spec.task), kind="onboarded", job=job.id,
        labels=LABELS, words=LABELS, artifact=artifact, dataset_digest=job.spec.dataset,
    )  # fmt: skip
