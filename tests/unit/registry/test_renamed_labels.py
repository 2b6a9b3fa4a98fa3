"""A label is renamed in the registry and in the file of the version, without a model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.registry_samples import claim_job, register_sample_base, sample_spec, sample_task, sample_version

from onboard.data.snapshot import digest, save
from onboard.domain.dataset import Dataset, Example
from onboard.domain.label_change import LabelChange
from onboard.domain.task import SnapshotRecord
from onboard.jobs.labels import change_labels, list_labels
from onboard.registry.audit import entries
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository
from onboard.storage.embedding import read_facts
from onboard.storage.weights import pack_weights, weights_digest
from onboard.testing import MemoryDoorbell
from onboard.versions.promote import promote, rollback

ROWS = Dataset(
    "classification",
    ("blue", "red"),
    tuple(Example(f"t{place}", None, ("blue", "red")[place % 2]) for place in range(6)),
)
TENSORS = {"weights": np.ones((2, 3), np.float16), "bias": np.zeros(2, np.float32)}
SCORES = {"validation": {"macro_f1": {"value": 0.5, "labels": [{"label": "red", "rows": 3, "answers": 1, "right": 1}]}}}


@pytest.fixture
def colours(services: Services) -> Services:
    """A task that was learned here, with a readout alone."""
    register_sample_base(services.database)
    stored = services.store(save(ROWS), "snapshot")
    spec = replace(sample_spec("colours"), dataset=digest(ROWS), options={"label_description": ["red=like blood"]})
    rows = {"train": 6, "validation": 0, "test": 0}
    with services.database.write() as session:
        SnapshotRepository(session).add(
            SnapshotRecord(spec.dataset, stored, stored, "classification", ROWS.labels, rows)
        )
        JobRepository(session).add(spec)
    job = claim_job(services.database)
    facts = {"format": "1", "method": "linear", "settings": {"scale": 1.0}}
    version = replace(
        sample_version("colours", job=job.id), method="linear", dataset_digest=spec.dataset, metrics=SCORES,
        artifact=services.store(pack_weights(TENSORS, facts), "weights"), embedding_digest=weights_digest(TENSORS),
    )  # fmt: skip
    with services.database.write() as session:
        VersionRepository(session).publish(version, sample_task("colours"), attempt=job.attempt, result={})
    return services


def rename(services: Services, old: str, new: str) -> int:
    done = change_labels(services, MemoryDoorbell(), "colours", LabelChange("rename", (old,), new))
    assert done.version is not None
    return done.version.version


def test_a_renaming_is_a_new_version_of_the_same_numbers_and_is_written_down(colours: Services) -> None:
    assert rename(colours, "red", "crimson") == 2
    with colours.database.read() as session:
        version = VersionRepository(session).resolve("colours@v2")
        present = VersionRepository(session).resolve("colours")
        (line,) = entries(session, 1)
    assert (present.version, version.labels, version.words) == (1, ("blue", "crimson"), ("blue", "red"))
    assert version.embedding_digest == present.embedding_digest
    assert version.metrics["validation"]["macro_f1"]["labels"][0]["label"] == "crimson"
    facts = read_facts(colours.read(version.artifact))
    assert (facts["labels"], facts["method"], facts["version"]) == (["blue", "crimson"], "linear", 2)
    assert (line.action, line.subject, line.facts["to"]) == ("task.labels", "colours", "crimson")
    listed = {part["label"]: part for part in list_labels(colours, "colours")["labels"]}
    assert (listed["crimson"]["description"], listed["crimson"]["rows"]) == ("like blood", 3)


def test_an_alias_calls_labels_as_before_through_several_renamings(colours: Services) -> None:
    rename(colours, "red", "crimson")
    rename(colours, "blue", "azure")
    moved = promote(colours, "colours@v3", "latest", as_before=True)
    assert sorted(map(tuple, moved.names or ())) == [("azure", "blue"), ("crimson", "red")]
    assert rollback(colours, "colours", "latest").names is None
