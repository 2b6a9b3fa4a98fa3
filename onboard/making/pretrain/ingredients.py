"""The ingredients of every base with a curriculum: recipe, texts, and the teacher's vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays

from onboard.making.curriculum import PlainTexts, topics
from onboard.making.multitask.loop import Running
from onboard.making.multitask.sources import SourceRows
from onboard.making.pretrain import sentences
from onboard.making.pretrain.recipe import OwnRecipe, RenewedRecipe
from onboard.making.pretrain.teacher import Teacher

RecipeT = TypeVar("RecipeT", bound=OwnRecipe | RenewedRecipe)


@dataclass(frozen=True)
class Ingredients(Generic[RecipeT]):
    """The inputs of a base.

    Args:
        recipe: all settings and the sources.
        corpus: plain-text files.
        running: work folder (the same one resumes), progress, processes, signals.
    """

    recipe: RecipeT
    corpus: Sequence[Path]
    running: Running

    @property
    def work(self) -> Path:
        """Folder of the checkpoints."""
        return self.running.work

    def settings(self, *sections: str) -> dict[str, Any]:
        """Return the seed and some sections of the recipe, for a stage's checkpoint."""
        return self.recipe.model_dump(mode="json", by_alias=True, include={"seed", *sections})


def load_texts(made_from: Ingredients[RecipeT], rows: Sequence[SourceRows]) -> list[str]:
    """Return the texts for the teacher, from the work folder or computed.

    Only training rows of the sources are included.
    """
    path = made_from.work / "texts.json"
    if not path.is_file():
        counts = made_from.recipe.sentences
        short, long = sentences.corpus_texts(
            made_from.corpus, counts.from_corpus, counts.paragraphs, made_from.recipe.seed
        )
        of_rows = (text for source in rows for row in source.dataset.train for text in (row.text_a, row.text_b) if text)
        source_texts = list(dict.fromkeys(of_rows))
        if counts.from_sources is not None:
            drawn = np.random.default_rng((made_from.recipe.seed, 4)).permutation(len(source_texts))[
                : counts.from_sources
            ]
            source_texts = [source_texts[index] for index in sorted(drawn.tolist())]
        texts = [*source_texts, *short, *long]
        made_from.work.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(texts), encoding="utf-8")
        made_from.running.say(
            f"texts: {len(texts)}, of which {len(short)} sentences and {len(long)} passages of the corpus"
        )
    loaded: list[str] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def load_teaching(made_from: Ingredients[RecipeT], texts: Sequence[str], teacher: Callable[[], Teacher]) -> PlainTexts:
    """Return texts and common words with the teacher's vectors, from the work folder or computed."""
    path, say = made_from.work / "teaching.safetensors", made_from.running.say
    words = topics.common_words(texts)
    if not path.is_file():
        loaded_teacher = teacher()
        vectors = loaded_teacher.vectors(
            texts, lambda done: say(f"teacher {done}/{len(texts)}") if done % 6400 == 0 else None
        )
        save_arrays({"vectors": vectors, "word_vectors": loaded_teacher.vectors(words)}, path)
    arrays = load_arrays(path)
    return PlainTexts(texts, arrays["vectors"], words, arrays["word_vectors"])
