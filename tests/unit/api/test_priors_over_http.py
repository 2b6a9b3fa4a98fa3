"""The prior of a base over HTTP and on its page: versions, what taught them, how much earlier tasks helped."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
from fastapi.testclient import TestClient
from sqlalchemy import update
from support.callers import bearer
from support.published import add_version
from support.refusals import refused
from support.registry_samples import add_job

from onboard import local
from onboard.api.pages.priors import chart_of
from onboard.bases import Base
from onboard.client import Onboard
from onboard.contract.priors import HelpedDocument
from onboard.hypernetworks.prior.line import list_priors
from onboard.hypernetworks.prior.refit import refit
from onboard.hypernetworks.register import register_base
from onboard.registry.services import Services
from onboard.registry.tables import JobRow
from onboard.report.earlier_tasks import earlier_tasks
from onboard.statistics.prior import Lesson
from onboard.storage.lesson import LESSON, pack_lesson

LABELS = ("sad", "glad"), ("bad", "good")
FACTS = {
    "form": "single", "version": 1, "digest": "sha256:1", "left_out": [], "scale": 0.75, "lessons": 2,
    "tasks": [{"task": "mood", "share": 0.8}, {"task": "tone", "share": 0.2}], "rows": 12, "metric": "accuracy",
    "with_prior": 75.0, "without": 66.67,
}  # fmt: skip


def teach(services: Services, base: Base, *tasks: str) -> None:
    for seed, task in enumerate(tasks):
        rng = np.random.default_rng(seed)
        lesson = Lesson(*(rng.standard_normal((2, 12)).astype(np.float16) for _ in range(2)), rows=8)
        add_version(
            services, base, task, *LABELS, pairs=False, lesson=services.store(pack_lesson(lesson, base.digest), LESSON)
        )


def test_versions_are_listed_and_one_names_what_taught_it(
    door: TestClient, tiny_services: Services, tiny_base: Base
) -> None:
    teach(tiny_services, tiny_base, "mood", "tone")
    refit(tiny_services, tiny_base, "a test")
    teach(tiny_services, tiny_base, "third")
    refit(tiny_services, tiny_base, "another")
    headers = bearer(tiny_services.database, "read")
    document = door.get("/v1/priors", headers=headers).json()
    assert [(line["version"], line["parent"], line["head"]) for line in document["priors"]] == [
        (1, None, False), (2, 1, True),
    ]  # fmt: skip
    assert document["helped"] == []
    shown = door.get("/v1/priors/single", headers=headers).json()
    assert (shown["version"], [lesson["task"] for lesson in shown["taught"]]) == (2, ["mood", "third", "tone"])
    first = door.get("/v1/priors/single", params={"version": 1}, headers=headers).json()
    assert [lesson["task"] for lesson in first["taught"]] == ["mood", "tone"]
    assert door.get("/v1/priors/pairs", headers=headers).status_code == 404
    assert door.get("/v1/priors/other", headers=headers).status_code == 422
    assert door.get("/v1/priors", headers=bearer(tiny_services.database, "submit")).status_code == 403


def test_a_form_that_does_not_exist_is_refused_alike_everywhere(tiny_services: Services, tiny_base: Base) -> None:
    register_base(tiny_services, tiny_base)
    unasked = httpx.MockTransport(lambda _: httpx.Response(500))
    form: Any = "x"
    with refused("unknown-form", name="x"):
        local.Onboard(tiny_services).prior(form=form)
    with refused("unknown-form", name="x"), Onboard("https://service.test", "t", transport=unasked) as client:
        client.prior(form=form)
    with refused("prior-not-fitted", form="pairs"):
        local.Onboard(tiny_services).prior("pairs")


def test_the_page_shows_a_bar_for_every_version_that_rows_judge() -> None:
    helped: list[dict[str, Any]] = [
        {"version": "mood@v1", "prior": FACTS},
        {"version": "few@v1", "prior": {"scale": 0.75}},
        {"version": "tone@v1", "prior": {**FACTS, "with_prior": 60.0, "without": 64.0}},
    ]
    chart = chart_of([HelpedDocument.model_validate({"created_at": None, **line}) for line in helped])
    assert chart is not None
    assert [(track.label, track.shown, track.detail) for track in chart.tracks] == [
        ("tone@v1", "-4.0", "64.0 → 60.0"), ("mood@v1", "+8.3", "66.7 → 75.0"),
    ]  # fmt: skip
    down, up = (track.at or 0.0 for track in chart.tracks)
    assert down < (chart.origin or 0.0) < up
    assert "+2.2 on average" in chart.title
    assert chart_of([HelpedDocument.model_validate({"created_at": None, **helped[1]})]) is None


def test_a_report_says_in_points_what_earlier_tasks_contributed() -> None:
    drawn, points, most = earlier_tasks({"prior": FACTS})
    assert ("75%" in drawn, "2 earlier tasks" in drawn) == (True, True)
    assert "+8.3 points of accuracy (66.7 → 75.0, 12 " in points
    assert "mood 80%, tone 20%" in most
    assert earlier_tasks({"prior": None}) == []
    (ignored,) = earlier_tasks({"prior": {**FACTS, "scale": 0.0, "tasks": []}})
    assert "ignores" in ignored


def test_a_job_with_a_provisional_version_counts_once(tiny_services: Services, tiny_base: Base) -> None:
    ones = np.ones((2, 12), np.float16)
    lesson = tiny_services.store(pack_lesson(Lesson(ones, ones, rows=8), tiny_base.digest), LESSON)
    job = add_job(tiny_services.database, "mood").id
    for provisional in (True, False):
        add_version(
            tiny_services, tiny_base, "mood", *LABELS, pairs=False, lesson=lesson, job=job, provisional=provisional
        )
    with tiny_services.database.write() as session:
        session.execute(update(JobRow).where(JobRow.id == job).values(result={"prior": FACTS}))
    helped = list_priors(tiny_services.database, tiny_base.digest).helped
    assert [line.version for line in helped] == ["mood@v2"]
