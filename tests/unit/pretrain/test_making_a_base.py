"""From text and sources to a base: every stage once, in small, with a teacher of random directions."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_base import WORDS

from onboard.bases import find_base
from onboard.errors import InputError
from onboard.pretrain import checkpoint, run, topics
from onboard.pretrain.checkpoint import Checkpoint
from onboard.pretrain.recipe import Recipe
from onboard.pretrain.run import Ingredients, make_base
from onboard.pretrain.teacher import SIZE
from onboard.serving import Predictor

STAGE = {"steps": 3, "batch": 6, "learning_rate": 1e-3, "warmup_steps": 1}
RECIPE = Recipe.model_validate(
    {
        "name": "test",
        "seed": 0,
        "licence": "Apache-2.0",
        "backbone": {
            "vocabulary_size": 400, "d_model": 16, "d_ff": 32, "d_kv": 8, "heads": 2, "encoder_layers": 1,
            "decoder_layers": 1, "max_tokens": 32,
        },
        "sentences": {"from_corpus": 300, "paragraphs": 2},
        "distill": STAGE,
        "read": STAGE,
        "curriculum": {
            "renamings": 1, "topic_levels": [2, 3], "topic_subsets": 1, "share_of_sources": 0.4, "share_of_topics": 0.2,
            "share_of_renamed": 0.2, "share_of_subsets": 0.2,
        },
        "multitask": STAGE,
        "hypernetwork": {**STAGE, "reduction_factor": 4, "task_embedding_size": 8, "projector_width": 8},
    }
)  # fmt: skip
SUBJECTS = ["music", "kitchen", "money", "sports", "travel", "garden"]


class _Teacher:
    """A text's vector is the sum of its words' random directions."""

    def vectors(self, texts: Sequence[str], progress: Callable[[int], None] = lambda done: None) -> np.ndarray:
        found = np.stack([sum(map(_direction, text.lower().split() or ["."]), np.zeros(SIZE)) for text in texts])
        unit: np.ndarray = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float16)
        return unit


def _direction(word: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).standard_normal(SIZE)


class _PowerCutError(Exception):
    """Ends a run in the middle."""


@pytest.fixture
def ingredients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Ingredients]:
    """Sources and corpus with a work folder of its own for each name."""
    monkeypatch.setattr(run, "Teacher", _Teacher)
    monkeypatch.setattr(topics, "_SKIPPED_WORDS", 0)
    monkeypatch.setattr(checkpoint, "_EVERY_SECONDS", -1.0)
    rows = [{"text": f"{subject} is what this text {row} tells of", "label": subject} for subject in SUBJECTS[:2]
            for row in range(12)]  # fmt: skip
    scores = [{"text_a": f"{SUBJECTS[row % 6]} and", "text_b": "money", "label": row / 4} for row in range(24)]
    for name, found in (("subjects", rows), ("alike", scores)):
        (tmp_path / "sources" / name).mkdir(parents=True)
        for split in ("train", "validation", "test"):
            with gzip.open(tmp_path / "sources" / name / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in found)
    corpus = tmp_path / "corpus.txt"
    ends = ("", "like", "wise", "ful", "less")
    made = [
        first + last for first in ("bar", "den", "fil", "gor", "lum", "mar", "sol") for last in ("ten", "vik", "mon")
    ]
    words = [f"{word} and {word}{end}" for word in [*SUBJECTS, *WORDS.split(), *made] for end in ends]
    corpus.write_text("\n".join(f"This sentence speaks of {word} all day." for word in words), encoding="utf-8")

    def make(name: str) -> Ingredients:
        return Ingredients(RECIPE, tmp_path / "sources", [corpus], tmp_path / name, lambda line: None)

    return make


def test_a_base_is_made_resumes_where_it_was_cut_and_gives_the_same_bytes(
    ingredients: Callable[[str], Ingredients], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ingredients("whole")
    make_base(whole, tmp_path / "first")
    base = find_base(str(tmp_path / "first"))
    assert [source.name for source in base.sources] == ["alike", "subjects"]
    assert [anchor.name for anchor in base.anchors] == ["topics-2", "topics-3"]
    assert base.document["sources"]["subjects"]["metrics"]["test"]["accuracy"]["n"] == 24
    assert all(z.shape == (8,) for z in base.embeddings.values())
    assert set(base.trained_rows) == {"alike", "subjects"}
    assert (base.folder / "card.md").read_text(encoding="utf-8").startswith("# Base `test`")
    (answer,) = Predictor(base).predict([{"task": "subjects", "text": "a text on music"}])
    assert answer.label in SUBJECTS[:2]

    cut = ingredients("cut")
    (tmp_path / "cut").mkdir()
    for name in ("texts.json", "teaching.safetensors", "topics.json"):  # a tokenizer's ties are broken anew each time
        (tmp_path / "cut" / name).write_bytes((tmp_path / "whole" / name).read_bytes())
    (tmp_path / "cut" / "tokenizer").mkdir()
    for path in (tmp_path / "whole" / "tokenizer").iterdir():
        (tmp_path / "cut" / "tokenizer" / path.name).write_bytes(path.read_bytes())
    save, saved = Checkpoint.save, []

    def save_then_cut(self: Checkpoint, step: int) -> None:
        save(self, step)
        saved.append(step)
        if len(saved) in (2, 6, 12):  # in the middle of three of the four training stages
            raise _PowerCutError

    monkeypatch.setattr(Checkpoint, "save", save_then_cut)
    for _ in range(3):
        with pytest.raises(_PowerCutError):
            make_base(cut, tmp_path / "second")
        assert not (tmp_path / "second" / "base.json").exists()
    make_base(cut, tmp_path / "second")
    assert find_base(str(tmp_path / "second")).digest == base.digest


def test_too_little_text_for_the_vocabulary_is_told_before_anything_is_trained(
    ingredients: Callable[[str], Ingredients], tmp_path: Path
) -> None:
    given = ingredients("work")
    shape = RECIPE.backbone.model_copy(update={"vocabulary_size": 5000})
    wanting = replace(given, recipe=RECIPE.model_copy(update={"backbone": shape}))
    with pytest.raises(InputError, match="the recipe asks for 5000") as caught:
        make_base(wanting, tmp_path / "base")
    assert "backbone.vocabulary_size" in caught.value.remedy
