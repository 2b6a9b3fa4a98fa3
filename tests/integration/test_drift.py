"""Drift from end to end: a job keeps what its rows look like, serving counts texts, and a changed topic is noticed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from support.callers import bearer
from support.command_line import CommandLine
from support.real_jobs import Desk, opinions

from onboard.api.app import create_app
from onboard.domain.access import Scope
from onboard.domain.label_change import LabelChange
from onboard.jobs.labels import change_labels
from onboard.operations.backup.make import back_up
from onboard.operations.backup.restore import restore
from onboard.registry.services import open_services
from onboard.serving.predictor import Predictor
from onboard.settings import Settings
from onboard.storage.drift import training_in
from onboard.testing import MemoryDoorbell
from onboard.versions.delete import delete_task
from onboard.versions.drift import drift_of

SETS = [[], ["film"], ["plot"], ["film", "plot"]]


def training(desk: Desk, reference: str = "mood") -> Any:
    return training_in(desk.services.read(desk.version(reference).artifact))


def texts(count: int, start: int = 1000) -> list[str]:
    return [str(row["text"]) for row in opinions(count, start=start)]


def answer(desk: Desk, some: Sequence[str], task: str = "mood") -> None:
    with closing(Predictor(desk.services, record=True)) as predictor:
        for start in range(0, len(some), 64):
            predictor.predict([{"task": task, "text": text} for text in some[start : start + 64]])


@pytest.mark.parametrize(("rows", "held_out"), [(24, False), (120, True)])
def test_a_version_keeps_what_its_rows_look_like(desk: Desk, rows: int, held_out: bool) -> None:
    desk.learn(opinions(rows), fast=True)
    kept = training(desk)
    assert kept.held_out == held_out
    assert 0 < kept.sums.read <= rows
    assert kept.sums.answered == kept.sums.labels.sum() > 0
    assert kept.sums.judged > 0
    answer(desk, texts(40))
    document = drift_of(desk.services, "mood")
    (against,) = document.comparisons
    assert (against.against, against.features is not None, document.texts) == ("training", True, 40)
    assert against.left_out == (() if held_out else ("labels", "confidence"))


def test_another_topic_is_an_alarm_and_renaming_keeps_the_reference(desk: Desk, command_line: CommandLine) -> None:
    desk.learn(opinions(120), fast=True)
    answer(desk, [f"number {place} of a long list, item {place * 7} and {place * 3}" for place in range(130)])
    command_line.at_home(desk.services.settings)
    document = command_line.json("drift", "mood")
    assert "features" in document["alarm"]["training"]
    said = command_line("drift", "mood")
    assert said.code == 0
    assert "the texts have changed" in said.out
    assert "onboard add mood" in said.out
    assert command_line("drift", "nobody").code == 3
    label = str(desk.version("mood").labels[0])
    change_labels(desk.services, MemoryDoorbell(), "mood", LabelChange("rename", (label,), "other"))
    renamed = training(desk, "mood@v2")
    assert renamed.sums.to_json() == training(desk, "mood@v1").sums.to_json()


def test_a_server_counts_what_it_answers(desk: Desk) -> None:
    desk.learn(opinions(60), fast=True)
    headers = bearer(desk.services.database, Scope.READ)
    with TestClient(create_app(desk.services.settings), "http://localhost", headers=headers) as client:
        for text in texts(5):
            client.post("/v1/predict", json={"inputs": [{"task": "mood", "text": text}]}).raise_for_status()
    assert drift_of(desk.services, "mood").texts == 5


def test_sets_of_labels_are_counted_label_by_label(desk: Desk) -> None:
    rows = [
        {"text": f"{' and '.join(SETS[n % 4]) or 'nothing'}, number {n}", "labels": SETS[n % 4]} for n in range(120)
    ]
    desk.learn(rows, "tags", fast=True)
    assert training(desk, "tags").sums.answered > 0
    answer(desk, [f"film and plot, number {n}" for n in range(80)], "tags")
    document = drift_of(desk.services, "tags")
    assert set(document.weeks[-1].labels) == {"film", "plot"}
    assert document.comparisons[0].labels is not None


def test_a_backup_has_the_numbers_and_a_deleted_task_none(desk: Desk, tmp_path: Path) -> None:
    desk.learn(opinions(24), fast=True)
    answer(desk, texts(7))
    back_up(desk.services, str(tmp_path / "backup"), lambda _: None)
    settings = Settings(home=tmp_path / "again", base=desk.services.settings.base, device="cpu")
    restore(settings, str(tmp_path / "backup"), lambda _: None)
    with closing(open_services(settings)) as restored:
        assert drift_of(restored, "mood").texts == 7
        delete_task(restored, "mood")
        with restored.database.read() as session:
            from sqlalchemy import text

            assert session.scalar(text("SELECT count(*) FROM drift_days")) == 0
