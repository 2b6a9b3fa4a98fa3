"""A job that suspects some of its rows of a wrong label, as people see it on its page."""

from __future__ import annotations

from dataclasses import replace

from onboard.data.snapshot import digest, save
from onboard.domain.dataset import Dataset, Example
from onboard.domain.task import SnapshotRecord
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository
from support.browsing import EVIL
from support.registry_samples import claim_job, sample_spec, sample_task, sample_version

LABELS = ("cat", "dog", EVIL)
ROWS = (
    Example("it barks", None, "cat"),
    Example("it barks", None, "cat"),
    Example("it meows", None, "dog"),
    Example("it purrs", None, "cat"),
    Example("x" * 200 + "one", None, "dog"),
    Example("x" * 200 + "two", None, "dog"),
)
OPTIONS = {"probe": "exhaustive", "readout": "never", "label_description": ["cat=it meows"]}
LONG = "x" * 79 + "…"
SUSPECTS = (
    {"text": "it barks", "label": "cat", "likelier": "dog"},
    {"text": EVIL, "label": "cat", "likelier": EVIL},
    {"text": LONG, "label": "dog", "likelier": "cat"},
)


def job_with_suspects(services: Services) -> str:
    """The id of a job that published a version, and suspects three of its rows."""
    rows = Dataset(
        kind="classification", labels=LABELS, low=None, high=None, train=ROWS, validation=(), test=(ROWS[3],)
    )
    spec = replace(
        sample_spec("pets"), dataset=digest(rows), seed=3, init="mean", kind="classification", options=dict(OPTIONS)
    )
    artifact = services.store(save(rows), "dataset")
    with services.database.write() as session:
        SnapshotRepository(session).add(
            SnapshotRecord(
                spec.dataset, artifact, artifact, "classification", LABELS, {"train": 6, "validation": 0, "test": 1}
            )
        )
        JobRepository(session).add(spec, priority=7, time_limit_seconds=90.0)
    claimed = claim_job(services.database)
    warning = {"code": "contradicted_labels", "message": "3 rows look mislabelled", "count": 3, "examples": SUSPECTS}
    dataset = {"labels": [{"label": label, "word": "a", "count": 2} for label in LABELS], "warnings": [warning]}
    version = replace(sample_version("pets", job=claimed.id), labels=LABELS, words=LABELS)
    with services.database.write() as session:
        VersionRepository(session).publish(
            version, sample_task("pets", LABELS), attempt=claimed.attempt, result={"dataset": dataset}
        )
    return claimed.id
