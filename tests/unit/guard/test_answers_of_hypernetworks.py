"""Tasks under different hypernetworks, mixed in one batch, answer as each does alone."""

from __future__ import annotations

import numpy as np
import pytest
from support.guarded import Counted, shaken, texts
from support.published import embedding_of

from onboard.errors import CancelledError
from onboard.guard.answers import Question, answers
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine


@pytest.fixture
def questions(tiny_engine: Engine) -> list[Question]:
    other = shaken(tiny_engine.hypernetwork, 0.5)
    words = [("yes", "no"), ("good", "bad", "other"), ("yes", "no"), ("film", "plot")]
    hypernetworks = [other, tiny_engine.hypernetwork, other, tiny_engine.hypernetwork]
    return [
        Question(hypernetwork, embedding_of(seed), tiny_engine.trie(own), texts(tiny_engine, 3 + seed, seed))
        for seed, (own, hypernetwork) in enumerate(zip(words, hypernetworks, strict=True))
    ]


@pytest.mark.parametrize("generated_bytes", [1, 2**28])
def test_each_task_is_answered_by_its_own_hypernetwork(
    tiny_engine: Engine, questions: list[Question], generated_bytes: int
) -> None:
    scored = answers(tiny_engine, questions, generated_bytes=generated_bytes)
    own = tiny_engine.hypernetwork
    for question, scores in zip(questions, scored, strict=True):
        tiny_engine.hypernetwork = question.hypernetwork
        alone = log_probabilities(tiny_engine, question.ids, question.z, question.trie)
        np.testing.assert_allclose(scores, alone, atol=1e-5)
        assert scores.dtype == np.float64
    tiny_engine.hypernetwork = own


def test_tasks_are_mixed_and_not_answered_one_by_one(tiny_engine: Engine, questions: list[Question]) -> None:
    batches = Counted()
    answers(tiny_engine, questions, batches)
    assert batches.calls == 1


def test_a_checkpoint_stops_it(tiny_engine: Engine, questions: list[Question]) -> None:
    def stop(_: int) -> None:
        raise CancelledError("The job was cancelled.")

    with pytest.raises(CancelledError):
        answers(tiny_engine, questions, Counted(stop))


def test_nothing_asked_nothing_answered(tiny_engine: Engine) -> None:
    assert answers(tiny_engine, []) == []
