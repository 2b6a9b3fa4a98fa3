"""What a new task is like, in the words of the base's own tasks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from onboard.bases import Base
from onboard.contract.report import CandidateScore
from onboard.pipeline.probe import most_like
from onboard.probe.candidates import ProbeResult


def score(name: str) -> CandidateScore:
    return CandidateScore(embedding=name, loss=0.5, low=0.4, high=0.6, rows=16, overlap=0, words=())


TITLED = {"kind": "classification", "labels": ["a", "b"], "words": ["a", "b"]}
BASE = Base(Path(), {"name": "ours", "sources": {
    "flights": {**TITLED, "title": "what a question about flights asks"}, "sst2": {**TITLED, "title": "sentiment"},
    "polite": {**TITLED, "title": "politeness"}, "poems": {**TITLED, "title": "mood of a verse"}, "untold": TITLED,
}})  # fmt: skip
CHOSEN = score("random")
RESULT = ProbeResult(CHOSEN, np.zeros(64, np.float32), tuple(map(score, ("random", "poems@v1", "sst2@v1"))), 0)


def test_the_nearest_comes_first_and_what_has_no_words_is_passed_over() -> None:
    assert most_like(RESULT, BASE) == {"poems@v1": "mood of a verse", "sst2@v1": "sentiment"}
    assert most_like(replace(RESULT, scores=(score("untold@v1"), score("flights-yes-no"))), BASE) == {}


def test_a_mixture_is_told_by_its_parts_the_heaviest_first_and_three_are_enough() -> None:
    mixed = replace(RESULT, weights={"sst2@v1": 0.2, "flights@v1": 0.7, "polite@v1": 0.1})
    assert list(most_like(mixed, BASE)) == ["flights@v1", "sst2@v1", "polite@v1"]


def test_nothing_is_like_a_task_that_nothing_learned_is_worth_a_start_for() -> None:
    assert most_like(replace(RESULT, alarm="No candidate is a better start than random."), BASE) == {}
