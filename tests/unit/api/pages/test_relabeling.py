"""Rows that look mislabeled: shown on the page of their job, corrected there, downloaded or learned again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from support.browsing import without_quoted_scripts
from support.registry_samples import register_sample_base, sample_spec
from support.suspected import ROWS, SUSPECTS, job_with_suspects

from onboard.domain.addition import Addition
from onboard.jobs.add import Added
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services


@pytest.fixture
def job(services: Services) -> str:
    register_sample_base(services.database)
    return job_with_suspects(services)


def rows_of(text: str) -> list[tuple[str, str]]:
    return [(row["text"], row["label"]) for row in map(json.loads, text.splitlines())]


def test_the_page_shows_the_rows_and_every_label_that_they_may_get(browser: TestClient, job: str) -> None:
    page = without_quoted_scripts(browser.get(f"/jobs/{job}").text)
    assert page.count("<select") == len(SUSPECTS)
    assert "it barks" in page
    assert "dog (more likely)" in page


def test_corrected_rows_are_downloaded_and_the_others_stay(browser: TestClient, job: str) -> None:
    answer = browser.post(f"/jobs/{job}/relabeled.jsonl", data={"label": ["1", "", ""]})
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="pets.jsonl"'
    before = sorted((row.text_a, str(row.label)) for row in ROWS)
    assert sorted(rows_of(answer.text)) == sorted(
        (text, "dog" if text == "it barks" else label) for text, label in before
    )


def test_they_correct_the_rows_of_the_task(
    browser: TestClient, job: str, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, Addition, str]] = []

    def add(task: str, addition: Addition, owner: str, size: int, left: Any) -> Any:
        sent.append((task, addition, Path(addition.dataset).read_text(encoding="utf-8")))
        with services.database.write() as session:
            return Added(JobRepository(session).add(sample_spec("pets"))[0], None, {})  # type: ignore[arg-type]

    monkeypatch.setattr(browser.app.state.intake, "add", add)  # type: ignore[attr-defined]
    monkeypatch.setattr("onboard.api.pages.job.start_worker", lambda *_: False)
    answer = browser.post(f"/jobs/{job}/relabel", data={"label": ["1", "", ""]})
    assert answer.status_code == 303
    assert answer.headers["location"] != f"/jobs/{job}"
    ((task, addition, rows),) = sent
    assert (task, addition.how) == ("pets", "replace")
    assert rows_of(rows) == [("it barks", "dog")]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["", "", ""], "No label was changed."),
        ([], "does not match"),
        (["1"], "does not match"),
        (["3", "", ""], "does not match"),
        (["-1", "x", "9" * 40], "No label was changed."),
        (["", "", "0"], "2 rows begin with"),
    ],
)
def test_what_cannot_be_corrected_here_is_refused(
    browser: TestClient, job: str, labels: list[str], message: str
) -> None:
    answer = browser.post(f"/jobs/{job}/relabel", data={"label": labels})
    assert (answer.status_code, message in answer.text) == (422, True)


def test_rows_are_given_only_to_who_may_submit(reader: TestClient, job: str) -> None:
    assert "<select" not in reader.get(f"/jobs/{job}").text
    for path in ("relabel", "relabeled.jsonl"):
        assert reader.post(f"/jobs/{job}/{path}", data={"label": ["1", "", ""]}).status_code == 403
