"""Datasets that a program holds: of `datasets`, pandas and polars, sent to a service and read on this machine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from fake_service import FakeService, answer
from service_answers import CHECKED
from support.refusals import refused

from onboard.client import local
from onboard.domain.job import JobState
from onboard.errors import DatasetError

ROWS = [{"text": f"sentence number {i}, café", "label": ("good", "bad")[i % 2]} for i in range(12)]
ACCEPTED: dict[str, Any] = {"job": "j", "state": "queued", "task": "mood", "warning": None, "warnings": []}


def hugging_face() -> datasets.Dataset:
    labels = datasets.ClassLabel(names=["good", "bad"])
    features = datasets.Features({"text": datasets.Value("string"), "label": labels})
    return datasets.Dataset.from_list(
        [{**row, "label": labels.str2int(row["label"])} for row in ROWS], features=features
    )


FRAMES: dict[str, Callable[[], Any]] = {
    "datasets": hugging_face, "pandas": lambda: pd.DataFrame(ROWS), "polars": lambda: pl.DataFrame(ROWS),
    "pyarrow": lambda: pa.Table.from_pylist(ROWS), "a batch of pyarrow": lambda: pa.RecordBatch.from_pylist(ROWS),
    "a list of dicts": lambda: ROWS,
    "a dict of columns": lambda: {name: [row[name] for row in ROWS] for name in ("text", "label")},
    "a structured array": lambda: np.array([(r["text"], r["label"]) for r in ROWS], [("text", "U40"), ("label", "U9")]),
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONBOARD_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ONBOARD_API_URL", raising=False)
    return tmp_path / "home"


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_frame_is_checked_on_this_machine(make, home: Path) -> None:
    checked = local.check(make(), "mood")
    assert (checked.task, checked.rows["train"]) == ("mood", 12)
    assert {label.label for label in checked.labels} == {"good", "bad"}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_a_frame_goes_to_a_service_as_a_file(make, service: FakeService, tmp_path: Path) -> None:
    service.routes["POST", "/v1/jobs"] = answer(ACCEPTED, 202)
    service.client(tmp_path).submit(dataset=make(), task="mood", validation=pd.DataFrame(ROWS[:2]))
    (request,) = service.requests
    body = request.read()
    assert b'name="dataset"; filename="dataset.' in body
    assert b'name="validation"; filename="validation.jsonl"' in body
    in_arrow = any(make is FRAMES[name] for name in ("datasets", "pyarrow", "a batch of pyarrow"))
    assert (b"PAR1" if in_arrow else ROWS[3]["text"].encode()) in body


def labels_of(frame: Any) -> list[Any]:
    return [label.label for label in local.check(frame, "mood").labels]


DAYS = [datetime(2026, 1, 2 + i % 2, 3, 4) for i in range(12)]
TEXTS = [row["text"] for row in ROWS]


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "pyarrow", "dict"]
)
def test_a_moment_is_the_same_label_whatever_holds_it(make: Callable[[Any], Any], home: Path) -> None:
    moments = make({"text": TEXTS, "label": DAYS})
    assert labels_of(moments) == ["2026-01-02T03:04:00", "2026-01-03T03:04:00"]
    days = make({"text": TEXTS, "label": [day.date() for day in DAYS]})
    assert labels_of(days) == ["2026-01-02", "2026-01-03"]


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "pyarrow", "dict"]
)
def test_short_floats_are_their_shortest_decimal(make: Callable[[Any], Any], home: Path) -> None:
    numbers = np.array([0.1, 0.3] * 6, dtype=np.float32)
    assert labels_of(make({"text": TEXTS, "label": numbers})) == [0.1, 0.3]


def test_a_short_float_that_is_missing_is_missing(home: Path) -> None:
    numbers = [0.1, None, *[0.3] * 10]
    for frame in (
        pd.DataFrame({"text": TEXTS, "label": pd.array(numbers, "Float32")}),
        pl.DataFrame({"text": TEXTS, "label": pl.Series(numbers, dtype=pl.Float32)}),
        pa.table({"text": TEXTS, "label": pa.array(numbers, pa.float32())}),
    ):
        with pytest.raises(DatasetError) as caught:
            local.check(frame, "mood")
        assert [(problem["row"], problem["code"]) for problem in caught.value.data["problems"]] == [
            (2, "missing_label")
        ]


@pytest.mark.parametrize(
    "make", [pd.DataFrame, pl.DataFrame, pa.table, dict], ids=["pandas", "polars", "pyarrow", "dict"]
)
def test_a_column_of_bytes_that_is_not_needed_does_no_harm(make: Callable[[Any], Any], home: Path) -> None:
    frame = make({"text": TEXTS, "label": [row["label"] for row in ROWS], "picture": [b"\x89PNG\xff"] * 12})
    assert local.check(frame, "mood").rows["train"] == 12


def test_a_dict_of_splits_is_read_by_split(home: Path) -> None:
    splits = {"train": ROWS[:8], "test": pd.DataFrame(ROWS[8:])}
    assert local.check(splits, "mood").rows == {"train": 8, "validation": 0, "test": 4}


def test_the_splits_of_a_dict_are_splits(home: Path, service: FakeService, tmp_path: Path) -> None:
    dataset = hugging_face()
    splits = datasets.DatasetDict({"train": dataset.select(range(8)), "test": dataset.select(range(8, 12))})
    assert local.check(splits, "mood").rows == {"train": 8, "validation": 0, "test": 4}
    service.routes["POST", "/v1/check"] = answer(CHECKED)
    service.client(tmp_path).check(splits, "mood")
    assert b'name="test"; filename="test.parquet"' in service.requests[0].read()


@pytest.mark.parametrize(
    ("dataset", "task", "type_"),
    [
        (pd.DataFrame(ROWS), None, "table-without-task-name"),
        (pd.Series(["a", "b"]), "mood", "not-a-table"),
        (np.array([["a", "x"], ["b", "y"]]), "mood", "not-a-table"),
        (pa.array(["a", "b"]), "mood", "not-a-table"),
        (["a", "b"], "mood", "not-a-table"),
        ((row for row in ROWS), "mood", "not-a-table"),
        (3, "mood", "not-a-table"),
        ({}, "mood", "not-a-table"),
        ({"text": ["a", "b"], "label": ["x"]}, "mood", "table-column-unfit"),
        ({"text": "ab", "label": "xy"}, "mood", "table-column-unfit"),
        ([{"text": {1, 2}, "label": "x"}], "mood", "table-column-unfit"),
        (pl.DataFrame(ROWS).lazy(), "mood", "not-a-table"),
        (hugging_face().to_iterable_dataset(), "mood", "not-a-table"),
        (datasets.DatasetDict({"train": hugging_face(), "odd": hugging_face()}), "mood", "unknown-split"),
        (datasets.DatasetDict({"test": hugging_face()}), "mood", "training-split-missing"),
        (pd.DataFrame([["a", "x"], ["b", "y"]], columns=["text", "text"]), "mood", "table-column-unfit"),
        (pl.DataFrame({"text": [object()], "label": ["x"]}), "mood", "table-column-unfit"),
        (pd.DataFrame([{"title": "a", "body": "b", "label": "x"}, {"title": "c", "body": "d", "label": "y"}]), "mood",
         "text-field"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_as_rows_is_said_with_the_way_out(dataset, task, type_, home: Path) -> None:
    with refused(type_) as caught:
        local.check(dataset, task)
    assert caught.value.remedy


def test_of_two_columns_that_may_be_the_text_one_is_asked_for(home: Path) -> None:
    frame = pd.DataFrame([{"title": f"a {i}", "body": f"b {i}", "label": "xy"[i % 2]} for i in range(8)])
    with pytest.raises(DatasetError) as caught:
        local.check(frame, "mood")
    assert 'text_field="NAME" (twice for pairs). Its fields: title, body, label' in caught.value.remedy
    assert local.check(frame, "mood", text_field=["body"]).rows["train"] == 8


def test_rows_of_a_frame_are_told_by_their_number_and_not_by_a_file(home: Path) -> None:
    frame = pd.DataFrame([*ROWS, {"text": None, "label": "good"}])
    with pytest.raises(DatasetError) as caught:
        local.check(frame, "mood")
    assert "onboard-frames" not in str(caught.value)
    (problem,) = caught.value.data["problems"]
    assert (problem["file"], problem["row"], problem["code"]) == ("dataset", 13, "missing_text")
    assert caught.value.message.startswith("dataset: row 13")


def test_a_frame_is_queued_on_this_machine_and_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onboard.local.Onboard.start_worker", lambda *_: None)
    job = local.submit(pd.DataFrame(ROWS), "mood", shots=8)
    assert (job.task, job.state) == ("mood", JobState.QUEUED)
    with refused("job-not-ended"):
        local.wait(job, timeout_seconds=0)


def test_a_service_elsewhere_is_not_this_machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONBOARD_API_URL", "http://127.0.0.1:9")
    with refused("command-needs-service-machine", part="onboard.client.local"):
        local.check(pd.DataFrame(ROWS), "mood")
