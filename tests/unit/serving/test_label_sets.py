"""Answers that are chosen from some of a task's labels."""

from __future__ import annotations

import numpy as np
import pytest
from support.command_line import CommandLine
from support.published import add_version, embedding_of
from support.refusals import refused

from onboard.bases import Base
from onboard.domain.task import Task
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.serving.versions import ServedVersion
from onboard.statistics.readout import Readout

LABELS = (True, 3, "3", "bad")
WORDS = ("good", "film", "plot", "bad")
TEXTS = ["good film", "a bad plot", "the film was great and not sad"]


@pytest.fixture
def predictor(tiny_services: Services, tiny_base: Base) -> Predictor:
    add_version(tiny_services, tiny_base, "all", LABELS, WORDS, z=embedding_of(2))
    add_version(tiny_services, tiny_base, "some", (LABELS[0], LABELS[3]), (WORDS[0], WORDS[3]), z=embedding_of(2))
    add_version(tiny_services, tiny_base, "stars", bounds=(1.0, 5.0), z=embedding_of(4))
    return Predictor(tiny_services)


def test_the_answer_is_that_of_a_task_that_has_no_other_labels(predictor: Predictor) -> None:
    inputs = [{"task": "all", "text": text} for text in TEXTS]
    free = predictor.predict(inputs)
    mixed = predictor.predict([*({**asked, "labels": ["bad", True]} for asked in inputs), *inputs])
    expected = predictor.predict([{"task": "some", "text": text} for text in TEXTS])
    for answer, same in zip(mixed[:3], expected, strict=True):
        assert (answer.label, answer.labels) == (same.label, (True, "bad"))
        np.testing.assert_allclose(answer.probabilities, same.probabilities, atol=1e-5)
    for answer, same in zip(mixed[3:], free, strict=True):
        assert answer.labels == LABELS
        np.testing.assert_allclose(answer.probabilities, same.probabilities, atol=1e-5)


def test_a_text_stands_for_a_typed_label_where_no_label_is_that_text(predictor: Predictor) -> None:
    def chosen(*labels: object) -> tuple[object, ...]:
        (answer,) = predictor.predict([{"task": "all", "text": "good", "labels": list(labels)}])
        return answer.labels

    assert chosen("true", "3") == (True, "3")
    assert [type(label) for label in chosen(3, "3")] == [int, str]


@pytest.mark.parametrize("labels", [["bad"], ["bad", "bad"], ["bad", "nothing"], ["bad", 1], [True, "true"]])
def test_a_set_of_one_or_of_unknown_labels_is_refused_with_those_that_there_are(
    predictor: Predictor, labels: list[object]
) -> None:
    with refused("input-labels-wrong", row=2, task="all", version="all@latest") as caught:
        predictor.predict([{"task": "all", "text": "good"}, {"task": "all", "text": "good", "labels": labels}])
    assert (caught.value.data["row"], caught.value.data["field"]) == (2, "labels")
    assert "true, 3, 3, bad" in caught.value.remedy


def test_a_regression_has_no_labels_to_choose_from(predictor: Predictor) -> None:
    with refused("input-labels-of-regression"):
        predictor.predict([{"task": "stars", "text": "good", "labels": [1.0, 2.0]}])


def test_a_readout_answers_among_the_same_labels() -> None:
    readout = Readout(np.arange(8, dtype=np.float16).reshape(4, 2), 1.0, np.arange(4, dtype=np.float32))
    served = ServedVersion(Task("all", "classification", LABELS, WORDS), 1, embedding_of(1), 1, False, None, readout)
    some = served.among((1, 3))
    assert (some.task.labels, some.task.words) == ((3, "bad"), ("film", "bad"))
    assert some.readout is not None
    np.testing.assert_array_equal(some.readout.bias, [1.0, 3.0])
    np.testing.assert_array_equal(some.readout.weights, [[2, 3], [6, 7]])


def test_the_command_takes_labels_and_refuses_those_that_are_none(
    predictor: Predictor, tiny_services: Services, command_line: CommandLine
) -> None:
    command_line.at_home(tiny_services.settings)
    said = command_line("predict", "all", "--text", "good", "--labels", "bad, true", "--probabilities", "--json")
    (answer,) = said.document["predictions"]
    assert [share["label"] for share in answer["probabilities"]] == [True, "bad"]
    said = command_line("predict", "all", "--text", "good", "--labels", "bad,worse")
    assert (said.code, "true, 3, 3, bad" in said.err) == (2, True)
