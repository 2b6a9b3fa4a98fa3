"""Whether texts have changed: over HTTP, through the client, on the page, and as metrics."""

from __future__ import annotations

import numpy as np
import pytest
from fastapi.testclient import TestClient
from prometheus_client import generate_latest
from support.callers import bearer
from support.published import add_version

from onboard.api.pages.drift import chart_of
from onboard.bases import Base
from onboard.contract.drift import DriftDocument, DriftWeek
from onboard.domain.drift import day_of, days_of, week_of
from onboard.operations.prometheus import make_registry
from onboard.registry.clock import read_clock
from onboard.registry.services import Services
from onboard.statistics.drift import Sums, sums_of_answers, sums_of_features
from onboard.versions.drift import Texts, add_texts

LABELS = ("sad", "glad"), ("bad", "good")


def sums(seed: int, n: int, share: float = 0.5, at: float = 0.0) -> Sums:
    rng = np.random.default_rng(seed)
    chosen = np.eye(2, dtype=np.int64)[(rng.random(n) < share).astype(int)]
    answers = sums_of_answers(chosen, rng.uniform(0.5, 1, n), rng.random(n) < 0.05 + at / 10)
    return answers + sums_of_features(rng.standard_normal((n, 12)) + at, 2)


@pytest.fixture
def changed(tiny_services: Services, tiny_base: Base) -> Services:
    """A week without drift, and one in which another kind of texts arrives."""
    add_version(tiny_services, tiny_base, "mood", *LABELS)
    add_version(tiny_services, tiny_base, "calm", *LABELS)
    with tiny_services.database.write() as session:
        this = week_of(day_of(read_clock(session)))
        known = [Texts("mood", 1, None, several=False)]
        add_texts(session, days_of(this - 1)[0], {("mood", 1): sums(1, 500)}, known)
        add_texts(session, days_of(this)[0], {("mood", 1): sums(2, 600, share=0.8, at=3.0)}, known)
    return tiny_services


def test_the_document_says_what_differs_and_what_to_do(door: TestClient, changed: Services) -> None:
    document = DriftDocument.model_validate(door.get("/v1/tasks/mood/drift").json())
    assert document.alarm is not None
    assert set(document.alarm.week_before) == {"labels", "unknown", "features"}
    (against,) = document.comparisons
    assert [label.label for label in against.by_label if label.index > label.chance] == ["sad", "glad"]
    assert [week.texts for week in document.weeks] == [500, 600]
    assert any("glad (5" in sentence or "sad (5" in sentence for sentence in document.advice)
    quiet = door.get("/v1/tasks/calm/drift", params={"ref": "v1"}).json()
    assert (quiet["texts"], quiet["alarm"], quiet["comparisons"]) == (0, None, [])
    assert door.get("/v1/tasks/mood/drift", params={"ref": "v7"}).status_code == 404
    assert door.get("/v1/tasks/nobody/drift").status_code == 404
    assert door.get("/v1/tasks/mood/drift", headers=bearer(changed.database, "submit")).status_code == 403


def test_the_page_draws_the_weeks_and_has_a_twin(door: TestClient, changed: Services) -> None:
    page = door.get("/tasks/mood/drift").text
    assert "the texts have changed" in page
    assert "onboard add mood" in page
    assert page.count("<rect") == 4
    assert "<polyline" in page
    assert "onboard drift mood" in page
    assert door.get("/tasks/mood/drift.json").json() == door.get("/v1/tasks/mood/drift").json()
    assert "No texts were answered by calm@v1" in door.get("/tasks/calm/drift").text
    assert 'href="/tasks/mood/drift"' in door.get("/tasks/mood").text


def test_the_chart_stacks_shares_of_several_labels_to_the_whole_height() -> None:
    assert chart_of([]) is None
    week = DriftWeek(
        week="2026-11-23", texts=10, labels={"a": 0.9, "b": 0.6, "c": 0.0}, confidence=0.8, unknown=None,
        histogram=(), alarm=False,
    )  # fmt: skip
    chart = chart_of([week])
    assert chart is not None
    heights = [part["height"] for part in chart["stacks"][0]["parts"]]
    assert sum(heights) == pytest.approx(chart["height"])
    assert heights[0] / heights[1] == pytest.approx(1.5)
    assert chart["points"] == ""


def test_metrics_have_the_texts_and_alarms_of_this_week(changed: Services) -> None:
    text = generate_latest(make_registry(changed.database)).decode()
    assert 'onboard_drift_texts{task="mood",version="1"} 600.0' in text
    assert 'onboard_drift_alarm{task="mood",version="1"} 1.0' in text
    assert 'task="calm"' not in text
