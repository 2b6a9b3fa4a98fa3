"""Practice tasks of a base are told in words."""

from __future__ import annotations

import re

import pytest

from onboard.bases import find_base
from onboard.report.practice import practice_task


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("topics-all-40-films-sport-food", "what a text is about (films, sport, food)"),
        ("topics-all-12-about-trump-no-yes", "what a text is about (trump, no, yes)"),
        ("topics-all-12-syria-joan-films-trump-online-da31b0a4", "what a text is about (syria, joan, films, trump, …)"),
        ("form-tense-past-present", "how a text is phrased (tense, past, present)"),
        ("style-formal-formal-casual", "how a text is written or where it is from (formal, formal, casual)"),
        ("joint-mnli-qqp-false-true", "mnli and qqp together (false, true)"),
        ("joined-cola-few-fine-broken", "long texts of cola (fine, broken)"),
        ("qnli-not_entailment-entailment", "qnli with other words (not entailment, entailment)"),
        ("mnli-only-yes-no", "mnli with other words (yes, no)"),
    ],
)
def test_the_name_is_told_in_words(name: str, words: str) -> None:
    assert practice_task(name) == f"a practice task of the base: {words}"


def test_a_name_that_no_curriculum_made_says_nothing_more() -> None:
    assert practice_task("elsewhere") == "a practice task of the base"


def test_every_practice_task_of_the_shipped_base_is_told_by_kind() -> None:
    base = find_base("mini")
    lines = [practice_task(name) for name in (anchor.name for anchor in base.anchors)]
    assert all(line.isprintable() and len(line) < 120 for line in lines)
    kinds = {line.split(": ")[1].split(" (")[0] for line in lines}
    sources = re.compile("|".join(sorted((source.name for source in base.sources), key=len, reverse=True)))
    assert len({sources.sub("SOURCE", kind) for kind in kinds}) < 12
