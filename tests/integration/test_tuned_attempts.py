"""Attempts at a tuned job that end in the middle: the next one goes on, and there is no half of a head."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.real_jobs import CrashError, Desk, HookedProgress, crash_after, opinions
from support.tuned_jobs import line_of, record_of

from onboard.bases import Base
from onboard.domain.job import JobState, Stage
from onboard.pipeline import guard as guarded
from onboard.pipeline import tune as tuned
from onboard.registry.services import Services
from onboard.registry.tables import StageOutputRow
from onboard.train.settings import TuningSettings

pytestmark = pytest.mark.usefixtures("gently")

ROOT = Path(__file__).parent.parent.parent


def _crashed_after(desk: Desk, stage: str) -> None:
    """A tuned job whose first attempt ended when this stage had finished."""
    desk.submit(opinions(24), init="sst2", tune_hypernetwork="always")
    with pytest.raises(CrashError):
        desk.run(desk.claim(), crash_after(stage))
    desk.lose()


def _again(desk: Desk) -> tuple[list[str], dict[str, Any]]:
    progress = HookedProgress(lambda *_: None)
    job = desk.run(desk.claim(), progress)
    assert job.state is JobState.SUCCEEDED
    return progress.stages, job.result or {}


@pytest.mark.parametrize(
    ("stage", "rest"), [("tune", ["guard", "evaluate"]), ("guard", ["evaluate"]), ("evaluate", [])]
)
def test_the_next_attempt_goes_on_after_the_last_finished_stage(
    desk: Desk, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch, stage: str, rest: list[str]
) -> None:
    _crashed_after(desk, stage)
    assert record_of(tiny_services, tiny_base).head == 1
    real = tuned.tune

    def tune(engine: Any, training_set: Any, *rest: Any) -> Any:
        if stage != "tune" or len(training_set.rows.ids) == 24:  # else it is a fold, which the guard stage tunes
            pytest.fail("it was tuned again")
        return real(engine, training_set, *rest)

    monkeypatch.setattr(tuned, "tune", tune)
    if stage != "tune":
        monkeypatch.setattr(guarded, "guard", lambda *_, **__: pytest.fail("it was guarded again"))
    stages, result = _again(desk)
    assert stages == ["check", *rest]
    assert (result["hypernetwork_version"], result["guard"]["verdict"]) == (2, "accepted")
    assert [head.version for head in line_of(tiny_services, tiny_base)] == [1, 2]


@pytest.mark.parametrize(("harm", "after"), [("gone", "tune"), ("damaged", "tune"), ("gone", "guard")])
def test_tuned_weights_are_gone_or_damaged_and_so_it_is_tuned_again(
    desk: Desk, tiny_services: Services, tiny_base: Base, harm: str, after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And guarded again: what a second tuning leaves need not be what the guard saw."""
    import json

    from sqlalchemy import select

    _crashed_after(desk, after)
    with tiny_services.database.read() as session:
        output = session.scalars(select(StageOutputRow.artifact).where(StageOutputRow.stage == Stage.TUNE)).one()
    path = tiny_services.file(json.loads(tiny_services.read(output))["artifact"])
    assert path is not None
    path.unlink() if harm == "gone" else path.write_bytes(path.read_bytes()[:-9])
    monkeypatch.setattr(tuned, "TuningSettings", partial(TuningSettings, steps=4, most_steps=4, learning_rate=1e-7))
    stages, result = _again(desk)
    assert stages == ["check", "tune", "guard", "evaluate"]
    assert result["hypernetwork_version"] == record_of(tiny_services, tiny_base).head == 2


def test_what_was_published_between_two_attempts_is_guarded(
    desk: Desk, tiny_services: Services, tiny_base: Base
) -> None:
    _crashed_after(desk, "evaluate")
    waiting = desk.claim()
    desk.learn(opinions(20), "meanwhile", init="sst2")
    result = desk.run(waiting).result or {}
    assert "meanwhile@v1" in {task["task"] for task in result["guard"]["tasks"]}
    assert result["hypernetwork_version"] == 2


def test_kill_9_while_tuning_guarding_and_publishing_leaves_no_half_of_a_head(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.kills", "--times", "1", "--seed", "3", "--output", tmp_path / "kills.json"],
        cwd=ROOT, capture_output=True, text=True, timeout=500, check=False,
        env={"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "ONBOARD_HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing was lost, doubled or half." in done.stdout
