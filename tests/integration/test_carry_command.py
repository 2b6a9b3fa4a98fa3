"""`onboard tasks carry`: its document, its words for people and its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest
from support.command_line import CommandLine, Said
from support.published import add_version, embedding_of
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.registry.services import Services
from onboard.versions.carry import tasks

Carry = Callable[..., Said]
HARMLESS, HARMFUL = 1e-4, 3.0


@pytest.fixture
def onboard(tiny_services: Services, tiny_base: Base, command_line: CommandLine) -> Carry:
    """`onboard tasks carry` in a home with mood@v1."""
    add_version(tiny_services, tiny_base, "mood", ("sad", "glad"), ("bad", "good"), z=embedding_of(3))
    command_line.at_home(tiny_services.settings)
    return partial(command_line, "tasks", "carry")


def test_a_task_at_the_head_has_nothing_to_do(onboard: Carry) -> None:
    assert onboard("mood")[:2] == (0, "mood is already at the head.\n")
    assert onboard("--all")[:2] == (0, "Every task is already at the head.\n")
    code, out, _ = onboard("mood", "--json")
    assert (code, json.loads(out)) == (0, {"dry_run": False, "carried": [], "refused": []})


def test_what_is_carried_is_shown_with_its_new_version(
    onboard: Carry, tiny_services: Services, tiny_base: Base
) -> None:
    tuned_head(tiny_services, tiny_base, HARMLESS)
    code, out, _ = onboard("mood", "--dry-run")
    assert code == 0
    assert "cleared" in out
    code, out, _ = onboard("mood", "--json")
    assert (code, [outcome["version"] for outcome in json.loads(out)["carried"]]) == (0, [2])
    assert onboard("mood")[1] == "mood is already at the head.\n"


def test_a_named_task_that_is_refused_ends_with_4_and_all_with_0(
    onboard: Carry, tiny_services: Services, tiny_base: Base
) -> None:
    tuned_head(tiny_services, tiny_base, HARMFUL)
    for more in ((), ("--dry-run",)):
        code, out, _ = onboard("mood", "--json", *more)
        assert (code, [outcome["task"] for outcome in json.loads(out)["refused"]]) == (4, ["mood"])
    code, out, _ = onboard("mood")
    assert code == 4
    assert "stays" in out
    assert "Submit them again" in out
    code, out, _ = onboard("--all", "--json")
    assert (code, "mood" in [outcome["task"] for outcome in json.loads(out)["refused"]]) == (0, True)


def test_all_tells_how_far_it_is_on_standard_error(
    onboard: Carry, tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "MOST_TASKS", 1)
    tuned_head(tiny_services, tiny_base, HARMLESS)
    assert onboard("--all", "--dry-run", "--json")[2].split("\n")[-4:] == [
        "mood: cleared", "sst2: cleared", "stsb: cleared", "",
    ]  # fmt: skip
    assert onboard("--all", "--json")[2].split("\n")[-4:] == ["mood: v2", "sst2: v2", "stsb: v2", ""]


@pytest.mark.parametrize("words", [(), ("mood", "--all")])
def test_either_a_task_is_named_or_all_are_meant(onboard: Carry, words: tuple[str, ...]) -> None:
    code, out, _ = onboard(*words, "--json")
    assert (code, json.loads(out)["error"]["code"]) == (2, "input")


def test_a_task_that_is_not_there_ends_with_3(onboard: Carry) -> None:
    assert onboard("nothing")[0] == 3
