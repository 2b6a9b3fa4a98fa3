"""A list of tasks is that of one's own; what the base ships with is counted, or found by asking for it."""

from __future__ import annotations

from typing import Any

import pytest

from cli import tasks as command
from cli.console import CleanConsole


def task(name: str, *, source: bool) -> dict[str, Any]:
    return {"task": name, "labels": ["no", "yes"], "pairs": False, "latest": None, "source": source}


def printed(capsys: pytest.CaptureFixture[str], everything: bool, *tasks: dict[str, Any]) -> list[str]:
    CleanConsole(soft_wrap=True).print(command._table(tasks, everything))
    return [line for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_shipped_tasks_are_counted_and_the_command_that_lists_them_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head, row, more = printed(
        capsys, False, task("cola", source=True), task("tickets", source=False), task("sst2", source=True)
    )
    assert head.startswith("task")
    assert row.startswith("tickets")
    assert more == "2 tasks come with the base: onboard tasks list --shipped"


def test_asked_for_they_stand_behind_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    _, *rows = printed(capsys, True, task("cola", source=True), task("tickets", source=False))
    assert [row.split()[0] for row in rows] == ["tickets", "cola"]


def test_nothing_learned_yet_is_no_empty_table(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = printed(capsys, False, task("cola", source=True))
    assert line.startswith("1 task comes with the base")
