"""Requests for predictions take turns, batch by batch."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient
from support.refusals import refused

from bench.harness.services import wait_until
from onboard.api import prediction_queue
from onboard.api.app import create_app
from onboard.api.prediction_queue import MOST_WAITING, PredictionQueue
from onboard.api.turns import Turns
from onboard.domain.task import EmbeddingVersion
from onboard.errors import UnavailableError
from onboard.registry.services import Services
from onboard.serving import predictor

ROW = {"task": "mood", "text": "a good film"}


class Fake:
    """A predictor whose batches have one row; `meanwhile` happens after the first of a request."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.seen: list[int] = []
        self.busy = threading.Lock()
        self._meanwhile = meanwhile

    def answer_others(self, requests: list[object], before_batch: Callable[[], None]) -> list[object]:
        for number in range(len(requests)):
            before_batch()
            assert self.busy.acquire(blocking=False), "two batches at once"
            self.seen.append(len(requests))
            self.busy.release()
            if number == 0 and len(requests) > 1:
                self._meanwhile()
        return []


def test_a_text_alone_is_answered_between_the_batches_of_others(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_queue, "MOST_TOGETHER", 0)  # as larger requests are answered
    queue, others = PredictionQueue(services), []

    def arrive() -> None:
        if not others:
            others.extend(threading.Thread(target=queue.predict, args=([ROW] * count,)) for count in (1, 3))
            for thread in others:
                thread.start()
            wait_until(lambda: len(queue._turns._waiting) == 2, 10, "both to wait")

    fake = Fake(arrive)
    queue._predictor = fake  # type: ignore[assignment]
    queue.predict([ROW] * 5)
    for thread in others:
        thread.join(10)
    assert sorted(fake.seen) == [1, *[3] * 3, *[5] * 5]
    assert fake.seen[0] == 5
    assert 1 in fake.seen[1:4], "it waits for one batch of each of the others at most"


def test_the_turn_is_passed_on_when_a_request_fails_and_places_are_given_back(services: Services) -> None:
    queue = PredictionQueue(services)

    class Broken:
        def answer_others(self, *_: object) -> None:
            raise ValueError("broken")

    queue._predictor = Broken()  # type: ignore[assignment]
    for _ in range(40):
        with pytest.raises(ValueError, match="broken"):
            queue.predict([ROW])
    queue._places._held.update({"one token": MOST_WAITING // 2, "another": MOST_WAITING // 2})
    assert queue._places.held == queue._places._most
    with pytest.raises(UnavailableError):
        queue.predict([ROW])


def test_nothing_more_is_computed_for_a_client_that_has_gone(services: Services) -> None:
    queue, gone = PredictionQueue(services), threading.Event()
    fake = Fake(gone.set)
    queue._predictor = fake  # type: ignore[assignment]
    with refused("client-went-away-unanswered"):
        queue.predict([ROW] * 5, gone.is_set)
    assert fake.seen == [5]
    queue.predict([ROW])  # its turn was passed on
    assert fake.seen == [5, 1]


def test_turns_go_to_whoever_has_waited_longest() -> None:
    turns, order = Turns(), []

    def work(name: str) -> None:
        with turns.taken():
            order.append(name)

    with turns.taken():
        threads = []
        for name in "abc":
            threads.append(threading.Thread(target=work, args=(name,)))
            threads[-1].start()
            wait_until(lambda: len(turns._waiting) == len(threads), 10, "one more to wait")
        turns.give_way()
        assert order == ["a", "b", "c"]
    for thread in threads:
        thread.join(10)


def test_the_wrong_number_of_texts_is_refused_before_the_model_is_loaded(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onboard.bases.find_base", lambda _: None)
    monkeypatch.setattr("onboard.hypernetworks.register.register_base", lambda *_: None)
    facts = {"artifact": "", "embedding_digest": "", "backbone_digest": "", "base_digest": "", "dataset_digest": ""}
    version = EmbeddingVersion(
        task="mood", kind="onboarded", hypernetwork_version=1, parent="random", task_kind="classification",
        labels=("sad", "happy"), words=("sad", "happy"), pairs=True, code_version="", **facts,
    )  # fmt: skip
    monkeypatch.setattr("onboard.serving.unloaded.resolve_known", lambda *_: {"mood@latest": version})
    monkeypatch.setattr(PredictionQueue, "_loaded", lambda _: pytest.fail("the model was loaded"))
    with refused("input-texts-differ") as caught:
        PredictionQueue(services).predict([ROW])
    assert caught.value.data["fields"] == ["text_a", "text_b"]


@pytest.mark.parametrize("preload", [True, False])
def test_with_preload_the_model_has_answered_before_the_first_request(
    tiny_services: Services, preload: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[str] = []
    for name in ("mixed_log_probabilities", "bare_features"):  # a task's answer, and what a readout reads
        original = getattr(predictor, name)
        monkeypatch.setattr(predictor, name, lambda *asked, _n=name, _o=original: answered.append(_n) or _o(*asked))
    app = create_app(tiny_services.settings, preload=preload)
    with TestClient(app):
        assert (app.state.predictions._predictor is not None) is preload
        assert answered == (["bare_features", "mixed_log_probabilities"] if preload else [])
