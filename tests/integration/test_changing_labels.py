"""A task's labels are renamed, merged, deleted and described; each time a new version, and no alias moves by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from support.real_jobs import Desk, opinions, write_rows
from support.refusals import refused

from onboard.contract.changes import change_sentence
from onboard.domain.addition import Addition
from onboard.domain.job import JobState
from onboard.domain.label_change import LabelChange
from onboard.jobs.add import add
from onboard.jobs.labels import Relabeled, change_labels, list_labels
from onboard.serving.predictor import Predictor
from onboard.testing import MemoryDoorbell
from onboard.versions.promote import promote, rollback
from onboard.versions.readouts import readout_of

NEUTRAL = [{"text": f"it is what it is, number {place}", "label": "neutral"} for place in range(8)]


def changed(desk: Desk, action: Any, labels: Sequence[str], to: str | None = None, **more: Any) -> Relabeled:
    fast = more.pop("fast", False)
    asked = LabelChange(action, tuple(labels), to, **more)
    return change_labels(desk.services, MemoryDoorbell(), "mood", asked, fast=fast)


def answers(desk: Desk, reference: str) -> list[tuple[Any, list[float]]]:
    task, _, ref = reference.partition("@")
    rows = [{"task": task, "ref": ref or "latest", "text": row["text"]} for row in opinions(3, start=700)]
    return [(answer.label, list(answer.probabilities)) for answer in Predictor(desk.services).predict(rows)]


def test_a_renamed_label_answers_as_before_under_its_new_name(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    before = answers(desk, "mood")
    done = changed(desk, "rename", ["yes"], "liked")
    assert done.version is not None
    assert (done.version.version, done.queued) == (2, None)
    names = {"yes": "liked", "no": "no"}
    assert answers(desk, "mood@v2") == [(names[label], shares) for label, shares in before]
    assert answers(desk, "mood") == before  # aliases stay
    assert [part["label"] for part in list_labels(desk.services, "mood")["labels"]] == ["no", "liked"]
    assert change_sentence(desk.version("mood@v2").change or {}) == "Made of v1: the label 'yes' is called 'liked'."


def test_rows_that_are_added_later_have_the_new_name(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    changed(desk, "rename", ["yes"], "liked")
    more = [{**row, "label": {"yes": "liked", "no": "no"}[row["label"]]} for row in opinions(4, start=900)]
    added = add(desk.services, MemoryDoorbell(), "mood", Addition(write_rows(desk.folder / "more.jsonl", more)))
    assert added.change.counts == {"added": 4}
    desk.run(desk.claim())
    assert set(desk.version("mood@v3").labels) == {"no", "liked"}
    assert desk.version("mood").version == 1  # those who ask `latest` know the old names


def test_an_alias_may_keep_the_names_of_before(desk: Desk) -> None:
    desk.learn(opinions(24), method="linear")
    before = answers(desk, "mood")
    changed(desk, "rename", ["yes"], "liked")
    changed(desk, "rename", ["no"], "disliked")
    moved = promote(desk.services, "mood@v3", "latest", as_before=True)
    assert sorted(map(tuple, moved.names or ())) == [("disliked", "no"), ("liked", "yes")]
    assert answers(desk, "mood") == before
    assert {label for label, _ in answers(desk, "mood@v3")} <= {"liked", "disliked"}
    asked = [{"task": "mood", "text": "well", "labels": ["yes", "no"]}]
    assert Predictor(desk.services).predict(asked)[0].label in {"yes", "no"}
    rollback(desk.services, "mood", "latest")
    assert answers(desk, "mood") == before
    promote(desk.services, "mood@v3", "latest")
    assert {label for label, _ in answers(desk, "mood")} <= {"liked", "disliked"}


@pytest.mark.parametrize("action", ["merge", "delete", "describe"])
def test_other_changes_are_learned_from_kept_features_as_if_submitted_so(
    desk: Desk, action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from onboard.pipeline import material

    rows = [*opinions(24), *NEUTRAL]
    desk.learn(rows, method="linear")
    done = {
        "merge": lambda: changed(desk, "merge", ["neutral", "no"], "other"),
        "delete": lambda: changed(desk, "delete", ["neutral"]),
        "describe": lambda: changed(desk, "describe", ["neutral"], description="says nothing of it"),
    }[action]()
    assert done.queued is not None
    read = list[int]()
    reading = material.bare_features
    monkeypatch.setattr(
        material, "bare_features", lambda engine, ids, *more: (read.append(len(ids)), reading(engine, ids, *more))[1]
    )
    finished = desk.run(desk.claim())
    assert finished.state is JobState.SUCCEEDED
    assert sum(read) <= 2  # the new words at most
    assert desk.version("mood").version == 1
    as_if = {
        "merge": [{**row, "label": "yes" if row["label"] == "yes" else "other"} for row in rows],
        "delete": opinions(24), "describe": rows,
    }[action]  # fmt: skip
    options = {"descriptions": ("neutral=says nothing of it",)} if action == "describe" else {}
    desk.learn(as_if, "other", method="linear", **({"options": options} if options else {}))
    ours, theirs = (readout_of(desk.services, desk.version(name), ("yes",)) for name in ("mood@v2", "other@v1"))
    assert ours is not None
    assert theirs is not None
    if action != "describe":
        np.testing.assert_allclose(ours.bias, theirs.bias, rtol=1e-3, atol=1e-3)


def test_what_cannot_be_changed_is_refused(desk: Desk) -> None:
    desk.learn([*opinions(24), *NEUTRAL], method="linear")
    with refused("label-name-in-use", label="no"):
        changed(desk, "rename", ["yes"], "no")
    with refused("label-name-in-use", label="neutral"):
        changed(desk, "merge", ["yes", "no"], "neutral")
    changed(desk, "delete", ["neutral"])
    with refused("task-being-learned", task="mood"):
        changed(desk, "rename", ["yes"], "liked")
    desk.run(desk.claim())
    with refused("labels-left-too-few"):
        changed(desk, "delete", ["yes"])
    with refused("labels-left-too-few"):
        changed(desk, "merge", ["yes", "no"], "all")
