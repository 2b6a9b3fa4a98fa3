"""card.md: a version for people."""

from __future__ import annotations

from dataclasses import replace

from onboard.contract.card import render_card
from onboard.contract.measured import LabelScoreDocument
from onboard.domain.label_scores import LabelScore
from onboard.domain.task import EmbeddingVersion

VERSION = EmbeddingVersion(
    task="mood", kind="onboarded", artifact="sha256:a", embedding_digest="sha256:e", backbone_digest="sha256:b",
    base_digest="sha256:c", hypernetwork_version=1, dataset_digest="sha256:d", parent="sst2@v1",
    task_kind="classification", labels=(False, True), words=("no", "yes"), code_version="0.1.0+abc",
    method="hyperformer++", seeds=(7, 8), version=2, job="0123456789ab", created_at=0.0,
    metrics={
        "test": {"accuracy": {"value": 0.91234, "low": 0.8, "high": 0.95, "n": 60}},
        "validation": {"accuracy": {"value": 0.5, "low": None, "high": None, "n": 1}},
    },
)  # fmt: skip


def test_the_card_names_labels_with_their_words_metrics_with_their_intervals_and_every_pin() -> None:
    card = render_card(VERSION)
    assert card.startswith("# mood@v2\n")
    assert "false (“no”), true (“yes”)" in card
    assert "| accuracy | 0.912 | 0.800 to 0.950 | 60 |" in card
    assert "| accuracy | 0.500 | – | 1 |" in card
    for pin in ("sha256:e", "sha256:b", "sha256:c", "sha256:d", "sst2@v1", "7, 8", "0.1.0+abc", "0123456789ab"):
        assert f"`{pin}`" in card
    assert "1970-01-01T00:00:00.000Z" in card
    assert "Weak" not in card
    assert "Takes" not in card  # an earlier release did not note it
    assert "Takes a pair of texts: text_a and text_b." in render_card(replace(VERSION, pairs=True))
    assert card.index("| test |") < card.index("| validation |")


def test_the_card_says_how_an_estimate_came_about_and_why_a_value_is_odd() -> None:
    note = "undefined, given as 0: all predictions are the same"
    accuracy = {"value": 0.8, "low": 0.6, "high": 0.9, "n": 40, "estimate": "cross-validated"}
    mse = {"value": 0.00002, "low": 0.00001, "high": 0.0003, "n": 40, "estimate": "cross-validated"}
    mcc = {"value": 0.0, "low": None, "high": None, "n": 40, "note": note, "estimate": "cross-validated"}
    card = render_card(replace(VERSION, metrics={"validation": {"accuracy": accuracy, "mcc": mcc, "mse": mse}}))
    assert "| validation (cross-validated) | value |" in card
    assert f"\nmcc: {note}.\n" in card
    assert "| mse | 2e-05 | 1e-05 to 0.0003 | 40 |" in card


def test_a_weak_version_says_so_first() -> None:
    lines = render_card(replace(VERSION, weak=True)).splitlines()
    assert lines[2].startswith("**Weak:**")


def test_a_scale_shows_its_range() -> None:
    scale = replace(VERSION, task_kind="regression", labels=(), words=("0", "5"), low=0.0, high=5.0)
    assert "A number from 0 to 5." in render_card(scale)


def test_a_shipped_source_says_what_it_has_not() -> None:
    shipped = replace(VERSION, kind="source", parent="", dataset_digest="", job=None, seeds=(), metrics={"test": None})
    card = render_card(shipped)
    assert "multi-task training of the base" in card
    assert "shipped with the base" in card
    assert "| test |" not in card


def test_labels_cannot_break_the_cards_tables() -> None:
    odd = replace(VERSION, labels=("a|b", "c\nd # e<script>"), words=("a b", "c d"))
    lines = render_card(odd).splitlines()
    assert not any(line.startswith("d # e") for line in lines)
    assert "<script>" not in "".join(lines)
    table = [line for line in lines if line.startswith("|")]
    assert all(line.endswith("|") for line in table)


def test_the_card_tells_every_label_and_which_never_gets_an_answer() -> None:
    scores = LabelScore("good", 15, 30, 15), LabelScore("b|d", 15, 0, 0)
    labels = [LabelScoreDocument.of_score(score).to_json() for score in scores]
    macro_f1 = {"value": 0.33, "low": 0.3, "high": 0.36, "n": 30, "labels": labels}
    version = replace(VERSION, metrics={"validation": None, "test": {"macro_f1": macro_f1}})
    card = render_card(version)
    assert "It gives every text the same answer, good, and never answers b|d (15 rows)." in card.splitlines()[2]
    assert "| test by label | precision | recall | F1 | rows | answered |" in card
    assert "| good | 0.500 | 1.000 | 0.667 | 15 | 30 |" in card
    assert "| b&#124;d | – | 0.000 | 0.000 | 15 | 0 |" in card
