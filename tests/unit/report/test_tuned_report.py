"""What a report says of a tuned hypernetwork: the new task's gain, and every earlier task's verdict."""

from __future__ import annotations

from typing import Any

import pytest
from test_report_terminal import printed

from onboard.contract.guard import refused_by_guard
from onboard.report import render
from onboard.report.tuned import guard_notes, guard_rows, readout_facts, tuning_facts

PASSED = {
    "task": "sst2@v1", "verdict": "pass", "evidence": "held-out rows", "increase": 0.001, "low": -0.002, "high": 0.004,
    "rows": 872, "flipped": 3, "detectable": 0.006, "trouble": None,
}  # fmt: skip
FAILED = {
    "task": "trec@v2", "verdict": "fail", "evidence": "divergence", "increase": 0.05, "low": 0.01, "high": 0.09,
    "rows": 96, "flipped": 11, "detectable": 0.031, "trouble": None,
}  # fmt: skip
UNREADABLE = {"task": "mood@v1", "verdict": "not enough evidence", "trouble": "Its dataset cannot be read."}


def test_those_that_did_not_pass_stand_first_with_what_judged_them() -> None:
    assert guard_rows({"tasks": [PASSED, FAILED, UNREADABLE]}) == [
        ["trec@v2", "fail", "96 texts", "+0.050 (+0.010 to +0.090)", "11 of 96"],
        ["mood@v1", "not enough evidence: Its dataset cannot be read.", "–", "–", "–"],
        ["sst2@v1", "pass", "872 held-out rows", "+0.001 (-0.002 to +0.004)", "3 of 872"],
    ]


def test_what_the_verdicts_cannot_show_is_said() -> None:
    rule = "half of them nearest to the new task"
    shared, detectable, unchecked = guard_notes(
        {"share": 0.25, "tasks": [PASSED, FAILED], "unchecked": 1200, "chosen": rule}
    )
    assert shared.startswith("25% of the step was accepted")
    assert "0.006 nats" in detectable
    assert unchecked == f"1,200 more were not checked. Looked at: {rule}."
    assert guard_notes({"share": 1.0, "tasks": [UNREADABLE], "unchecked": 0}) == []


def test_who_did_not_let_more_of_the_step_through_is_named() -> None:
    many = [f"task-{number}@v1" for number in range(5)]
    (said,) = guard_notes(
        {"share": 0.25, "objections": [{"share": 1.0, "tasks": many}, {"share": 0.5, "tasks": ["trec@v2"]}]}
    )
    assert said == (
        "25% of the step was accepted: task-0@v1, task-1@v1, task-2@v1 and 2 more did not pass with 100%; "
        "trec@v2 did not pass with 50%."
    )


MOVED = "It moved while v4 was tuned. The step was moved onto the new head, and the guard judged it there."


@pytest.mark.parametrize(
    ("tuning", "guard", "said"),
    [
        (None, None, []),
        ({"kept": False, "reason": "It is right already."}, None, ["unchanged", "It is right already."]),
        ({"kept": True, "reason": "The loss fell."}, {"verdict": "accepted"}, ["tuned too", "The loss fell."]),
        ({"kept": False, "reason": "Refused."}, {"verdict": "rejected", "reason": "Refused."}, ["unchanged"]),
        ({"kept": False, "reason": "No better."}, {"verdict": "accepted", "share": 0.5}, ["unchanged", "No better."]),
        (
            {"kept": True, "reason": "The loss fell.", "moved_from": 4},
            {"verdict": "accepted"},
            ["tuned too", "The loss fell.", MOVED],
        ),
    ],
)
def test_the_training_says_what_became_of_the_hypernetwork(tuning: Any, guard: Any, said: list[str]) -> None:
    assert [value for _, value in tuning_facts({"tuning": tuning, "guard": guard})] == said


def test_both_reports_show_the_table_and_its_notes(document: dict[str, Any]) -> None:
    document["guard"] = {"verdict": "accepted", "share": 0.5, "tasks": [FAILED, PASSED], "unchecked": 7}
    document["tuning"] = {"asked": "always", "kept": True, "reason": "The loss went from 0.9 to 0.4 nats."}
    facts = "trec@v2", "872 held-out rows", "50% of the step", "7 more were not checked", "0.9 to 0.4"
    for shown in (render(document), printed(document, width=140)):
        assert [fact for fact in facts if fact not in shown] == []


@pytest.mark.parametrize(
    ("asked", "verdict", "refused"),
    [("always", "rejected", True), ("always", "accepted", False), ("auto", "rejected", False), (None, None, False)],
)
def test_only_tuning_that_was_insisted_on_can_be_refused(asked: Any, verdict: Any, refused: bool) -> None:
    document = {"tuning": asked and {"asked": asked}, "guard": verdict and {"verdict": verdict}}
    assert refused_by_guard(document) is refused


def test_the_readout_is_told_with_what_it_adds() -> None:
    facts = readout_facts({"readout": {"asked": "auto", "share": 0.65, "reason": "With it the loss is 0.4 nats."}})
    assert facts == [("readout", "65% of the answer"), ("its contribution", "With it the loss is 0.4 nats.")]
    assert readout_facts({"readout": {"share": 0.0, "reason": ""}}) == [("readout", "none")]
    assert readout_facts({"readout": None}) == readout_facts({}) == []
