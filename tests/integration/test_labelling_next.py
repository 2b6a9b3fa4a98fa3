"""`--unlabelled FILE`: the texts travel with the job, and its report names those to label next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import select
from support.old_and_needless import make_old
from support.program import Place
from support.real_jobs import Desk, opinions, write_rows

from onboard.domain.job import JobState
from onboard.domain.submission import Submission
from onboard.errors import ConflictError
from onboard.jobs.submission import prepare
from onboard.jobs.submit import submit
from onboard.operations.gc import collect_garbage
from onboard.registry.services import Services
from onboard.registry.tables import ArtifactRow
from onboard.report import render
from onboard.testing import MemoryDoorbell

TRAIN = opinions(24)
POOL = [{"text": str(row["text"])} for row in opinions(60, start=18)]  # six are labelled, and one is there twice
POOL.append(POOL[-1])


@pytest.fixture
def order(desk: Desk) -> Submission:
    dataset, pool = (
        write_rows(desk.folder / name, rows) for name, rows in (("mood.jsonl", TRAIN), ("pool.jsonl", POOL))
    )
    return Submission(str(dataset), unlabelled=pool, init="sst2", tune_hypernetwork="never", key="once")


def _submit(services: Services, order: Submission) -> str:
    return submit(services, MemoryDoorbell(), prepare(order, services.settings.base))[0].id


def test_the_report_names_texts_to_label_next_whatever_their_order(desk: Desk, order: Submission) -> None:
    assert order.unlabelled is not None
    job = _submit(desk.services, order)
    write_rows(order.unlabelled, POOL[::-1])
    assert _submit(desk.services, order) == job  # the same texts are the same request
    write_rows(order.unlabelled, POOL[:40])
    with pytest.raises(ConflictError):
        _submit(desk.services, order)
    order.unlabelled.unlink()  # the worker may be on another machine
    result = desk.run(desk.claim()).result
    assert result is not None
    suggested = result["label_next"]
    labelled = {row["text"] for row in TRAIN}
    known = sum(row["text"] in labelled for row in POOL)
    assert (suggested["read"], suggested["known"], suggested["repeated"]) == (61, known, 1)
    assert suggested["considered"] == 60 - known
    texts = [row["text"] for row in suggested["rows"]]
    assert 0 < len(texts) == len(set(texts)) <= 20
    assert set(texts) <= {row["text"] for row in POOL} - labelled
    for row in suggested["rows"]:
        assert sum(answer["probability"] for answer in row["answers"]) == pytest.approx(1.0, abs=1e-3)
        assert 0 <= row["uncertainty"] <= 1
    page = render({**result, "state": "succeeded"})
    assert texts[0] in page
    assert "More labels" in page


def test_garbage_collection_leaves_the_texts_while_a_job_names_them(desk: Desk, order: Submission) -> None:
    _submit(desk.services, order)
    with desk.services.database.read() as session:
        digests = session.scalars(select(ArtifactRow.digest)).all()
    make_old(desk.services, *digests)
    assert collect_garbage(desk.services).rows["snapshots"] == 0
    job = desk.run(desk.claim())
    assert job.state is JobState.SUCCEEDED
    assert (job.result or {})["label_next"]["rows"]


def test_texts_of_a_scale_are_shown_with_what_they_may_be(desk: Desk) -> None:
    rows = [{"text": row["text"], "label": number / 7} for number, row in enumerate(opinions(30))]
    path = write_rows(desk.folder / "pool.jsonl", [{"text": row["text"]} for row in opinions(12, start=40)])
    options = {"unlabelled": path, "kind": "regression"}
    suggested = desk.learn(rows, "scale", options=options, init="stsb")["label_next"]["rows"]
    assert suggested
    assert all(0 <= row["value"] <= 30 / 7 and row["spread"] > 0 and "answers" not in row for row in suggested)


def test_the_command_takes_a_file_and_refuses_one_that_helps_nobody(desk: Desk, tmp_path: Path) -> None:
    place = Place(tmp_path / "place", Path(desk.services.settings.base))
    place.folder.mkdir()
    write_rows(place.folder / "mood.jsonl", TRAIN)
    write_rows(place.folder / "known.jsonl", TRAIN)
    said = place.json("submit", "--dataset", "mood.jsonl", "--unlabelled", "known.jsonl", code=2)
    assert "not already labeled" in json.dumps(said)
