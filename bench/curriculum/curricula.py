"""One run: a hypernetwork trained on a curriculum, then new embeddings under it."""

from __future__ import annotations

import statistics
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from bench.curriculum import few_shot
from bench.harness.as_a_job import train_embedding
from bench.harness.budgeted import Budget, sources_of, train
from bench.harness.rows import Row
from bench.harness.variants import hypernetwork
from onboard.bases import Base, find_base
from onboard.bases.curriculum import KINDS, Curriculum, CurriculumCounts, Material, TrainingTask, build_curriculum
from onboard.bases.curriculum.topics import common_words
from onboard.bases.load import fresh_engine
from onboard.bases.multitask.recipe import read_recipe
from onboard.bases.pretrain.teacher import Teacher
from onboard.model.batch import LabelledRows
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.methods.hyperformer_plus_plus import HyperFormerPlusPlus
from onboard.train.settings import FewShotSettings

MADE = ("topics", "form", "style", "pairs")
CURRICULA: dict[str, tuple[str, ...]] = {  # name: kinds
    "sources only": ("sources",),
    "+ renamed": ("sources", "renamed"),
    "+ topics": ("sources", "renamed", "topics"),
    "+ form": ("sources", "renamed", "topics", "form"),
    "+ pairs": ("sources", "renamed", "topics", "form", "pairs"),
    "everything": KINDS,
    **{f"everything but {kind}": tuple(other for other in KINDS if other != kind) for kind in MADE},
}
NUMBERS = (32, 128)  # tasks out of everything, the sources among them; 8 are the sources, all are everything
SHOTS, TEST_ROWS = 32, 200
FEW_SHOT = FewShotSettings()
LEARNING_RATE = 1e-3
MOST_ANCHORS = 12  # made tasks whose embeddings the probe may choose, beside the sources'
PANEL_TASKS, PANEL_LABELS = 3, 8  # of each made kind, with at most so many labels
DRAWN_AT_ONCE = 16  # rows
FRESH = 10_000_000  # batches from this step on are drawn for no training


@dataclass(frozen=True)
class Options:
    """What a run depends on, beside its curriculum and seed."""

    base: str
    sources: Path
    target: Path
    work: Path
    recipe: Path
    budget: Budget
    texts: int
    draws: int


def measure(name: str, seed: int, options: Options) -> Row:
    """One run: a hypernetwork trained on a curriculum, then new embeddings on TREC and on tasks of the made kinds."""
    torch.manual_seed(seed)
    base = find_base(options.base)
    engine = fresh_engine(base)
    whole = _whole(options)
    chosen = curriculum_of(name, whole)
    reduction, tasks = base.document["reduction_factor"], chosen.tasks
    method = hypernetwork(HyperFormerPlusPlus, reduction, authors_projector=False)(
        engine, [task.name for task in tasks]
    )
    regressions = {source.name for source in sources_of(options.sources) if source.kind == "regression"}
    train(method, chosen.groups, options.budget, LEARNING_RATE, seed, regressions)
    engine.backbone.requires_grad_(False)
    engine.hypernetwork.requires_grad_(False)
    embeddings = [z.detach()[0].numpy() for z in method.modules["embeddings"].parameters()]
    table = {task.name: z for task, z in zip(tasks, embeddings, strict=True)}
    candidates = _candidates(base, table)
    with TemporaryDirectory() as folder:
        trained = _as_base(base, candidates, Path(folder))
        draws = [
            few_shot.measure(trained, engine, options.target, SHOTS, draw, FEW_SHOT) for draw in range(options.draws)
        ]
    columns = ("auto_before", "auto_after", "random_after", "tfidf")
    return {
        "tasks": len(tasks),
        "kinds": list(chosen.kinds),
        "target": {column: [round(draw[column], 2) for draw in draws] for column in columns},
        "chosen": [draw["chosen"] for draw in draws],
        "made": {kind: _panel(engine, list(candidates.values()), whole.of(kind), seed) for kind in MADE},
    }


@lru_cache(1)
def _whole(options: Options) -> Curriculum:
    """Everything that the recipe makes, once a process: all bases of one run have the same tokenizer."""
    encoder = fresh_engine(find_base(options.base)).encoder
    return build_curriculum(sources_of(options.sources), material_of(options), counts_of(options), encoder, 0)


def curriculum_of(name: str, whole: Curriculum) -> Curriculum:
    """One of `CURRICULA`, or `N tasks`: the sources and a draw of the others, alike over all kinds."""
    if name in CURRICULA:
        return whole.only(lambda kind, _: kind in CURRICULA[name])
    count = int(name.split()[0])
    own = whole.of("sources")
    others = [task.name for task in whole.tasks[len(own) :]]
    drawn = {others[index] for index in np.random.default_rng(0).permutation(len(others))[: count - len(own)]}
    drawn |= {task.name for task in own}
    return whole.only(lambda _, task: task.name in drawn)


def counts_of(options: Options) -> CurriculumCounts:
    """How many tasks of each kind the recipe makes."""
    return CurriculumCounts(**read_recipe(options.recipe)["curriculum"])


@lru_cache(1)
def material_of(options: Options) -> Material:
    """Texts of the sources and common words with the teacher's vectors; from the work folder or computed.

    Raises:
        NotFoundError: the teacher is not installed.
    """
    rows = (row for source in sources_of(options.sources) for row in source.train)
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
    return Material(texts, arrays["vectors"], words, arrays["word_vectors"])


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


def _panel(
    engine: Engine, candidates: Sequence[np.ndarray], tasks: Sequence[TrainingTask], seed: int
) -> dict[str, float] | None:
    """Mean accuracy (per cent) over a few tasks of a kind after training z on 32 rows, with the commonest answer's."""
    fixed = [task for task in tasks if task.batch(0, 2).trie.labels == len(task.words) <= PANEL_LABELS]
    order = np.random.default_rng(1).permutation(len(fixed))[:PANEL_TASKS]
    accuracies = [_few_shot(engine, candidates, fixed[index], seed) for index in order.tolist()]
    if not accuracies:
        return None
    ours, commonest = (round(statistics.fmean(column), 2) for column in zip(*accuracies, strict=True))
    return {"accuracy": ours, "commonest": commonest, "tasks": len(accuracies)}


def _few_shot(engine: Engine, candidates: Sequence[np.ndarray], task: TrainingTask, seed: int) -> tuple[float, float]:
    ids, targets = _rows(task, SHOTS + TEST_ROWS)
    trie = task.batch(0, 2).trie

    def log_likelihood(z: np.ndarray) -> float:
        return float((log_probabilities(engine, ids[:SHOTS], z, trie) * targets[:SHOTS]).sum(1).mean())

    rows = LabelledRows(ids[:SHOTS], targets[:SHOTS])
    z = train_embedding(engine, max(candidates, key=log_likelihood), rows, trie, FEW_SHOT, seed).z
    true = targets[SHOTS:].argmax(1)
    right = log_probabilities(engine, ids[SHOTS:], z, trie).argmax(1) == true
    return 100.0 * float(right.mean()), 100.0 * float(np.bincount(true).max() / len(true))


def _rows(task: TrainingTask, count: int) -> tuple[list[Sequence[int]], np.ndarray]:
    """Rows of a task that differ from one another: token ids and targets (n, K)."""
    by_ids: dict[tuple[int, ...], tuple[Sequence[int], np.ndarray]] = {}
    for step in range(20 * count // DRAWN_AT_ONCE):
        drawn = task.batch(FRESH + step, DRAWN_AT_ONCE)
        for ids, target in zip(drawn.ids, drawn.targets, strict=True):
            by_ids.setdefault(tuple(ids), (ids, target))
        if len(by_ids) >= count:
            break
    rows = list(by_ids.values())[:count]
    return [ids for ids, _ in rows], np.array([target for _, target in rows], dtype=np.float32)
