"""Documents: read strictly from a service, stored ones of earlier releases as they are, records with their moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import Field
from support.refusals import refused

from onboard.contract.access import Me, TokenDocument
from onboard.contract.document import Document, Label, later, read
from onboard.contract.guard import GuardedTask, GuardVerdict, Tuning, refused_by_guard
from onboard.contract.priors import PriorUse
from onboard.contract.versions import AliasMoveDocument, VersionDocument
from onboard.domain.access import Scope, Token
from onboard.domain.task import AliasMove

# As the releases wrote them: the first, which tried no smaller shares; the second; and a tuning that diverged.
GUARDS: list[dict[str, Any]] = [
    {
        "verdict": "accepted", "share": 1.0, "margin": 0.02, "reason": "No task loses.", "unchecked": 0, "chosen": None,
        "tasks": [
            {
                "task": "a@v1", "verdict": "pass", "evidence": "divergence", "increase": 0.0, "low": -0.1, "high": 0.01,
                "rows": 96, "flipped": 0, "detectable": None, "trouble": None,
            }
        ],
    },
    {
        "verdict": "rejected", "share": 0.0, "margin": 0.02, "reason": "a@v1 may lose by it.", "unchecked": 3,
        "chosen": "those at risk", "tasks": [], "objections": [{"share": 1.0, "tasks": ["a@v1"]}],
    },
    {"verdict": "rejected", "share": 0.0, "reason": "It diverged.", "tasks": []},
]  # fmt: skip
TUNINGS: list[dict[str, Any]] = [
    {"asked": "auto", "tried": False, "kept": False, "reason": "There are too few rows."},
    {
        "asked": "always", "tried": True, "kept": True, "reason": "The loss went down.", "learning_rate": 1e-5,
        "regulariser": "drift", "steps": 2, "loss": [0.6, 0.5], "penalty": [0.0, 0.1], "drift": 0.01, "proposed": 0.5,
        "by_share": {"0": 0.6, "0.5": 0.5}, "before": 0.6, "after": 0.5, "evidence": "held-out rows", "rows": 40,
    },
    {"asked": "auto", "tried": True, "kept": False, "reason": "…", "of_a_later_release": {"a": 1}},
]  # fmt: skip
PRIORS: list[dict[str, Any]] = [
    {"form": "single", "version": 2, "digest": "sha256:p", "left_out": ["a"], "scale": 0.0, "lessons": 3, "tasks": []},
    {
        "form": "pairs", "version": 1, "digest": "sha256:p", "left_out": [], "scale": 1.0, "lessons": 3,
        "tasks": [{"task": "a", "share": 0.75}], "rows": 30, "metric": "accuracy", "with_prior": 80.0, "without": 70.0,
    },
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "stored"),
    [
        *((GuardVerdict, document) for document in GUARDS),
        *((Tuning, document) for document in TUNINGS),
        *((PriorUse, document) for document in PRIORS),
    ],
)
def test_what_an_earlier_release_stored_is_read_and_shown_as_it_was(
    kind: type[Document], stored: dict[str, Any]
) -> None:
    assert kind.model_validate(stored).to_json() == stored


def test_what_is_changed_in_a_stored_document_is_shown_and_nothing_else() -> None:
    tuning = Tuning.model_validate(TUNINGS[0]).model_copy(update={"kept": True})
    assert tuning.to_json() == {**TUNINGS[0], "kept": True}


def test_a_task_that_cannot_be_judged_is_shown_with_every_key() -> None:
    assert set(GuardedTask.unjudged("a", "Its rows are gone.").to_json()) == set(GuardedTask.model_fields)


def test_the_guard_refused_only_what_was_to_be_tuned_in_any_case() -> None:
    assert refused_by_guard({"tuning": {"asked": "always"}, "guard": GUARDS[1]})
    assert not refused_by_guard({"tuning": {"asked": "auto"}, "guard": GUARDS[1]})
    assert not refused_by_guard({"tuning": {"asked": "always"}, "guard": GUARDS[0]})


class Part(Document):
    label: Label
    earlier: Label = Field(alias="a")


class Whole(Document):
    number: int
    share: float
    parts: tuple[Part, ...] = ()
    by_name: dict[str, int] = Field(default_factory=dict)
    maybe: str | None = later()


@pytest.mark.parametrize(
    ("answer", "problem", "key"),
    [
        ({"share": 1}, "missing", "number"),
        ({"number": "1", "share": 1}, "wrong", "number"),
        ({"number": True, "share": 1}, "wrong", "number"),
        ({"number": 1, "share": 1, "parts": 3}, "wrong", "parts"),
        ({"number": 1, "share": 1, "parts": [{"label": [], "a": 1}]}, "wrong", "label"),
        ({"number": 1, "share": 1, "parts": [{"label": 1}]}, "missing", "a"),
        ({"number": 1, "share": 1, "by_name": {"x": None}}, "wrong", "x"),
    ],
)
def test_an_answer_that_cannot_be_read_names_the_part(answer: Any, problem: str, key: str) -> None:
    with refused(f"answer-key-{problem}", place="here", **{problem: key}):
        read(Whole, answer, "here")


def test_an_answer_keeps_what_this_release_does_not_know_and_labels_keep_their_types() -> None:
    labels = [1, True, 1.0, "1"]
    answer = {"number": 1, "share": 1, "parts": [{"label": label, "a": 0} for label in labels], "of_later": [1]}
    whole = read(Whole, answer, "here")
    assert whole.document == answer
    assert [(type(part.label), part.label) for part in whole.parts] == [(type(label), label) for label in labels]
    assert "of_later" not in whole.to_json()
    assert whole.to_json()["parts"][0] == {"label": 1, "a": 0}
    assert whole.maybe is None


@dataclass
class Record:
    task: str = "mood"
    alias: str = "latest"
    version: int = 2
    previous: int | None = None
    at: float = 0.25
    actor: str | None = None
    reason: str = "published"


def test_a_record_is_shown_with_its_moments_in_utc() -> None:
    move = AliasMoveDocument.of(Record(), reason="promoted")
    assert move.at == "1970-01-01T00:00:00.250Z"
    assert (move.task, move.reason, move.previous) == ("mood", "promoted", None)
    assert AliasMoveDocument.of(AliasMove("mood", "latest", 2, None, 0.25)).to_json()["at"] == move.at


def test_a_version_of_an_earlier_service_is_read_without_what_came_later() -> None:
    answer = {
        "task": "mood", "version": 3, "labels": ["bad", "good"], "metrics": {"test": {}}, "weak": False,
        "parent": "sst2@v1", "hypernetwork_version": 1, "created_at": "2026-01-01T00:00:00.000Z",
    }  # fmt: skip
    version = read(VersionDocument, answer, "here")
    assert (version.reference, version.init, version.method, version.provisional) == ("mood@v3", "sst2@v1", None, False)


def test_the_scopes_of_an_answer_are_read_and_those_of_a_record_are_in_order() -> None:
    answer = {"name": "n", "actor": "a", "scopes": ["read", "admin"], "onboard": "1"}
    assert read(Me, answer, "here").scopes == (Scope.READ, Scope.ADMIN)
    token = Token("1", "n", frozenset({Scope.ADMIN, Scope.SUBMIT}), 0.0, "somebody")
    assert TokenDocument.of(token).to_json()["scopes"] == ["submit", "admin"]
    with refused("answer-key-wrong", wrong="scopes"):
        read(Me, {**answer, "scopes": ["everything"]}, "here")
