"""The tasks of the stream: fifteen that no base has learned, one of a family each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bench.harness.as_if_new import drawn_tests
from bench.transfer.material import read
from onboard.data.splits import shots
from onboard.domain.dataset import Dataset, Example

SUITE: Final = "wide"
TASKS: Final[Mapping[str, str]] = {
    "airline_sentiment": "sentiment of a tweet to an airline",
    "causal_language": "how a sentence of a paper claims a cause",
    "dailydialog_act": "what a line of a dialogue does",
    "dailydialog_emotion": "emotion of a line, after the one before it",
    "edos_sexism": "is a comment sexist",
    "emotion_cause": "does a clause cause the emotion of a sentence",
    "imppres_presupposition": "does a sentence presuppose another",
    "indian_court_role": "what a sentence of a judgment does",
    "it_ticket": "topic of a support ticket",
    "jfleg_corrected": "which of two sentences is the corrected one",
    "kpa_keypoint_match": "does an argument make a key point",
    "nfcats_question": "what a question asks for",
    "strategyqa_facts": "yes or no, from facts",
    "suggestion_mining": "is a sentence a suggestion",
    "twitter_url_paraphrase": "do two tweets say the same",
}


def in_order(names: Sequence[str], order: int) -> list[str]:
    """The tasks as the stream of that number (from 0) brings them."""
    return [names[place] for place in np.random.default_rng(order).permutation(len(names))]


def drawn(folder: Path, rows: int, order: int, test_rows: int) -> tuple[Dataset, list[Example]]:
    """So many labelled rows of a task, drawn again in each order, and its test rows, always the same ones.

    Args:
        folder: of the task.
        rows: labelled rows in all.
        order: seed of the draw.
        test_rows: most rows to test on.
    """
    whole = read(folder)
    return shots(whole, rows, order), drawn_tests(whole, test_rows)
