"""From text and sources to a base: every stage once, in small, with a teacher of a few thousand numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_base import WORDS
from tiny_teacher import make_teacher
from tiny_training import WORDS as SOURCE_WORDS
from tiny_training import make_sources

from onboard.bases import find_base
from onboard.bases.load import load_engine
from onboard.curriculum import topics
from onboard.errors import InputError
from onboard.multitask import checkpoint
from onboard.multitask.assemble import measure
from onboard.multitask.checkpoint import Checkpoint
from onboard.multitask.loop import Running
from onboard.multitask.sources import folder_entries, read_sources
from onboard.pretrain.recipe import OwnRecipe
from onboard.pretrain.run import Ingredients, make_base
from onboard.pretrain.teacher import Teacher
from onboard.serving import Predictor

STAGE = {"steps": 3, "batch": 6, "learning_rate": 1e-3, "warmup_steps": 1}
RECIPE = OwnRecipe.model_validate(
    {
        "name": "test",
        "seed": 0,
        "licence": "Apache-2.0",
        "backbone": {"vocabulary_size": 300, "d_ff": 24, "decoder_layers": 1, "max_tokens": 32},
        "sentences": {"from_corpus": 300, "paragraphs": 2, "more_from_corpus": 20, "more_paragraphs": 0},
        "inherit": {"texts": 60, "most_tokens": 16},
        "distill": {**STAGE, "batch": 60},
        "curriculum": {
            "topic_levels": [2, 3], "fewest_rows": 4, "sources": {"share": 0.4, "tasks": 9},
            "renamed": {"share": 0.2, "tasks": 2}, "topics": {"share": 0.4, "tasks": 4},
        },
        "multitask": {
            **STAGE, "dropout": 0.1, "label_smoothing": 0.1, "shares": {"sources": 0.6, "topics": 0.4},
            "decoder_rate": 1.5,
        },
        "hypernetwork": {
            **STAGE, "reduction_factor": 1, "task_embedding_size": 16, "projector_width": 8, "embedding_rate": 10.0,
            "tasks_per_batch": 2,
        },
    }
)  # fmt: skip
SUBJECTS = ["music", "kitchen", "money", "sports", "travel", "garden"]
MADE = [first + last for first in ("bar", "den", "fil", "gor", "lum", "mar", "sol") for last in ("ten", "vik", "mon")]
ENDS = ("", "like", "wise", "ful", "less")


class _PowerCutError(Exception):
    """Ends a run in the middle."""


@pytest.fixture
def ingredients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Ingredients]:
    """Sources and corpus with a work folder of its own for each name."""
    words = [word + end for word in (*SUBJECTS, *WORDS.split(), *MADE) for end in ENDS]
    known = ["this", "sentence", "speaks", "of", "all", "day", *SOURCE_WORDS, *words]
    monkeypatch.setattr(Teacher, "load", lambda: make_teacher(known))
    monkeypatch.setattr(topics, "_SKIPPED_WORDS", 0)
    monkeypatch.setattr(checkpoint, "_EVERY_SECONDS", -1.0)
    sources = folder_entries(make_sources(tmp_path / "sources"))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join(f"This sentence speaks of {word} all day." for word in words), encoding="utf-8")

    def make(name: str) -> Ingredients:
        recipe = RECIPE.model_copy(update={"sources": sources})
        return Ingredients(recipe, [corpus], Running(tmp_path / name, lambda line: None))

    return make


def test_a_base_is_made_resumes_where_it_was_cut_and_gives_the_same_bytes(
    ingredients: Callable[[str], Ingredients], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ingredients("whole")
    make_base(whole, tmp_path / "first")
    base = find_base(str(tmp_path / "first"))
    assert [source.name for source in base.sources] == ["alike", "moods"]
    assert [anchor.name for anchor in base.anchors] == ["topics-any-all-2", "topics-any-all-3"]
    assert base.document["sources"]["moods"]["metrics"]["test"]["accuracy"]["n"] == 24
    assert all(z.shape == (16,) for z in base.embeddings.values())
    assert set(base.trained_rows) == {"alike", "moods"}
    assert (base.folder / "card.md").read_text(encoding="utf-8").startswith("# Base `test`")
    (answer,) = Predictor(base).predict([{"task": "moods", "text": "a great film"}])
    assert answer.label in ("negative", "positive")

    cut = ingredients("cut")
    save, saved = Checkpoint.save, []

    def save_then_cut(self: Checkpoint, step: int) -> None:
        save(self, step)
        saved.append(step)
        if len(saved) in (2, 6, 10):  # in the middle of each of the training stages
            raise _PowerCutError

    monkeypatch.setattr(Checkpoint, "save", save_then_cut)
    for _ in range(3):
        with pytest.raises(_PowerCutError):
            make_base(cut, tmp_path / "second")
        assert not (tmp_path / "second" / "base.json").exists()
    make_base(cut, tmp_path / "second")
    assert find_base(str(tmp_path / "second")).digest == base.digest


def test_what_was_measured_is_what_is_stored_in_int8(ingredients: Callable[[str], Ingredients], tmp_path: Path) -> None:
    given = ingredients("work")
    make_base(given, tmp_path / "base")
    base = find_base(str(tmp_path / "base"))
    engine = load_engine(base, "cpu")
    assert base.document["weights"] == "int8"
    assert not (base.folder / "backbone" / "model.safetensors").exists()
    assert "int8" in (base.folder / "card.md").read_text(encoding="utf-8")
    for rows in read_sources(given.recipe.sources, given.recipe.seed):
        z = base.embeddings[rows.name]
        again = measure(engine, z, rows.worded(engine.encoder), rows.dataset.test)
        assert again == base.document["sources"][rows.name]["metrics"]


def test_too_little_text_for_the_vocabulary_is_told_before_anything_is_trained(
    ingredients: Callable[[str], Ingredients], tmp_path: Path
) -> None:
    given = ingredients("work")
    shape = RECIPE.backbone.model_copy(update={"vocabulary_size": 5000})
    wanting = replace(given, recipe=given.recipe.model_copy(update={"backbone": shape}))
    with pytest.raises(InputError, match="the recipe asks for 5000") as caught:
        make_base(wanting, tmp_path / "base")
    assert "backbone.vocabulary_size" in caught.value.remedy


def test_shares_of_kinds_without_tasks_are_told_before_the_backbone_is_trained(
    ingredients: Callable[[str], Ingredients], tmp_path: Path
) -> None:
    given = ingredients("work")
    stage = RECIPE.multitask.model_copy(update={"shares": {"form": 0.5, "renamed": 0.5}})
    wanting = replace(given, recipe=given.recipe.model_copy(update={"multitask": stage}))
    with pytest.raises(InputError, match="form, renamed") as caught:
        make_base(wanting, tmp_path / "base")
    assert caught.value.data["field"] == "multitask.shares"
    assert "sources, topics" in caught.value.remedy
