"""Which runs there are: task × number of rows × draw × method × start or recipe, in the order of their worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product
from typing import Final

from bench.transfer.recipes import TRAINED, recipes_at

AUTO, RANDOM = "auto", "random"
OURS: Final = ("embedding", "hypernetwork")  # methods that have a start; the others have none ("")
BASELINES: Final = (*TRAINED, "tfidf")
SOURCES: Final = ("cola", "sst2", "mrpc", "qqp", "stsb", "mnli", "qnli", "rte")
UNGATED: Final = ("cb",)  # 56 test rows say too little; it is shown

# Where a person would start: of the targets as in the paper (section 4.5), of the sources the likest of the others.
HAND_PICKED: Final[Mapping[str, Mapping[str, str]]] = {
    "target": {
        "scitail": "mnli", "cb": "mnli", "trec": "mnli", "boolq": "qnli", "imdb": "sst2", "yelp_polarity": "sst2",
        "paws": "qqp",
    },
    "source": {
        "cola": "sst2", "sst2": "cola", "mrpc": "qqp", "qqp": "mrpc", "mnli": "rte", "qnli": "rte", "rte": "mnli",
    },
}  # fmt: skip
TITLES: Final = {
    "scitail": "SciTail", "cb": "CB", "trec": "TREC", "boolq": "BoolQ", "imdb": "IMDB", "yelp_polarity": "Yelp",
    "paws": "PAWS", "cola": "CoLA", "sst2": "SST-2", "mrpc": "MRPC", "qqp": "QQP", "mnli": "MNLI", "qnli": "QNLI",
    "rte": "RTE",
}  # fmt: skip

SHOTS: Final = (32, 16, 100)
WITH_EVERY_SOURCE: Final = (16, 100)  # regret is reported there, of the choice of an embedding: with it alone
EMBEDDING_ONLY: Final = (4,)
MORE_SAMPLES: Final = (500, 2000)  # footnote 4: embedding-only is "comparable with more samples"
MORE_SAMPLES_TASKS: Final = ("imdb", "paws", "trec")


@dataclass(frozen=True, order=True)
class TrainingRun:
    """One training.

    Args:
        task: that is new.
        shots: labelled rows in all.
        seed: of the draw of the rows, and of the training.
        method: one of OURS or BASELINES.
        start: auto, random or a source for OURS; empty for the others.
        recipe: its name, for baselines that are trained; empty for the others.
    """

    task: str
    shots: int
    seed: int
    method: str
    start: str = ""
    recipe: str = ""

    @property
    def cell(self) -> tuple[str, int, int]:
        """The key of rows that all methods share."""
        return self.task, self.shots, self.seed


@dataclass(frozen=True)
class Wanted:
    """The requested runs; empty means everything.

    Args:
        tasks, shots, methods, starts: only these (`hand` is each task's hand-picked source).
        seeds: how many draws.
    """

    tasks: tuple[str, ...] = ()
    shots: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    starts: tuple[str, ...] = ()
    seeds: int = 3

    def takes(self, run: TrainingRun, hand: str) -> bool:
        """Whether the run is requested."""
        starts = {hand if start == "hand" else start for start in self.starts}
        return (
            (not self.tasks or run.task in self.tasks)
            and (not self.shots or run.shots in self.shots)
            and (not self.methods or run.method in self.methods)
            and (not starts or not run.start or run.start in starts)
        )


def plan(suite: str, asked_for: Wanted) -> list[TrainingRun]:
    """The runs, those that the numbers wanted depend on first; within a stage the runs of a cell stand together."""
    hand, (embedding, hypernetwork) = HAND_PICKED[suite], OURS
    auto = dict.fromkeys(hand, (AUTO,))
    three = {task: (AUTO, RANDOM, source) for task, source in hand.items()}
    every = {task: tuple(source for source in SOURCES if source != task) for task in hand}
    of_more = {task: (AUTO,) for task in MORE_SAMPLES_TASKS if task in hand}
    runs = [
        *_crossed(SHOTS, asked_for.seeds, {embedding: three, hypernetwork: auto}, BASELINES),
        *_crossed(WITH_EVERY_SOURCE, asked_for.seeds, {embedding: every}),
        *_crossed(EMBEDDING_ONLY, asked_for.seeds, {embedding: three}, ("tfidf",)),
        *_crossed(MORE_SAMPLES, asked_for.seeds, {embedding: of_more, hypernetwork: of_more}, ("full", "tfidf")),
        *_crossed(sorted(SHOTS, reverse=True), asked_for.seeds, {hypernetwork: three}),  # few rows are seldom tuned
    ]
    return [run for run in dict.fromkeys(runs) if asked_for.takes(run, hand[run.task])]


def _crossed(
    shots: Iterable[int], seeds: int, ours: Mapping[str, Mapping[str, Sequence[str]]], others: Sequence[str] = ()
) -> Iterable[TrainingRun]:
    """Cell by cell: of ours by method the starts of each task, then the other methods with their recipes."""
    for count in shots:
        for seed, task in product(range(seeds), next(iter(ours.values()))):
            yield from (
                TrainingRun(task, count, seed, method, start) for method in ours for start in ours[method][task]
            )
            for method in others:
                yield from (
                    TrainingRun(task, count, seed, method, "", name) for name in recipes_at(method, count, seed)
                )


def part_of(runs: Sequence[TrainingRun], index: int, count: int) -> list[TrainingRun]:
    """Every `count`-th group of runs of one cell, from the `index`-th (from 1) on: cells are read and probed once."""
    groups = [list(group) for _, group in groupby(runs, key=lambda run: run.cell)]
    return [run for group in groups[index - 1 :: count] for run in group]
