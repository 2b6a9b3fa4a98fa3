"""What serving keeps of texts: sums of a day, in the registry, without a text and without making an answer wait."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text
from support.published import add_version, embedding_of

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.drift import day_of, days_of, week_of
from onboard.domain.webhook import DRIFTED
from onboard.errors import UnavailableError
from onboard.registry.clock import read_clock
from onboard.registry.drift import DriftRepository
from onboard.registry.services import Services
from onboard.serving.drift import DriftRecorder
from onboard.serving.predictor import Predictor
from onboard.statistics.drift import Sums, Training, sums_of_answers, sums_of_features
from onboard.statistics.novelty import Novelty
from onboard.statistics.readout import Readout
from onboard.storage.drift import FACT, training_facts, training_in
from onboard.storage.embedding import pack_embedding
from onboard.storage.readout import pack_readout
from onboard.versions.drift import Texts, add_texts, drift_of

LABELS = ("sad", "happy")
WIDTH = 16  # of the tiny base's features
WORDS = ["good", "bad", "film", "plot", "was", "great", "sad", "fine", "awful", "poor"]


def some(count: int, first: int = 0) -> list[str]:
    """Texts, each another one."""
    return [" ".join(WORDS[place // 10**power % 10] for power in range(4)) for place in range(first, first + count)]


@pytest.fixture
def home(tiny_services: Services, tiny_base: Base) -> Services:
    """A task whose version answers with a readout and knows its texts, one with an embedding alone, and a scale."""
    size = load_engine(tiny_base, "cpu").backbone.config.d_model
    weights = np.random.default_rng(5).standard_normal((2, size)).astype(np.float16)
    readout = pack_readout(Readout(weights, 3.0, np.zeros(2, np.float32), 0.6), tiny_base.digest)
    novelty = Novelty(np.zeros((2, size), np.float16), 0.0, 0.05, 20, 0.5, 10)  # everything is unknown
    stored = tiny_services.store(readout, "readout")
    add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1), readout=stored, novelty=novelty)
    add_version(tiny_services, tiny_base, "plain", LABELS, LABELS, z=embedding_of(2))
    add_version(tiny_services, tiny_base, "stars", bounds=(1.0, 5.0), z=embedding_of(4))
    return tiny_services


@pytest.fixture
def predictor(home: Services) -> Iterator[Predictor]:
    with closing(Predictor(home, record=True)) as predictor:
        yield predictor


def kept(services: Services, task: str = "mood") -> list[dict[str, Any]]:
    with services.database.read() as session:
        return [day.sums for day in DriftRepository(session).days(task, 1, 0, 10**6)]


def ask(predictor: Predictor, texts: list[str], task: str = "mood", **how: Any) -> None:
    predictor.predict([{"task": task, "text": one, **how} for one in texts])


def test_a_day_has_the_sums_of_its_texts_and_no_text(home: Services, predictor: Predictor) -> None:
    answers = predictor.predict([{"task": "mood", "text": one} for one in some(20)])
    ask(predictor, some(15, 20))
    predictor.flush()
    (day,) = kept(home)
    assert (day["answered"], day["read"], day["judged"], day["unknown"]) == (35, 35, 35, 35)
    assert sum(day["labels"]) == sum(day["confidence"]) == 35
    assert day["labels"][1] >= sum(answer.label == "happy" for answer in answers)
    assert Sums.from_json(day).products.shape == (24, 24)
    assert not any(word in json.dumps(day) for word in WORDS)


def test_the_answers_are_the_same_with_and_without_a_recorder(home: Services, predictor: Predictor) -> None:
    asked = [{"task": task, "text": one} for one in some(5) for task in ("mood", "plain", "stars", "sst2")]
    assert predictor.predict(asked) == Predictor(home).predict(asked)


def test_features_are_counted_only_where_the_encoder_has_read_the_texts(home: Services, predictor: Predictor) -> None:
    ask(predictor, some(6), "plain")
    ask(predictor, some(4), "stars")
    predictor.flush()
    (plain,), (stars,) = kept(home, "plain"), kept(home, "stars")
    assert (plain["answered"], plain["read"], plain["judged"]) == (6, 0, 0)
    assert (len(stars["labels"]), sum(stars["labels"])) == (21, 4)


def test_a_repeated_text_counts_once_and_a_choice_of_labels_not_at_all(home: Services, predictor: Predictor) -> None:
    ask(predictor, some(3) * 2)
    ask(predictor, some(4))
    ask(predictor, some(5, 50), labels=["happy", "sad"])
    predictor.flush()
    (day,) = kept(home)
    assert day["answered"] == day["read"] == 4


def test_nothing_is_kept_where_the_setting_is_off_or_nobody_asked(home: Services) -> None:
    off = Services(home.settings.model_copy(update={"drift": False}), home.database, home.artifacts, home.device)
    for predictor in (Predictor(off, record=True), Predictor(home)):
        ask(predictor, some(5))
        predictor.close()
    assert kept(home) == []
    assert "ONBOARD_DRIFT" in drift_of(off, "mood").advice[0]


def test_what_cannot_be_written_is_written_later(home: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = DriftRecorder(home, WIDTH, seconds=3600)
    predictor = Predictor(home, record=True)
    predictor._recorder = recorder
    ask(predictor, some(5))
    with monkeypatch.context() as away:

        def refuse(work: object) -> None:
            raise UnavailableError("database-busy")

        away.setattr(home.database, "write_again", refuse)
        recorder.flush()
    assert kept(home) == []
    ask(predictor, some(5, 5))
    predictor.close()
    assert kept(home)[0]["answered"] == 10


def test_an_answer_does_not_wait_for_the_database(home: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = DriftRecorder(home, WIDTH, seconds=3600)
    monkeypatch.setattr("onboard.serving.drift._MOST_WAITING", 10)
    predictor = Predictor(home, record=True)
    predictor._recorder = recorder
    ask(predictor, some(5))
    inside, goes_on = threading.Event(), threading.Event()
    write_again = home.database.write_again

    def slowly(work: Any) -> None:
        inside.set()
        goes_on.wait(60)
        write_again(work)

    monkeypatch.setattr(home.database, "write_again", slowly)
    writer = threading.Thread(target=recorder.flush)
    writer.start()
    assert inside.wait(60)
    ask(predictor, some(30, 5))  # so many that their sums are made at once
    goes_on.set()
    writer.join()
    predictor.close()
    assert kept(home)[0]["answered"] == 35


def test_a_thread_writes_without_being_asked(home: Services) -> None:
    predictor = Predictor(home, record=True)
    predictor._recorder = recorder = DriftRecorder(home, WIDTH, seconds=0.05)
    ask(predictor, some(5))
    for _ in range(200):
        if kept(home):
            break
        recorder._closed.wait(0.05)
    assert kept(home)[0]["answered"] == 5
    predictor.close()


def sums(seed: int, n: int, unknown: float, at: float = 0.0) -> Sums:
    rng = np.random.default_rng(seed)
    chosen = np.eye(2, dtype=np.int64)[rng.integers(0, 2, n)]
    answers = sums_of_answers(chosen, rng.uniform(0.5, 1, n), rng.random(n) < unknown)
    return answers + sums_of_features(rng.standard_normal((n, 12)) + at, 2)


def add(services: Services, day: int, seed: int, n: int, unknown: float, at: float = 0.0) -> None:
    training = Training(sums(0, 200, 0.05), held_out=True)
    with services.database.write() as session:
        known = [Texts("mood", 1, training, several=False)]
        add_texts(session, day, {("mood", 1): sums(seed, n, unknown, at)}, known)


def events(services: Services) -> list[dict[str, Any]]:
    with services.database.read() as session:
        rows = session.execute(text("SELECT data FROM webhook_events WHERE type = :type"), {"type": DRIFTED})
        return [json.loads(row.data) for row in rows]


def test_an_alarm_is_told_once_a_version_and_week(home: Services) -> None:
    with home.database.read() as session:
        this = days_of(week_of(day_of(read_clock(session))))
    before = days_of(week_of(this[0]) - 1)
    add(home, before[0], 1, 400, 0.05)
    add(home, this[0], 2, 60, 0.9, at=3.0)  # too few to look
    assert events(home) == []
    add(home, this[0], 3, 200, 0.05)
    add(home, this[0], 4, 300, 0.6, at=2.0)
    add(home, this[0], 5, 900, 0.6, at=2.0)
    (event,) = events(home)
    assert (event["task"], event["version"]) == ("mood", 1)
    assert {"unknown", "features"} <= set(event["training"]) & set(event["week_before"])
    document = drift_of(home, "mood@v1")
    assert document.alarm is not None
    assert document.alarm.texts == event["texts"]
    assert [(week.texts, week.alarm) for week in document.weeks] == [(400, False), (1460, True)]
    (against,) = document.comparisons  # the version's file, which no job wrote, says nothing of its rows
    assert (against.against, against.rows, against.left_out) == ("week_before", 400, ())
    assert against.features is not None
    assert against.features.beyond_chance
    assert any("onboard add mood" in sentence for sentence in document.advice)


def test_a_week_without_drift_tells_nothing(home: Services) -> None:
    for seed, n in enumerate((50, 100, 400, 600)):
        add(home, 20_000, seed + 10, n, 0.05)
    assert events(home) == []
    with home.database.read() as session:
        assert DriftRepository(session).standing("mood", 1, week_of(20_000)) == (1150, 1000, False)


def test_what_a_version_says_of_its_rows_survives_its_file() -> None:
    training = Training(sums(7, 80, 0.1), held_out=True)
    content = pack_embedding(np.zeros(4, np.float32), training_facts(training))
    read = training_in(content)
    assert read is not None
    assert read.held_out
    for name, value in training.sums.to_json().items():
        assert np.allclose(value, read.sums.to_json()[name], rtol=1e-4, atol=1e-3), name
    assert training_facts(None) == {}
    assert training_in(pack_embedding(np.zeros(4, np.float32), {})) is None
    for wrong in ({}, {"moments": "x"}, {**training_facts(training)[FACT], "moments": "AAAA"}, "text", 3):
        assert training_in(pack_embedding(np.zeros(4, np.float32), {FACT: wrong})) is None
