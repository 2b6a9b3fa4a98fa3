"""Which trainings there are: task × rows × draw × arm, those that the numbers depend on first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final

from bench.heldout.plan import ArmRun

DEFAULT, LINEAR, TFIDF = "default", "linear", "tfidf"
FIRST: Final = (DEFAULT, LINEAR, TFIDF, "compacter", "pfeiffer-adapter", "adapters", "bitfit")
LATER: Final = ("adapter-low-rank", "compacter++", "phm-adapter", "adapters-dagger", "adapter-drop", "prompt-tuning-r")
ARMS: Final = (*FIRST, *LATER)
TARGETS: Final = ("trec", "scitail", "paws", "cb", "boolq", "imdb", "yelp_polarity")  # short texts first
# Held-out tasks of short texts, of several families: the rule is chosen on them.
WIDE: Final = (
    "nfcats_question", "airline_sentiment", "imppres_presupposition", "clickbait", "word_definition_match",
    "dailydialog_act", "suggestion_mining", "stac_dialogue_relation", "talkmoves_student", "code_comment_role",
    "talkmoves_teacher", "pun", "imppres_scalar", "esconv_strategy", "airline_complaint", "liar_verdict",
    "unhealthy_comment", "emotion_cause", "stackoverflow_emotion", "dailydialog_emotion",
)  # fmt: skip
# GLUE with few to many rows, as in the papers' low-resource figures; of RTE there are 2,239 rows to draw from.
SOURCE, CURVES, CURVE_ROWS = "source", ("sst2", "qqp", "rte"), (100, 500, 1000, 2000, 4000)
MOST_ROWS: Final = {"rte": 2000}
SUITES: Final = {"target": TARGETS, "wide": WIDE, SOURCE: CURVES}


def plan(
    suite: str, rows: Sequence[int], draws: Sequence[int], tasks: Sequence[str], arms: Sequence[str]
) -> list[ArmRun]:
    """The runs: of all tasks the arms that matter most, then the others; empty means every task, every arm."""
    return [
        ArmRun(task, count, draw, arm)
        for group in (FIRST, LATER)
        for count, draw, task in product(rows, draws, SUITES[suite])
        if (not tasks or task in tasks) and count <= MOST_ROWS.get(task, count)
        for arm in group
        if not arms or arm in arms
    ]
