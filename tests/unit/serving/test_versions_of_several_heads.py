"""Versions of several hypernetworks in one batch, each answered by the one that it is pinned to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.published import add_version, embedding_of
from support.tuned_heads import tuned_head

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.data.verbaliser import verbalise
from onboard.errors import DamagedError
from onboard.hypernetworks import engines as heads
from onboard.hypernetworks.engines import engine_at
from onboard.model.batched import log_probabilities
from onboard.registry.bases import BaseRepository
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.storage.cache import Cache

TEXTS = ["good film", "a bad plot", "the film was great and not sad", "awful", "it is fine"]
LABELS = ("sad", "happy"), ("sad", "happy")
KINDS = [f"kind {letter}" for letter in "abcdefg"]


@pytest.fixture
def services(tiny_services: Services, tiny_base: Base) -> Services:
    """mood@v1 to mood@v3, `many` and `stars`, pinned to three hypernetworks that differ clearly."""
    words = verbalise(KINDS, load_engine(tiny_base, "cpu").encoder.label_ids)
    add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(1))
    tuned_head(tiny_services, tiny_base, 0.5, seed=1)
    add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(1), hypernetwork_version=2)
    add_version(tiny_services, tiny_base, "many", KINDS, words, z=embedding_of(2), hypernetwork_version=2)
    tuned_head(tiny_services, tiny_base, 0.5, seed=2)
    add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(1), hypernetwork_version=3)
    add_version(tiny_services, tiny_base, "stars", bounds=(1.0, 5.0), z=embedding_of(3), hypernetwork_version=3)
    return tiny_services


def mixed() -> list[dict[str, Any]]:
    references = [("mood", "v3"), ("mood", "v1"), ("many", "v1"), ("mood", "v2"), ("stars", "v1"), ("sst2", "v1")]
    inputs = [{"task": task, "ref": ref, "text": text} for text in TEXTS for task, ref in references]
    return [inputs[index] for index in np.random.default_rng(0).permutation(len(inputs))]


def test_versions_of_several_hypernetworks_mixed_in_one_batch_answer_as_one_at_a_time(services: Services) -> None:
    predictor = Predictor(services)
    for given, answer in zip(mixed(), predictor.predict(mixed()), strict=True):
        (alone,) = predictor.predict([given])
        assert (answer.task, f"v{answer.version}") == (given["task"], given["ref"])
        np.testing.assert_allclose(answer.probabilities, alone.probabilities, atol=1e-5)


def test_each_version_is_answered_by_the_hypernetwork_that_it_is_pinned_to(services: Services, tiny_base: Base) -> None:
    asked = [{"task": "mood", "ref": ref, "text": text} for text in TEXTS for ref in ("v3", "v1", "v2")]
    answers = Predictor(services).predict(asked)
    seen = []
    for version in (1, 2, 3):
        engine = engine_at(services, tiny_base, version)
        ids = engine.encoder.encode([(text, None) for text in TEXTS])
        expected = np.exp(log_probabilities(engine, ids, embedding_of(1), engine.trie(LABELS[1])))
        probabilities = [answer.probabilities for answer in answers if answer.version == version]
        np.testing.assert_allclose(probabilities, expected, atol=1e-5)
        seen.append(expected)
    assert min(np.abs(seen[0] - seen[1]).max(), np.abs(seen[1] - seen[2]).max()) > 1e-3


def test_what_is_pinned_answers_the_same_after_the_head_has_moved(services: Services, tiny_base: Base) -> None:
    predictor, inputs = Predictor(services), mixed()
    before = predictor.predict(inputs)
    tuned_head(services, tiny_base, 0.5, seed=9)
    with services.database.write() as session:
        BaseRepository(session).set_head(tiny_base.digest, 2, expected_head=4)
    assert predictor.predict(inputs) == before
    assert Predictor(services).predict(inputs) == before


def test_more_hypernetworks_than_are_kept_are_answered_too(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Predictor(services).predict(mixed())
    monkeypatch.setattr(heads, "loaded_hypernetworks", Cache(1))
    assert Predictor(services).predict(mixed()) == expected


def test_a_hypernetwork_whose_file_is_no_hypernetwork_is_told(services: Services, tiny_base: Base) -> None:
    record = tuned_head(services, tiny_base, seed=11)
    name = record.digest.removeprefix("sha256:")
    path = services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name
    path.write_bytes(b"weights")
    add_version(services, tiny_base, "tuned", *LABELS, hypernetwork_version=record.version)
    with pytest.raises(DamagedError):
        Predictor(services).predict([{"task": "tuned", "text": "good"}, {"task": "sst2", "text": "good"}])
