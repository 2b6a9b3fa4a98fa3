"""One run: a hypernetwork trained on a curriculum, then new embeddings under it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from bench.curriculum import few_shot
from bench.harness.budgeted import Budget, sources_of, train
from bench.harness.rows import Row
from bench.harness.source_folders import read_source
from bench.harness.variants import hypernetwork
from bench.heldout.families import held_out
from onboard.bases import Base, find_base
from onboard.bases.load import fresh_engine
from onboard.making.curriculum import KINDS, Curriculum, CurriculumCounts, PlainTexts, Source, build_curriculum
from onboard.making.curriculum.source import About
from onboard.making.curriculum.topics import common_words
from onboard.making.multitask.recipe import read_recipe
from onboard.making.pretrain.teacher import Teacher
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus
from onboard.train.settings import FewShotSettings

CURRICULA: dict[str, tuple[str, ...]] = {  # name: kinds
    "sources only": ("sources",),
    "+ renamed": ("sources", "renamed"),
    "everything": KINDS,
    **{f"everything but {kind}": tuple(other for other in KINDS if other != kind) for kind in KINDS[1:]},
}
NUMBERS = (8, 32)  # sources alone, those of --sources first; all are "sources only"
SHOTS = 32
FEW_SHOT = FewShotSettings(seeds=1, curve=())  # curricula are compared, and seeds of z cost as much as draws
LEARNING_RATE = 1e-3
MOST_ANCHORS = 12  # made tasks whose embeddings the probe may choose, next to the sources'


@dataclass(frozen=True)
class Options:
    """The settings that a run depends on, in addition to its curriculum and seed."""

    base: str
    sources: Path
    wide: Path
    measured: tuple[str, ...]
    work: Path
    recipe: Path
    budget: Budget
    texts: int
    draws: int


def measure(name: str, seed: int, options: Options) -> Row:
    """One run: a hypernetwork trained on a curriculum, then a new embedding on each held-out task."""
    torch.manual_seed(seed)
    base = find_base(options.base)
    engine = fresh_engine(base)
    chosen = curriculum_of(name, _whole(options))
    reduction, tasks = base.document["reduction_factor"], chosen.tasks
    method = hypernetwork(HyperFormerPlusPlus, reduction, authors_projector=False)(
        engine, [task.name for task in tasks]
    )
    regressions = {source.name for source in learned_sources(options) if source.kind == "regression"}
    train(method, chosen.groups, options.budget, LEARNING_RATE, seed, regressions)
    engine.backbone.requires_grad_(False)
    engine.hypernetwork.requires_grad_(False)
    embeddings = [z.detach()[0].numpy() for z in method.modules["embeddings"].parameters()]
    table = {task.name: z for task, z in zip(tasks, embeddings, strict=True)}
    candidates = _candidates(base, table)
    with TemporaryDirectory() as folder:
        trained = _as_base(base, candidates, Path(folder))
        cells = {
            task: [
                few_shot.measure(trained, engine, options.wide / task, SHOTS, draw, FEW_SHOT)
                for draw in range(options.draws)
            ]
            for task in options.measured
        }
    by_column = {
        column: {task: [cell[column] for cell in draws] for task, draws in cells.items()}
        for column in ("accuracy", "tfidf", "chosen")
    }
    return {"tasks": len(tasks), "kinds": list(chosen.kinds), **by_column}


@lru_cache(1)
def learned_sources(options: Options) -> tuple[Source, ...]:
    """The learned tasks: the tasks of the one folder, then those of the other that are not held out, as they are drawn.

    Of which family each is and what it weighs says the recipe. They are read once a process.
    """
    facts, out = read_recipe(options.recipe).get("sources", {}), set(held_out(options.wide))
    others = sorted(path for path in options.wide.iterdir() if path.is_dir() and path.name not in out)
    drawn = [read_source(others[place]) for place in np.random.default_rng(0).permutation(len(others))]
    return tuple(
        replace(source, about=_about(facts.get(source.name, {}))) for source in (*sources_of(options.sources), *drawn)
    )


def _about(facts: Mapping[str, Any]) -> About:
    return About(family=facts.get("family", ""), weight=facts.get("weight", 1.0))


@lru_cache(1)
def _whole(options: Options) -> Curriculum:
    """Everything that the recipe makes, once a process: all bases of one run have the same tokenizer."""
    encoder = fresh_engine(find_base(options.base)).encoder
    return build_curriculum(learned_sources(options), material_of(options), counts_of(options), encoder, 0)


def curriculum_of(name: str, whole: Curriculum) -> Curriculum:
    """One of `CURRICULA`, or `N sources`: so many of the sources alone."""
    if name in CURRICULA:
        return whole.only(lambda kind, _: kind in CURRICULA[name])
    first = {task.name for task in whole.of("sources")[: int(name.split()[0])]}
    return whole.only(lambda kind, task: kind == "sources" and task.name in first)


def counts_of(options: Options) -> CurriculumCounts:
    """How many tasks of each kind the recipe makes."""
    return CurriculumCounts(**read_recipe(options.recipe)["curriculum"])


@lru_cache(1)
def material_of(options: Options) -> PlainTexts:
    """Texts of the sources and common words with the teacher's vectors; from the work folder or computed.

    Raises:
        NotFoundError: the teacher is not installed.
    """
    rows = (row for source in learned_sources(options) for row in source.train)
    texts = sorted({text for row in rows for text in (row.text_a, row.text_b) if text})
    chosen = np.random.default_rng(0).permutation(len(texts))[: options.texts]
    texts = [texts[index] for index in sorted(chosen.tolist())]
    words = common_words(texts)
    path = options.work / f"material-{zlib.crc32(' '.join((*texts, *words)).encode()):08x}.safetensors"
    if not path.is_file():
        options.work.mkdir(parents=True, exist_ok=True)
        print(f"the teacher reads {len(texts)} texts and {len(words)} words", flush=True)
        teacher = Teacher.load()
        save_file({"vectors": teacher.vectors(texts), "word_vectors": teacher.vectors(words)}, path)
    arrays = load_file(path)
    return PlainTexts(texts, arrays["vectors"], words, arrays["word_vectors"])


def _candidates(base: Base, table: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Embeddings that a new task may start from: the sources', and those of some made tasks."""
    sources = [name for name in base.document["sources"] if name in table]
    made = [name for name in table if name not in sources]
    some = [made[index] for index in np.random.default_rng(0).permutation(len(made))[:MOST_ANCHORS]]
    return {name: table[name] for name in (*sources, *some)}


def _as_base(base: Base, candidates: Mapping[str, np.ndarray], folder: Path) -> Base:
    """The candidates where a base has them; made tasks are anchors."""
    save_file(dict(candidates), folder / "embeddings.safetensors")
    sources = {name: facts for name, facts in base.document["sources"].items() if name in candidates}
    anchors = {
        name: {"kind": "classification", "labels": [], "words": []} for name in candidates if name not in sources
    }
    size = len(next(iter(candidates.values())))
    return Base(folder, {**base.document, "task_embedding_size": size, "sources": sources, "anchors": anchors})
