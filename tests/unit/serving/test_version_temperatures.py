"""How sure answers sound: what a temperature does, and how rows choose it."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from support.published import add_version, embedding_of

from onboard.bases import Base
from onboard.contract.versions import VersionDocument
from onboard.registry.services import Services
from onboard.serving import Predictor
from onboard.statistics.temperature import fit_temperature, tempered
from onboard.storage.embedding import read_facts
from onboard.versions.fetch import fetch

TEXTS = ("a good film", "sad", "the plot was awful and long")


def overconfident(rows: int, temperature: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, 3) that want this temperature, and targets that are drawn with it."""
    random = np.random.default_rng(0)
    scores = random.normal(size=(rows, 3))
    right = tempered(np.exp(scores) / np.exp(scores).sum(1, keepdims=True), 1.0)
    drawn = np.array([random.choice(3, p=row) for row in right])
    return tempered(right, 1 / temperature), np.eye(3)[drawn]


def test_no_label_moves_and_above_one_every_answer_is_less_sure() -> None:
    probabilities, _ = overconfident(50, 1.0)
    for temperature in (0.3, 1.0, 2.5):
        at = tempered(probabilities, temperature)
        assert at.sum(1) == pytest.approx(1.0)
        assert (at.argmax(1) == probabilities.argmax(1)).all()
        assert ((at.max(1) < probabilities.max(1)) == (temperature > 1)).all()
    assert tempered(np.array([[0.0, 1.0]]), 2.0) == pytest.approx(np.array([[0.0, 1.0]]), abs=1e-5)


def test_many_rows_find_the_temperature_and_few_stay_near_one() -> None:
    assert fit_temperature(*overconfident(2000, 2.0)) == pytest.approx(2.0, rel=0.1)
    assert fit_temperature(*overconfident(2000, 0.5)) == pytest.approx(0.5, rel=0.1)
    few = overconfident(12, 2.0)
    assert 1.0 < fit_temperature(*few) < fit_temperature(*few, deviation=inf)
    assert fit_temperature(np.zeros((0, 3)), np.zeros((0, 3))) == 1.0


def test_a_version_answers_at_its_temperature_and_its_file_says_it(
    tiny_services: Services, tiny_base: Base, tmp_path: Path
) -> None:
    labels = ("bad", "good", "odd")
    add_version(tiny_services, tiny_base, "mood", labels, labels, z=embedding_of(1))
    add_version(tiny_services, tiny_base, "mood", labels, labels, z=embedding_of(1), temperature=2.0)
    predictor = Predictor(tiny_services)
    inputs = [{"task": "mood", "text": text} for text in TEXTS]
    plain = predictor.predict([{**given, "ref": "v1"} for given in inputs])
    mixed = predictor.predict([{**given, "ref": "v2"} for given in inputs] + [{**inputs[0], "ref": "v1"}])
    for before, after in zip(plain, mixed, strict=False):
        assert after.label == before.label
        assert after.probabilities == pytest.approx(tempered(np.array([before.probabilities]), 2.0)[0], abs=1e-6)
    assert mixed[-1].probabilities == pytest.approx(plain[0].probabilities, abs=1e-6)
    some = predictor.predict([{**inputs[0], "ref": ref, "labels": ["bad", "odd"]} for ref in ("v1", "v2")])
    assert np.divide(*some[1].probabilities) == pytest.approx(np.divide(*some[0].probabilities) ** 0.5, rel=1e-4)
    fetched = fetch(tiny_services, "mood@v2", tmp_path / "out")
    assert read_facts(fetched.files[0].read_bytes())["temperature"] == 2.0
    assert "| temperature | `2.0` |" in fetched.files[1].read_text()
    assert VersionDocument.of(replace(fetched.version, temperature=1.0)).temperature == 1.0
