"""Requests that come at the same time are answered together: as alone, each with its own errors and deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from support.published import add_version, embedding_of
from support.refusals import refused as error_of

from bench.harness.services import wait_until
from onboard.api import prediction_queue
from onboard.api.gathering import Deadline, Gathering
from onboard.api.prediction_queue import PredictionQueue
from onboard.api.turns import Turns
from onboard.bases import Base
from onboard.domain.prediction import Prediction
from onboard.errors import DeadlineError, InputError, NotFoundError, OnboardError
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services

LABELS = ("sad", "happy")
TEXTS = ("a good film", "sad", "the plot was awful and long", "good good good")


@pytest.fixture
def services(tiny_services: Services, tiny_base: Base) -> Services:
    for seed, task in enumerate(("mood", "tone")):
        add_version(tiny_services, tiny_base, task, LABELS, LABELS, z=embedding_of(seed), pairs=False)
    return tiny_services


class Counted:
    """A predictor that says how many requests each of its calls had; the first call waits until it may go on."""

    def __init__(self, queue: PredictionQueue, hold: bool = True) -> None:
        self.real, self.calls = queue._loaded(), list[int]()
        self.inside, self.proceed = threading.Event(), threading.Event()
        if not hold:
            self.proceed.set()
        queue._predictor = self  # type: ignore[assignment]

    def answer_others(self, requests: Sequence[Any], before_batch: Callable[[], None]) -> Any:
        self.calls.append(len(requests))
        self.inside.set()
        assert self.proceed.wait(30)
        return self.real.answer_others(requests, before_batch)


def waiting(queue: PredictionQueue) -> int:
    return len(queue._gathering._waiting)


def asked_at_once(queue: PredictionQueue, asked: Sequence[list[dict[str, Any]]]) -> tuple[list[Any], Counted]:
    """What requests get that come while another one is answered, and the calls of the model that it took."""
    counted = Counted(queue)

    def ask(inputs: list[dict[str, Any]]) -> Any:
        try:
            return queue.predict(inputs)
        except OnboardError as error:
            return error

    with ThreadPoolExecutor(len(asked) + 1) as pool:
        first = pool.submit(ask, [{"task": "mood", "text": "good"}])
        assert counted.inside.wait(30)
        others = []
        for inputs in asked:
            others.append(pool.submit(ask, inputs))
            wait_until(lambda: waiting(queue) == len(others), 10, "one more to wait")
        counted.proceed.set()
        assert isinstance(first.result()[0], Prediction)
        return [other.result() for other in others], counted


def test_answers_are_the_same_alone_and_together(services: Services) -> None:
    asked = [
        [{"task": task, "text": text} for text in TEXTS[: 1 + place % 3]]
        for place, task in enumerate(["mood", "tone"] * 4)
    ]
    queue = PredictionQueue(services)
    alone = [queue.predict(inputs) for inputs in asked]
    together, counted = asked_at_once(queue, asked)
    assert counted.calls == [1, sum(map(len, asked))]
    for before, after in zip(alone, together, strict=True):
        for one, other in zip(before, after, strict=True):
            assert (one.task, one.version, one.label) == (other.task, other.version, other.label)
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-5)


def test_what_is_wrong_with_a_request_is_its_own(services: Services) -> None:
    fine = [{"task": "mood", "text": "good"}]
    wrong = [{"task": "mood", "text": "good"}, {"task": "mood", "text_a": "good", "text_b": "sad"}]
    (good, pair, unknown, both), _ = asked_at_once(
        PredictionQueue(services),
        [fine, wrong, [{"task": "nothing", "text": "x"}], [*fine, {"task": "no", "text": "x"}]],
    )
    assert isinstance(good[0], Prediction)
    assert isinstance(pair, InputError)
    assert pair.data["row"] == 2
    assert isinstance(unknown, NotFoundError)
    assert [type(outcome).__name__ for outcome in both] == ["Prediction", "Unanswered"]


def test_no_more_are_put_together_than_fit(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_queue, "MOST_TOGETHER", 4)
    asked = [[{"task": "mood", "text": text} for text in TEXTS[:3]]] * 2 + [[{"task": "tone", "text": "sad"}]] * 2
    answers, counted = asked_at_once(PredictionQueue(services), asked)
    assert [len(outcomes) for outcomes in answers] == [3, 3, 1, 1]
    assert counted.calls == [1, 3, 4, 1]


def test_an_alias_is_followed_by_the_next_request(services: Services, tiny_base: Base) -> None:
    queue = PredictionQueue(services)
    assert queue.predict([{"task": "mood", "text": "good"}])[0].version == 1  # type: ignore[union-attr]
    add_version(services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(5))
    assert queue.predict([{"task": "mood", "text": "good"}])[0].version == 2  # type: ignore[union-attr]
    with services.database.write() as session:
        AliasRepository(session).move("mood", "latest", 1, expected=2)
    assert queue.predict([{"task": "mood", "text": "good"}])[0].version == 1  # type: ignore[union-attr]


def test_who_finds_no_room_is_to_come_again(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_queue, "MOST_WAITING_CHARACTERS", 10)
    queue = PredictionQueue(services)
    counted = Counted(queue)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(queue.predict, [{"task": "mood", "text": "a text longer than that"}])
        assert counted.inside.wait(30)
        with error_of("too-many-texts-waiting") as caught:
            queue.predict([{"task": "mood", "text": "more"}])
        counted.proceed.set()
        first.result()
    assert (caught.value.http_status, caught.value.data["retry_after_seconds"]) == (429, 1)
    queue.predict([{"task": "mood", "text": "its room was given back"}])


def test_a_deadline_is_kept_in_the_queue_and_between_batches(services: Services) -> None:
    queue = PredictionQueue(services)
    counted = Counted(queue)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(queue.predict, [{"task": "mood", "text": "good"}])
        assert counted.inside.wait(30)
        with error_of("prediction-too-late"):
            queue.predict([{"task": "mood", "text": "good"}], seconds=0.05)
        assert waiting(queue) == 0
        counted.proceed.set()
        first.result()
    many = [{"task": "mood", "text": f"good {row}"} for row in range(prediction_queue.MOST_TOGETHER + 1)]
    with pytest.raises(DeadlineError):
        queue.predict(many, seconds=1e-6)
    assert isinstance(queue.predict([{"task": "mood", "text": "good"}])[0], Prediction)


def test_of_requests_that_are_taken_along_only_those_in_time_are_answered() -> None:
    now, seen = [0.0], list[int]()

    def answer(requests: Sequence[Any], before_batch: Callable[[], None]) -> Sequence[Any]:
        seen.append(len(requests))
        return list(requests)

    gathering = Gathering(Turns(), answer, 8)
    late = Deadline(1.0, lambda: now[0])
    now[0] = 2.0
    with pytest.raises(DeadlineError):
        gathering.outcomes(["a"], late, lambda: None)  # type: ignore[list-item]
    assert gathering.outcomes(["b"], Deadline(9.0), lambda: None) == ["b"]  # type: ignore[list-item,comparison-overlap]
    assert seen == [1]


def test_a_fault_of_one_keeps_nobody_from_an_answer_that_is_made() -> None:
    turns = Turns()

    def answer(requests: Sequence[Any], before_batch: Callable[[], None]) -> Sequence[Any]:
        if "wrong" in requests:
            raise InputError("One is wrong.", "Ask otherwise.") if len(requests) > 1 else RuntimeError("a fault")
        return list(requests)

    gathering = Gathering(turns, answer, 8)

    def ask(request: Any) -> Any:
        try:
            return gathering.outcomes([request], Deadline(30.0), lambda: None)
        except (OnboardError, RuntimeError) as error:
            return error

    with ThreadPoolExecutor(3) as pool:
        with turns.taken():
            asked = []
            for request in ("first", "second", "wrong"):
                asked.append(pool.submit(ask, request))
                wait_until(lambda: len(gathering._waiting) == len(asked), 10, "one more to wait")
        first, second, wrong = (future.result() for future in asked)
    assert (first, second, type(wrong)) == (["first"], ["second"], RuntimeError)


def test_over_http_a_deadline_is_a_header(door: TestClient, services: Services) -> None:
    body = {"inputs": [{"task": "mood", "text": "good"}]}
    assert door.post("/v1/predict", json=body, headers={"Onboard-Deadline-Seconds": "60"}).status_code == 200
    answer = door.post("/v1/predict", json=body, headers={"Onboard-Deadline-Seconds": "0.000001"})
    assert (answer.status_code, answer.json()["code"]) == (504, "deadline")
    assert answer.headers["Retry-After"]
    for wrong in ("0", "-1", "nan", "soon", "601"):
        refused = door.post("/v1/predict", json=body, headers={"Onboard-Deadline-Seconds": wrong})
        assert (refused.status_code, refused.json()["field"]) == (422, "Onboard-Deadline-Seconds")
