"""What every base with a curriculum is made of: its recipe, the texts, and what the teacher says of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays

from onboard.making.curriculum import Material, topics
from onboard.making.multitask.loop import Running
from onboard.making.multitask.sources import SourceRows
from onboard.making.pretrain import sentences
from onboard.making.pretrain.recipe import OwnRecipe, RenewedRecipe
from onboard.making.pretrain.teacher import Teacher

RecipeT = TypeVar("RecipeT", bound=OwnRecipe | RenewedRecipe)


@dataclass(frozen=True)
class Ingredients(Generic[RecipeT]):
    """Where a base is made from and where to.

    Args:
        recipe: every number, and the sources.
        corpus: plain-text files.
        running: work folder (the same again resumes), progress, processes, signals.
    """

    recipe: RecipeT
    corpus: Sequence[Path]
    running: Running

    @property
    def work(self) -> Path:
        """Folder of the checkpoints."""
        return self.running.work

    def settings(self, *sections: str) -> dict[str, Any]:
        """The seed and some sections of the recipe: what a stage depends on."""
        return self.recipe.model_dump(mode="json", by_alias=True, include={"seed", *sections})


def load_texts(made_from: Ingredients[RecipeT], rows: Sequence[SourceRows]) -> list[str]:
    """What the teacher reads, from the work folder or anew: of the sources the training rows, never the others."""
    path = made_from.work / "texts.json"
    if not path.is_file():
        counts = made_from.recipe.sentences
        short, long = sentences.corpus_texts(
            made_from.corpus, counts.from_corpus, counts.paragraphs, made_from.recipe.seed
        )
        of_rows = (text for source in rows for row in source.dataset.train for text in (row.text_a, row.text_b) if text)
        own = list(dict.fromkeys(of_rows))
        if counts.from_sources is not None:
            drawn = np.random.default_rng((made_from.recipe.seed, 4)).permutation(len(own))[: counts.from_sources]
            own = [own[index] for index in sorted(drawn.tolist())]
        texts = [*own, *short, *long]
        made_from.work.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(texts), encoding="utf-8")
        made_from.running.say(
            f"texts: {len(texts)}, of which {len(short)} sentences and {len(long)} passages of the corpus"
        )
    loaded: list[str] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def load_teaching(made_from: Ingredients[RecipeT], texts: Sequence[str], teacher: Callable[[], Teacher]) -> Material:
    """Texts and common words with the teacher's vectors, from the work folder or computed by the teacher."""
    path, say = made_from.work / "teaching.safetensors", made_from.running.say
    words = topics.common_words(texts)
    if not path.is_file():
        asked = teacher()
        vectors = asked.vectors(texts, lambda done: say(f"teacher {done}/{len(texts)}") if done % 6400 == 0 else None)
        save_arrays({"vectors": vectors, "word_vectors": asked.vectors(words)}, path)
    arrays = load_arrays(path)
    return Material(texts, arrays["vectors"], words, arrays["word_vectors"])
