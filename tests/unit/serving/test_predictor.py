"""Answers for any mix of tasks from one loaded base."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.published import add_version, embedding_of
from support.refusals import refused
from support.tiny_base import make_tiny_base

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.client.answers import prediction_of
from onboard.client.json_object import JsonObject
from onboard.data.verbaliser import verbalise
from onboard.domain.dataset import Label, label_key
from onboard.errors import DamagedError, InputError, NotFoundError, PinMismatchError
from onboard.hypernetworks.register import register_base
from onboard.model import batched
from onboard.model.batched import BATCH, log_probabilities
from onboard.model.engine import Engine
from onboard.registry.aliases import AliasRepository
from onboard.registry.services import Services
from onboard.serving import Prediction, Predictor
from onboard.storage.artifacts import digest_of

TEXTS = ["good film", "a bad plot", "the film was great and not sad", "awful", "poor film and poor plot", "it is fine"]
MANY = [f"kind {letter}{other}" for letter in "abcdef" for other in "uvwxyz"]


@pytest.fixture
def services(tiny_services: Services, tiny_base: Base) -> Services:
    """A home with tasks of two, three and 36 labels and a scale, beside the shipped ones."""
    label_ids = load_engine(tiny_base, "cpu").encoder.label_ids
    typed: tuple[Label, ...] = (True, 3, "3")
    add_version(tiny_services, tiny_base, "mood", ("sad", "happy"), ("sad", "happy"), z=embedding_of(1))
    add_version(tiny_services, tiny_base, "typed", typed, verbalise(typed, label_ids), z=embedding_of(2))
    add_version(tiny_services, tiny_base, "many", MANY, verbalise(MANY, label_ids), z=embedding_of(3))
    add_version(tiny_services, tiny_base, "stars", bounds=(1.0, 5.0), z=embedding_of(4))
    return tiny_services


@pytest.fixture
def predictor(services: Services) -> Predictor:
    return Predictor(services)


def mixed() -> list[dict[str, Any]]:
    tasks = ["mood", "typed", "many", "stars", "sst2", "stsb"]
    inputs: list[dict[str, Any]] = [{"task": task, "text": text} for text in TEXTS for task in tasks]
    inputs[7] = {"task": "mood", "text_a": "good film", "text_b": "bad plot"}
    order = np.random.default_rng(0).permutation(len(inputs))
    return [inputs[index] for index in order]


def test_tasks_mixed_in_one_batch_answer_as_one_at_a_time(predictor: Predictor) -> None:
    inputs = mixed()
    together = predictor.predict(inputs)
    for given, answer in zip(inputs, together, strict=True):
        (alone,) = predictor.predict([given])
        assert (answer.task, answer.version) == (given["task"], alone.version)
        np.testing.assert_allclose(answer.probabilities, alone.probabilities, atol=1e-5)
        assert answer.probability == pytest.approx(alone.probability, abs=1e-5)
        if isinstance(alone.label, float):
            assert answer.label == pytest.approx(alone.label, abs=1e-4)
        else:
            assert answer.label == alone.label


def test_a_canary_answers_its_share_of_an_aliass_texts_and_always_the_same_ones(
    services: Services, tiny_base: Base
) -> None:
    add_version(services, tiny_base, "mood", ("sad", "happy"), ("sad", "happy"), z=embedding_of(5))
    with services.database.write() as session:
        aliases = AliasRepository(session)
        aliases.move("mood", "production", 1)
        aliases.start_canary("mood", "production", 2, 0.25)
    texts = [f"film number {number}" for number in range(200)]

    def versions(ref: str) -> list[int]:
        inputs = [{"task": "mood", "ref": ref, "text": text} for text in texts]
        return [answer.version for answer in Predictor(services).predict(inputs)]

    shared = versions("production")
    assert 30 <= shared.count(2) <= 70
    assert set(shared) == {1, 2}
    assert versions("production") == shared
    assert set(versions("v1")) == {1}


def test_no_row_is_scored_on_tries_of_tasks_that_its_part_has_not_or_beside_a_much_larger_one(
    predictor: Predictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = mixed()
    together = predictor.predict(inputs)
    monkeypatch.setattr(batched, "ALIKE", 1)
    score, seen = Engine.score, []

    def spied(self: Engine, ids: Any, generated: Any, tries: Any, rows: Any = None) -> Any:
        seen.append([trie.labels for trie in tries])
        assert generated.tasks == len(tries) == len(set(rows.tolist()))
        return score(self, ids, generated, tries, rows)

    monkeypatch.setattr(Engine, "score", spied)
    for one, other in zip(together, predictor.predict(inputs), strict=True):
        np.testing.assert_allclose(one.probabilities, other.probabilities, atol=1e-5)
    assert not any({2, len(MANY)} <= set(labels) for labels in seen), seen


def test_packs_of_many_large_tries_are_not_kept(tiny_base: Base) -> None:
    engine = load_engine(tiny_base, "cpu").under(load_engine(tiny_base, "cpu").hypernetwork)
    engine._packed.cache_clear()
    tries = [engine.trie(["bad", "good"]), engine.trie(MANY)]
    for given, packs in ((tries[:1], 1), (tries[1:], 2), (tries, 3), (tries * 2000, 3)):
        engine._pack_of(given)
        assert engine._packed.cache_info().currsize == packs


def test_the_answers_come_in_input_order_over_many_batches(predictor: Predictor) -> None:
    words = ["film", "plot", "good", "bad", "sad"]
    texts = [" ".join(words[(row + step) % 5] for step in range(row % 7 + 1)) for row in range(2 * BATCH + 5)]
    tasks = ["mood", "sst2", "many"]
    inputs = [{"task": tasks[row % 3], "text": text} for row, text in enumerate(texts)]
    answers = predictor.predict(inputs)
    assert [answer.task for answer in answers] == [given["task"] for given in inputs]
    back = predictor.predict(inputs[::-1])
    for answer, same in zip(answers, back[::-1], strict=True):
        np.testing.assert_allclose(answer.probabilities, same.probabilities, atol=1e-5)


def test_an_answer_is_what_the_model_says_under_the_tasks_embedding_and_words(
    predictor: Predictor, tiny_base: Base
) -> None:
    engine = load_engine(tiny_base, "cpu")
    ids = engine.encoder.encode([(text, None) for text in TEXTS])
    expected = np.exp(log_probabilities(engine, ids, embedding_of(1), engine.trie(["sad", "happy"])))
    answers = predictor.predict([{"task": "mood", "text": text} for text in TEXTS])
    np.testing.assert_allclose([answer.probabilities for answer in answers], expected, atol=1e-5)
    for answer, row in zip(answers, expected, strict=True):
        assert answer.label == ("sad", "happy")[int(row.argmax())]
        assert answer.probability == max(answer.probabilities)
        assert sum(answer.probabilities) == pytest.approx(1.0, abs=1e-5)


def test_labels_keep_the_type_that_they_were_submitted_with(services: Services, tiny_base: Base) -> None:
    words = ("good", "bad", "film")  # one of them is the likeliest: in turn it stands for each label
    for turn in range(3):
        turned = (*words[turn:], *words[:turn])
        add_version(services, tiny_base, "typed", (True, 3, "3"), turned, z=embedding_of(2))
    predictor, seen = Predictor(services), set()
    for version in (2, 3, 4):
        (answer,) = predictor.predict([{"task": "typed", "ref": f"v{version}", "text": "good"}])
        expected = (True, 3, "3")[int(np.argmax(answer.probabilities))]
        assert type(answer.label) is type(expected)
        assert label_key(answer.label) == label_key(expected)
        seen.add(label_key(answer.label))
    assert seen == {"true", "3", '"3"'}
    assert json.loads(json.dumps(answer.to_json()))["label"] == answer.label


def test_a_scale_answers_with_its_expectation_whatever_it_is_mixed_with(predictor: Predictor) -> None:
    (alone,) = predictor.predict([{"task": "stars", "text": "good film"}])
    assert isinstance(alone.label, float)
    assert 1.0 <= alone.label <= 5.0
    assert len(alone.probabilities) == 21
    values = np.linspace(1.0, 5.0, 21)
    assert alone.label == pytest.approx(float(values @ np.array(alone.probabilities)), abs=1e-6)
    beside, _ = predictor.predict([{"task": "stars", "text": "good film"}, {"task": "many", "text": "good film"}])
    assert len(beside.probabilities) == 21
    assert beside.label == pytest.approx(alone.label, abs=1e-4)


def test_an_answer_prints_label_probability_task_and_version_and_nothing_else(predictor: Predictor) -> None:
    (answer,) = predictor.predict([{"task": "mood", "text": "good film"}])
    assert set(answer.to_json()) == {"label", "probability", "task", "version"}
    assert answer.to_json()["version"] == 1


def test_every_labels_probability_is_told_where_it_is_asked_for(predictor: Predictor) -> None:
    typed, stars = predictor.predict([{"task": "typed", "text": "good film"}, {"task": "stars", "text": "good film"}])
    document = typed.to_json(probabilities=True)
    assert [label_key(share["label"]) for share in document["probabilities"]] == ["true", "3", '"3"']
    assert sum(share["probability"] for share in document["probabilities"]) == pytest.approx(1.0)
    assert document["weak"] is False
    assert [share["label"] for share in stars.to_json(probabilities=True)["probabilities"]][::20] == [1.0, 5.0]
    assert prediction_of(JsonObject.of(json.loads(json.dumps(document)), "localhost")) == typed


def test_a_task_of_pairs_asked_with_one_text_is_refused_and_the_reverse(services: Services, tiny_base: Base) -> None:
    for task, pairs in (("alone", False), ("alike", True), ("earlier", None)):
        add_version(services, tiny_base, task, ("sad", "happy"), ("sad", "happy"), pairs=pairs)
    one, two = {"text": "good film"}, {"text_a": "good film", "text_b": "bad plot"}
    predictor = Predictor(services)
    answered = predictor.predict([
        {"task": "alone", **one}, {"task": "alike", **two}, {"task": "earlier", **one}, {"task": "earlier", **two}
    ])  # fmt: skip
    assert [answer.task for answer in answered] == ["alone", "alike", "earlier", "earlier"]
    with refused("input-texts-differ", row=2) as no:
        predictor.predict([{"task": "alike", **two}, {"task": "alike", "ref": "v1", **one}])
    assert (no.value.data["row"], no.value.data["fields"]) == (2, ["text_a", "text_b"])
    with refused("input-texts-differ"):
        predictor.predict([{"task": "alone", **two}])


def test_references_name_versions_and_a_moved_alias_is_followed(services: Services, tiny_base: Base) -> None:
    predictor = Predictor(services)
    first = predictor.predict([{"task": "mood", "text": "good"}])[0]
    add_version(services, tiny_base, "mood", ("sad", "happy"), ("sad", "happy"), z=embedding_of(9), weak=True)
    second, pinned, same = predictor.predict(
        [{"task": "mood", "ref": ref, "text": "good"} for ref in ("latest", "v1", "v2")]
    )
    assert (first.version, second.version, pinned.version, same.version) == (1, 2, 1, 2)
    np.testing.assert_allclose(pinned.probabilities, first.probabilities, atol=1e-6)
    np.testing.assert_allclose(second.probabilities, same.probabilities, atol=1e-6)
    assert second.weak
    assert not pinned.weak
    with services.database.write() as session:
        AliasRepository(session).move("mood", "latest", 1)
    assert predictor.predict([{"task": "mood", "text": "good"}])[0].version == 1


def test_no_input_is_answered_when_one_of_them_is_wrong(predictor: Predictor) -> None:
    with pytest.raises(InputError) as caught:
        predictor.predict([{"task": "mood", "text": "good"}, {"task": "mood", "text": ""}])
    assert (caught.value.data["row"], caught.value.data["field"]) == (2, "text")
    for ref in ({"task": "nothing"}, {"task": "mood", "ref": "v7"}, {"task": "mood", "ref": "production"}):
        with pytest.raises(NotFoundError):
            predictor.predict([{"task": "mood", "text": "good"}, {**ref, "text": "good"}])
    assert predictor.predict([]) == []


def test_a_version_of_another_backbone_is_refused(
    services: Services, tiny_base: Base, other_base: Base, predictor: Predictor
) -> None:
    register_base(services, other_base)
    add_version(services, other_base, "foreign", ("a", "b"), ("good", "bad"))
    with pytest.raises(PinMismatchError) as caught:
        predictor.predict([{"task": "mood", "text": "good"}, {"task": "foreign", "text": "good"}])
    assert caught.value.data["version"] == "foreign@v1"
    assert caught.value.data["pinned"] == other_base.backbone_digest
    assert caught.value.data["present"] == tiny_base.backbone_digest
    assert "ONBOARD_BASE" in caught.value.remedy


def test_an_embedding_of_another_size_is_refused(services: Services, tiny_base: Base) -> None:
    add_version(services, tiny_base, "wide", ("a", "b"), ("good", "bad"), z=embedding_of(0, 64))
    with refused("embedding-width-differs"):
        Predictor(services).predict([{"task": "wide", "text": "good"}])


def test_a_damaged_artifact_is_told_and_not_used(services: Services, tiny_base: Base) -> None:
    version = add_version(services, tiny_base, "broken", ("a", "b"), ("good", "bad"), z=embedding_of(77))
    name = version.artifact.removeprefix("sha256:")
    path = services.settings.resolved_home / "artifacts" / "sha256" / name[:2] / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert digest_of(bytes(content)) != version.artifact
    with pytest.raises(DamagedError):
        Predictor(services).predict([{"task": "broken", "text": "good"}])


def answers_of(predictor: Predictor) -> list[Prediction]:
    return predictor.predict([{"task": "sst2", "text": text} for text in TEXTS])


def test_a_base_alone_answers_for_its_source_tasks(services: Services, tiny_base: Base) -> None:
    expected = answers_of(Predictor(services))
    for base in (tiny_base, str(tiny_base.folder), tiny_base.folder):
        predictor = Predictor(base)
        for answer, same in zip(answers_of(predictor), expected, strict=True):
            assert answer.label == same.label
            np.testing.assert_allclose(answer.probabilities, same.probabilities, atol=1e-6)
        assert predictor.predict([{"task": "sst2", "ref": "v1", "text": "good"}])[0].version == 1
        for wrong in ({"task": "mood"}, {"task": "sst2", "ref": "v2"}, {"task": "sst2", "ref": "production"}):
            with pytest.raises(NotFoundError):
                predictor.predict([{**wrong, "text": "good"}])


def test_a_home_folder_and_the_environment_name_the_same_service(
    services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = services.settings.resolved_home
    monkeypatch.setenv("ONBOARD_BASE", str(tiny_base.folder))
    monkeypatch.setenv("ONBOARD_HOME", str(home))
    inputs = mixed()
    expected = [answer.to_json() for answer in Predictor(services).predict(inputs)]
    for named in (home, str(home), None):
        assert [answer.to_json() for answer in Predictor(named).predict(inputs)] == expected


def test_a_home_folder_is_meant_even_where_the_environment_names_a_server(
    services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONBOARD_BASE", str(tiny_base.folder))
    monkeypatch.setenv("ONBOARD_DATABASE_URL", "postgresql://nobody@127.0.0.1:9/nothing")
    assert Predictor(services.settings.resolved_home).predict([{"task": "mood", "text": "good"}])[0].version == 1


def test_a_fresh_predictor_gives_the_same_numbers(services: Services) -> None:
    inputs = mixed()
    assert Predictor(services).predict(inputs) == Predictor(services).predict(inputs)


def test_what_is_neither_a_base_nor_a_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with refused("folder-not-servable"):
        Predictor(tmp_path / "empty")
    with pytest.raises(NotFoundError):
        Predictor(tmp_path / "missing")


def test_a_base_that_was_made_anew_in_its_folder_is_loaded_anew(tmp_path: Path) -> None:
    first = Predictor(make_tiny_base(tmp_path, seed=5))
    before = answers_of(first)
    again = Predictor(make_tiny_base(tmp_path, seed=6))
    assert [answer.probabilities for answer in answers_of(again)] != [answer.probabilities for answer in before]
    assert answers_of(first) == before
