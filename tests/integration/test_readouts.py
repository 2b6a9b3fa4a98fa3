"""A version with a readout answers with both, wherever it is asked; one without goes on as it was."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.published import add_version, embedding_of

from onboard.bases import Base
from onboard.bases.load import load_engine
from onboard.domain.dataset import Example
from onboard.domain.task import EmbeddingVersion
from onboard.errors import DamagedError, PinMismatchError
from onboard.model.readout import bare_features
from onboard.operations.gc import collect_garbage
from onboard.services import Services
from onboard.serving import Predictor
from onboard.statistics.readout import Readout
from onboard.storage.embedding import read_facts
from onboard.storage.readout import pack_readout
from onboard.versions.answers import answers
from onboard.versions.delete import delete_task
from onboard.versions.fetch import fetch
from onboard.versions.readouts import readout_of

TEXTS = ["good film", "a bad plot", "the film was great and not sad", "awful"]
LABELS = ("sad", "happy")


def drawn(base: Base, labels: int = 2, share: float = 0.6) -> Readout:
    size = load_engine(base, "cpu").backbone.config.d_model
    weights = np.random.default_rng(5).standard_normal((labels, size)).astype(np.float16)
    return Readout(weights, 3.0, np.arange(labels, dtype=np.float32), share)


@pytest.fixture
def read_out(tiny_services: Services, tiny_base: Base) -> EmbeddingVersion:
    add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1))
    digest = tiny_services.store(pack_readout(drawn(tiny_base), tiny_base.digest), "readout")
    return add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1), readout=digest)


def probabilities(predictor: Predictor, reference: str = "v2") -> np.ndarray:
    inputs = [{"task": "mood", "ref": reference, "text": text} for text in TEXTS]
    return np.array([answer.probabilities for answer in predictor.predict(inputs)])


def test_it_answers_with_both_and_the_version_before_with_its_embedding_alone(
    tiny_services: Services, tiny_base: Base, read_out: EmbeddingVersion
) -> None:
    predictor = Predictor(tiny_services)
    engine, readout = load_engine(tiny_base, "cpu"), drawn(tiny_base)
    features = bare_features(engine, engine.encoder.encode([(text, None) for text in TEXTS]))
    alone, together = probabilities(predictor, "v1"), probabilities(predictor)
    np.testing.assert_allclose(together, 0.4 * alone + 0.6 * readout.probabilities(features), atol=1e-6)
    assert np.abs(together - alone).max() > 0.01
    assert read_out.to_json()["readout"] == read_out.readout


def test_in_a_mixed_batch_only_its_own_rows_are_read_out(tiny_services: Services, read_out: EmbeddingVersion) -> None:
    predictor = Predictor(tiny_services)
    tasks = [("mood", "v2"), ("mood", "v1"), ("sst2", "v1"), ("stsb", "v1")]
    inputs = [
        {"task": task, "ref": ref, **({"text_a": text, "text_b": "plot"} if task == "stsb" else {"text": text})}
        for text in TEXTS
        for task, ref in tasks
    ]
    for given, answer in zip(inputs, predictor.predict(inputs), strict=True):
        (alone,) = predictor.predict([given])
        np.testing.assert_allclose(answer.probabilities, alone.probabilities, atol=1e-5)


def test_labels_in_another_order_are_answered_in_that_order(
    tiny_services: Services, tiny_base: Base, read_out: EmbeddingVersion
) -> None:
    turned = readout_of(tiny_services, read_out, LABELS[::-1])
    assert turned is not None
    features = np.ones((1, turned.weights.shape[1]), dtype=np.float32)
    assert np.array_equal(turned.probabilities(features)[:, ::-1], drawn(tiny_base).probabilities(features))
    engine = load_engine(tiny_base, "cpu")
    rows = [Example(text, None, "sad") for text in TEXTS]
    own = answers(engine, read_out, embedding_of(1), LABELS, rows, readout_of(tiny_services, read_out))
    other = answers(engine, read_out, embedding_of(1), LABELS[::-1], rows, turned)
    np.testing.assert_allclose(own, other[:, ::-1], atol=1e-6)


def test_a_bundle_brings_it_and_predicts_the_same_elsewhere(
    tiny_services: Services, read_out: EmbeddingVersion, tmp_path: Path
) -> None:
    expected = probabilities(Predictor(tiny_services))
    fetched = fetch(tiny_services, "mood", tmp_path / "bundle", bundle=True)
    assert "readout.safetensors" in [path.name for path in fetched.files]
    assert read_facts(fetched.files[0].read_bytes())["readout"] == read_out.readout
    assert read_out.readout in (tmp_path / "bundle" / "card.md").read_text()
    shutil.rmtree(tiny_services.settings.resolved_home)
    np.testing.assert_allclose(probabilities(Predictor(tmp_path / "bundle")), expected, atol=1e-6)
    (tmp_path / "bundle" / "readout.safetensors").unlink()
    with pytest.raises(PinMismatchError, match="does not hold the readout"):
        Predictor(tmp_path / "bundle")


def test_one_of_another_base_or_of_other_labels_is_refused(tiny_services: Services, tiny_base: Base) -> None:
    foreign = tiny_services.store(pack_readout(drawn(tiny_base), "sha256:" + "0" * 64), "readout")
    wide = tiny_services.store(pack_readout(drawn(tiny_base, labels=3), tiny_base.digest), "readout")
    for digest, refused in ((foreign, PinMismatchError), (wide, DamagedError)):
        add_version(tiny_services, tiny_base, "mood", LABELS, LABELS, z=embedding_of(1), readout=digest)
        with pytest.raises(refused):
            Predictor(tiny_services).predict([{"task": "mood", "text": "good"}])


def test_its_bytes_stay_while_a_version_needs_them_and_go_with_its_task(
    tiny_services: Services, read_out: EmbeddingVersion
) -> None:
    assert read_out.readout is not None
    collect_garbage(tiny_services, older_than_hours=0)
    assert tiny_services.artifacts.has(read_out.readout)
    delete_task(tiny_services, "mood")
    assert not tiny_services.artifacts.has(read_out.readout)
