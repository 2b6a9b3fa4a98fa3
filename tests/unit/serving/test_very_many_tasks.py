"""More tasks than are kept: what stays in memory is bounded, and what lies beyond it costs what the others cost."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from support.published import add_version, embedding_of
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.prediction import Prediction, Unanswered
from onboard.domain.task import Task
from onboard.errors import DamagedError, NotFoundError
from onboard.model.cores import PARTS
from onboard.model.hypernetwork import Hypernetwork
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.serving import Predictor
from onboard.serving.versions import RegistryVersions, ServedVersion
from onboard.storage.embedding import embedding_digest

LABELS = ("sad", "happy")
TASKS = [f"task-{number}" for number in range(12)]
INPUTS = [{"task": task, "text": text} for text in ("good film", "a bad plot") for task in TASKS]


@pytest.fixture
def services(tiny_services: Services, tiny_base: Base) -> Services:
    for number, task in enumerate(TASKS):
        add_version(tiny_services, tiny_base, task, LABELS, LABELS, z=embedding_of(number))
    return tiny_services


def spied(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[Any]:
    """The first argument of every call."""
    calls: list[Any] = []
    original = getattr(owner, name)

    def spy(self: Any, argument: Any) -> Any:
        calls.append(argument)
        return original(self, argument)

    monkeypatch.setattr(owner, name, spy)
    return calls


def test_more_tasks_than_are_kept_are_answered_alike_and_no_more_than_the_bound_is_kept(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    roomy = Predictor(services)
    expected = roomy.predict(INPUTS)
    bound = 4 * next(iter(roomy._versions._kept._entries.values())).kept_bytes
    loads = spied(monkeypatch, RegistryVersions, "_load")
    made = spied(monkeypatch, Hypernetwork, "forward")
    assert roomy.predict(INPUTS) == expected
    assert (loads, sum(len(z) for z in made) <= PARTS * len(TASKS)) == ([], True)
    products = len(made)
    tight = Predictor(services, kept_bytes=bound)
    for turn in (1, 2):
        made.clear()
        assert tight.predict(INPUTS) == expected
        assert 0 < tight.kept_bytes <= bound
        # beyond the bound a request reads each version that is not there once, and makes not one product more
        assert (len(loads), len(made)) == (turn * len(TASKS) - (turn - 1) * 4, products)
    assert len(tight._versions._kept._entries) == 4


def test_the_adapters_of_a_batch_are_made_in_one_product_for_its_own_tasks(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = Predictor(services)
    made = spied(monkeypatch, Hypernetwork, "forward")
    predictor.predict(INPUTS[: len(TASKS)])
    assert len(made) <= PARTS
    assert sum(map(len, made)) == len(TASKS)
    made.clear()
    predictor.predict([INPUTS[0]])
    assert [len(z) for z in made] == [1]


def test_the_task_that_was_asked_last_stays(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor(services)
    predictor.predict(INPUTS[:1])
    predictor = Predictor(services, kept_bytes=2 * next(iter(predictor._versions._kept._entries.values())).kept_bytes)
    loads = spied(monkeypatch, RegistryVersions, "_load")
    for place in (0, 1, 0, 2, 0, 1):
        predictor.predict([INPUTS[place]])
    assert [version.task for version in loads] == ["task-0", "task-1", "task-2", "task-1"]


def test_a_task_takes_less_than_4_kilobytes_and_is_weighed_with_what_it_takes() -> None:
    def version(number: int) -> ServedVersion:
        labels, words = json.loads(json.dumps([[f"label {number} {k}" for k in range(4)]] * 2))
        task = Task(f"task-{number}", "classification", tuple(labels), tuple(words), None, None)
        return ServedVersion(task, number, np.full(64, number, dtype=np.float32), 1, weak=False, pairs=None)

    version(0)
    gc.collect()
    tracemalloc.start()
    try:
        versions = {(f"task-{number}", number): version(number) for number in range(1000, 1500)}
        taken = tracemalloc.get_traced_memory()[0] / len(versions)
    finally:
        tracemalloc.stop()
    weight = versions["task-1000", 1000].kept_bytes
    assert taken <= weight <= 4096, (taken, weight)


def test_tasks_with_the_same_words_share_a_trie(tiny_base: Base) -> None:
    engine = load_engine(tiny_base, "cpu")
    assert engine.trie(["bad", "good"]) is engine.trie(("bad", "good"))
    assert engine.trie(["good", "bad"]) is not engine.trie(["bad", "good"])


def test_many_references_of_all_kinds_are_resolved_by_the_same_few_queries(
    services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_version(services, tiny_base, TASKS[0], LABELS, LABELS, z=embedding_of(20))
    resolved = spied(monkeypatch, VersionRepository, "resolve")
    asked = [{"task": TASKS[0], "ref": ref, "text": "good"} for ref in ("latest", "v1", "v2")] + INPUTS
    answers = Predictor(services).predict(asked)
    assert [answer.version for answer in answers[:3]] == [2, 1, 2]
    assert answers[0] == answers[2]
    assert resolved == []


def test_a_row_whose_version_cannot_answer_errs_and_the_others_are_answered(
    services: Services, tiny_base: Base
) -> None:
    nan = embedding_of(1)
    nan[3] = np.nan
    add_version(services, tiny_base, "nan", LABELS, LABELS, z=nan)
    other = embedding_digest(embedding_of(9))
    add_version(services, tiny_base, "swapped", LABELS, LABELS, z=embedding_of(8), embedding_digest=other)
    record = tuned_head(services, tiny_base, seed=23)
    name = record.digest.removeprefix("sha256:")
    path = services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name
    path.write_bytes(b"weights")
    add_version(services, tiny_base, "headless", LABELS, LABELS, hypernetwork_version=record.version)
    wrong = {"nothing": NotFoundError, "nan": DamagedError, "swapped": DamagedError, "headless": DamagedError}
    predictor = Predictor(services)
    inputs = [INPUTS[0], *({"task": task, "text": "good"} for task in wrong), INPUTS[1]]
    first, *errors, last = predictor.outcomes(inputs)
    assert [first, last] == predictor.predict([INPUTS[0], INPUTS[1]])
    for (task, kind), outcome in zip(wrong.items(), errors, strict=True):
        assert isinstance(outcome, Unanswered)
        assert (outcome.task, outcome.ref, type(outcome.error)) == (task, "latest", kind)
        assert outcome.to_json()["error"]["code"] == kind.code
    with pytest.raises(NotFoundError):
        predictor.predict(inputs)
    assert [isinstance(one, Prediction) for one in predictor.outcomes(inputs[1:5])] == [False] * 4
