"""`submit --wait` and `jobs watch` of a job whose tuning the guard refused: the document as ever, and exit code 4."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from cli.watch import wait_for

JOB: dict[str, Any] = {
    "job": "j1", "state": "succeeded", "task": "mood", "version": 1, "hypernetwork_version": 1,
    "guard": {"verdict": "rejected", "reason": "sst2@v1 may lose.", "tasks": []},
    "tuning": {"asked": "always", "tried": True, "kept": False, "reason": "sst2@v1 may lose."},
}  # fmt: skip


class Ended:
    """A gateway to a job that has ended."""

    poll_seconds = 0.0

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def job(self, job: str, since: int = 0) -> SimpleNamespace:
        return SimpleNamespace(document={"queue": "default", "events": [], **self.document})


def code_of(document: dict[str, Any], *, as_json: bool = True) -> int:
    try:
        wait_for(Ended(document), "j1", as_json)  # type: ignore[arg-type]  # what it does not ask is left out
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def test_a_refused_tuning_prints_the_result_and_exits_4(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(JOB) == 4
    printed = json.loads(capsys.readouterr().out)
    assert (printed["version"], printed["guard"]) == (1, JOB["guard"])
    assert "tuning" not in printed


def test_on_a_terminal_it_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(JOB, as_json=False) == 4
    assert "Tuning of the hypernetwork: rejected" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [
        {"tuning": {**JOB["tuning"], "asked": "auto"}},
        {"guard": {**JOB["guard"], "verdict": "accepted"}},
        {"guard": None, "tuning": None},
    ],
    ids=["auto", "accepted", "never"],
)
def test_every_other_job_that_succeeded_exits_0(change: dict[str, Any]) -> None:
    assert code_of({**JOB, **change}) == 0
