"""Versions without an embedding beside others: what they weigh, labels to choose from, errors of a row, exports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import update
from support.other_methods import LABELS, add_of_method
from support.published import add_version, embedding_of
from support.refusals import refused

from onboard.bases import Base
from onboard.domain.prediction import Prediction, Unanswered
from onboard.registry.services import Services
from onboard.registry.tables import EmbeddingVersionRow
from onboard.serving import Predictor
from onboard.versions.export.adapters import export_adapters
from onboard.versions.export.onnx import export_onnx
from onboard.versions.lineage import lineage

METHODS = ("linear", "compacter", "bitfit", "intrinsic-said")
TEXTS = ("a good film", "sad", "the plot was awful and long")


@pytest.fixture
def services(tiny_services: Services, tiny_base: Base) -> Services:
    for method in METHODS:
        add_of_method(tiny_services, tiny_base, method, method)
    add_version(tiny_services, tiny_base, "embedded", LABELS, LABELS, z=embedding_of(2), pairs=False)
    return tiny_services


def test_they_are_weighed_with_all_their_numbers_and_stay_within_the_bound(services: Services) -> None:
    weights = {}
    for method in METHODS:
        predictor = Predictor(services)
        predictor.predict([{"task": method, "text": "good"}])
        weights[method] = predictor.kept_bytes
    assert weights["linear"] < weights["compacter"]
    with services.database.read() as session:
        stored = {row.task: row.stored_bytes for row in session.query(EmbeddingVersionRow)}
    assert weights["bitfit"] > stored["bitfit"] / 2
    assert weights["intrinsic-said"] > 4 * stored["intrinsic-said"]  # with what is drawn for its projections
    inputs = [{"task": task, "text": text} for text in TEXTS for task in (*METHODS, "embedded")]
    bound = weights["compacter"] + weights["linear"]
    tight, expected = Predictor(services, kept_bytes=bound), Predictor(services).predict(inputs)
    for _ in range(2):
        for given, answer in zip(inputs, expected, strict=True):
            (alone,) = tight.predict([given])
            assert alone.probabilities == pytest.approx(answer.probabilities, abs=1e-5)
            assert tight.kept_bytes <= max(bound, weights.get(given["task"], 0))


def test_the_file_of_each_is_read_once_until_it_answers(services: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor, artifacts, read = Predictor(services), list[str](), Services.read

    def spy(self: Services, artifact: str) -> bytes:
        artifacts.append(artifact)
        return read(self, artifact)

    monkeypatch.setattr(Services, "read", spy)
    predictor.predict([{"task": task, "text": text} for text in TEXTS for task in (*METHODS, "embedded")])
    assert len(artifacts) == len(set(artifacts)) == len(METHODS) + 1


@pytest.mark.parametrize("method", METHODS)
def test_an_answer_is_chosen_from_some_labels(services: Services, method: str) -> None:
    predictor = Predictor(services)
    whole, some = predictor.predict(
        [{"task": method, "text": "good film"}, {"task": method, "text": "good film", "labels": ["film", "sad"]}]
    )
    assert some.labels == ("sad", "film")
    ratio = np.divide(*some.probabilities)
    assert ratio == pytest.approx(whole.probabilities[0] / whole.probabilities[2], rel=1e-2)


def test_a_method_that_this_release_does_not_know_fails_its_own_row(services: Services) -> None:
    with services.database.write() as session:
        session.execute(update(EmbeddingVersionRow).where(EmbeddingVersionRow.task == "bitfit").values(method="later"))
    inputs = [{"task": task, "text": "good"} for task in ("bitfit", "linear", "embedded")]
    first, *others = Predictor(services).outcomes(inputs)
    assert isinstance(first, Unanswered)
    assert "does not know" in str(first.error)
    assert all(isinstance(answer, Prediction) for answer in others)
    with refused("method-unknown-to-release"):
        Predictor(services).predict(inputs)


@pytest.mark.parametrize("export", [export_adapters, export_onnx])
def test_exports_are_of_embeddings(services: Services, tmp_path: Path, export: object) -> None:
    assert callable(export)
    with refused("version-without-embedding") as caught:
        export(services, "compacter", tmp_path / "out")
    assert caught.value.remedy == "onboard fetch compacter@v1"
    assert not (tmp_path / "out").exists()


def test_no_hypernetwork_and_no_start_is_drawn_for_them(services: Services) -> None:
    graph = lineage(services, "compacter")
    assert [edge.kind for edge in graph.edges] in ([], ["trained_on"])
    assert not [node for node in graph.nodes if node.kind in ("hypernetwork", "init")]
