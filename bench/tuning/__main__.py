"""How hypernetwork and embedding are best tuned on held-out tasks, and how much of it the guard takes.

    python -m bench.tuning --work FILE [--recipes NAME …] [--tasks NAME …] [--seeds 1] [--plan]

Every task is learned by its embedding first; then each recipe tunes from there, the guard takes what share of the step
it can, and both ends are measured: the new task's test rows, and what labelled rows of the sources lose, which neither
tuning nor the guard sees. The guard looks at as many of the sources as a job's does. Tasks are those of `bench.stream`,
never the targets.

Every run leaves a line of JSON in the work file; existing results are kept.
Needs the datasets next to the checkout (../shared/data) or in --data; says so and stops where they are missing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Final

import numpy as np
import torch

from bench.harness.as_a_job import judged, train_embedding
from bench.harness.as_if_new import shipped_tasks, workbench
from bench.harness.command import DATA, command_line, command_of, datasets_there
from bench.harness.figures import accuracy
from bench.harness.rows import Row
from bench.harness.runs import report_runs, run_all
from bench.harness.source_folders import SUITES, read_rows, source_places
from bench.stream.tasks import SUITE, TASKS, drawn
from bench.tuning.page import page
from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.data.regression import Buckets
from onboard.domain.dataset import Example
from onboard.evaluate.baselines import score_baselines
from onboard.guard import Step
from onboard.guard.canaries import canary_ids
from onboard.guard.settings import GuardSettings
from onboard.model.batch import LabelledRows, TrainingSet
from onboard.model.batched import mixed_log_probabilities
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.interpolate import between, embedding_between
from onboard.model.protected import Protection
from onboard.model.scoring import LabelTrie
from onboard.pipeline.material import Workbench
from onboard.train.settings import FewShotSettings, TuningSettings
from onboard.train.tuning import tune
from onboard.train.worth_tuning import EmbeddingAlone, worth_tuning

TEST_ROWS: Final = 150
SOURCE_ROWS: Final = 24  # of each source, labelled, to see what it loses
_NEVER: Final = -100.0  # log-probability of what lies beyond a source's own labels
ALONE: Final = FewShotSettings(seeds=1)
_DRIFT: Final = TuningSettings(regulariser="drift")
RECIPES: Final[dict[str, TuningSettings]] = {
    "drift, β 30": _DRIFT,
    "drift, β 10": replace(_DRIFT, beta=10.0),
    "drift, β 100": replace(_DRIFT, beta=100.0),
    "nothing held": replace(_DRIFT, beta=0.0),
    "drift, β 30, 40 steps": replace(_DRIFT, steps=40, most_steps=40),
    "drift, β 30, half the steps": replace(_DRIFT, steps=40, passes=5),
    "drift, β 30, twice the steps": replace(_DRIFT, steps=160, passes=20),
    "divergence, β 30": replace(_DRIFT, regulariser="divergence"),
    "drift, β 30, three times the rate": replace(_DRIFT, learning_rate=3e-4),
    "drift, β 30, ten times the rate": replace(_DRIFT, learning_rate=1e-3),
}


@dataclass(frozen=True)
class Material:
    """One task: its rows, encoded, and its test rows with their truth."""

    bench: Workbench
    rows: LabelledRows
    test_ids: Sequence[Sequence[int]]
    test: Sequence[Example]
    truth: np.ndarray


def main() -> int:
    """Measure, print a table, write JSON and the page."""
    parser = command_line(__doc__, "tuning")
    parser.add_argument("--base", default="mini")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with source/ and wide/")
    parser.add_argument("--work", type=Path, required=True, help="JSON lines, one a run")
    parser.add_argument("--recipes", nargs="*", default=list(RECIPES), choices=RECIPES, metavar="NAME")
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=TASKS, metavar="NAME")
    parser.add_argument("--shots", type=int, default=32, help="labelled rows of a task")
    parser.add_argument("--seeds", type=int, default=1, help="draws of each task's rows")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--plan", action="store_true", help="tell how many runs there are, and measure nothing")
    asked = parser.parse_args()
    cells = [(task, seed) for task in asked.tasks for seed in range(asked.seeds)]
    if asked.plan:
        print(
            f"{len(cells)} tasks and draws, {len(asked.recipes)} recipes each: {len(cells) * len(asked.recipes)} runs"
        )
        return 0
    if not datasets_there(asked.data, "--data", SUITES):
        return 0
    torch.set_num_threads(asked.threads)
    base = find_base(asked.base)
    settings = {
        "base": base.digest, "shots": asked.shots, "test_rows": TEST_ROWS, "source_rows": SOURCE_ROWS,
        "training": asdict(ALONE),
    }  # fmt: skip
    place = BaseWithSources(base, load_engine(base, "cpu"), asked.data, asked.shots)
    rows: list[Row] = []
    for task, seed in cells:  # cell by cell, so that partial results after a break can be compared
        (alone,) = run_all([(task, seed)], place.learn_alone, asked.work, settings)
        rows.append(alone)
        for name in asked.recipes:
            measure = partial(place.tune, alone, RECIPES[name])
            of_recipe = settings | {"recipe": asdict(RECIPES[name]), "guard": asdict(GuardSettings())}
            rows += run_all([(f"{name}/{task}", seed)], measure, asked.work, of_recipe)
    recipes = {name: asdict(RECIPES[name]) for name in asked.recipes}
    settings |= {"guard": asdict(GuardSettings()), "recipes": recipes}
    short = [{key: value for key, value in row.items() if key != "z"} for row in rows]
    return report_runs(command_of("tuning", sys.argv[1:]), asked, settings, short, page)


class BaseWithSources:
    """Where everything is measured: the base, and the sources that must not lose.

    Args:
        base: that tasks are learned on.
        engine: its model.
        data: the folder of the suites.
        shots: labelled rows of a task.
    """

    def __init__(self, base: Base, engine: Engine, data: Path, shots: int) -> None:
        self.base, self.engine, self.data, self.shots = base, engine, data, shots
        self.sources = Sources(base, engine, data)
        self.trained_on, self.judged_by = (canary_ids(engine.encoder, use) for use in ("tuning", "guard"))

    def learn_alone(self, task: str, seed: int) -> Row:
        """The embedding alone: one order of the batches, from the fingerprint of the rows, which needs no probe."""
        material = self._material(task, seed)
        bench, rows = material.bench, material.rows
        assert self.base.fingerprints is not None, "on this base a fingerprint is no embedding"
        start = bench.fingerprint(rows.ids, rows.targets)
        trie = self.engine.trie(bench.words)
        trained = train_embedding(self.engine.rounded(), start.astype(np.float32), rows, trie, ALONE, seed)
        baselines = score_baselines(bench.dataset, material.test)
        majority, tfidf = (baselines[name]["accuracy"].value for name in ("majority", "tfidf_logistic_regression"))
        tested = self._tested(material, trie, trained.z, self.engine.hypernetwork)
        accuracy, loss = tested["accuracy"], tested["training"]
        count, labels = len(material.truth), len(bench.words)
        worth = worth_tuning(EmbeddingAlone(accuracy, count, majority, tfidf, lambda: loss, labels))
        return {"z": trained.z.tolist(), "majority": majority, "tfidf": tfidf, "auto": worth.tune, **tested}

    def tune(self, alone: Row, recipe: TuningSettings, run: str, seed: int) -> Row:
        """Tune from the embedding alone, let the guard judge, and measure the whole step and the accepted share."""
        material, engine = self._material(run.rpartition("/")[2], seed), self.engine
        trie, z = engine.trie(material.bench.words), np.array(alone["z"], dtype=np.float32)
        started = time.monotonic()
        tuned = tune(
            engine.rounded(), TrainingSet(material.rows, trie), z, Protection(self.sources.earlier, self.trained_on),
            recipe.for_rows(self.shots), seed,
        )  # fmt: skip
        seconds = time.monotonic() - started
        started = time.monotonic()
        verdict = judged(
            engine, Step(engine.hypernetwork, tuned.hypernetwork, z), Protection(self.sources.earlier, self.judged_by),
            GuardSettings(), seed,
        )  # fmt: skip
        row: Row = {
            "losses": [tuned.losses[0], tuned.losses[-1]], "penalty": tuned.penalties[-1], "drift": tuned.drift,
            "tune_seconds": round(seconds, 1), "guard_seconds": round(time.monotonic() - started, 1),
            "share": verdict.share, "judgement": [[task.task, task.verdict, task.increase] for task in verdict.tasks],
            "whole": self._both_ends(material, trie, tuned.z, tuned.hypernetwork),
        }  # fmt: skip
        if 0.0 < verdict.share < 1.0:
            hypernetwork = between(engine.hypernetwork, tuned.hypernetwork, verdict.share)
            row["kept"] = self._both_ends(material, trie, embedding_between(z, tuned.z, verdict.share), hypernetwork)
        return row

    def _both_ends(self, material: Material, trie: LabelTrie, z: np.ndarray, hypernetwork: Hypernetwork) -> Row:
        return {**self._tested(material, trie, z, hypernetwork), "sources": self.sources.losses(hypernetwork)}

    def _tested(self, material: Material, trie: LabelTrie, z: np.ndarray, hypernetwork: Hypernetwork) -> Row:
        """Accuracy and mean loss (nats) of the new task's test rows, and its loss on the training rows."""
        ids = [*material.test_ids, *material.rows.ids]
        generated = hypernetwork(torch.from_numpy(z.astype(np.float32))[None])
        scores = mixed_log_probabilities(self.engine, ids, generated, [trie], np.zeros(len(ids), dtype=np.int64))
        count = len(material.truth)
        return {
            "accuracy": float((scores[:count].argmax(1) == material.truth).mean()),
            "loss": float(-scores[np.arange(count), material.truth].mean()),
            "training": float(-(material.rows.targets * scores[count:]).sum(1).mean()),
        }

    @lru_cache(len(TASKS))  # noqa: B019 (the place lives as long as the program)
    def _material(self, task: str, seed: int) -> Material:
        dataset, test = drawn(self.data / SUITE / task, self.shots, seed, TEST_ROWS)
        bench = workbench(self.base, self.engine, dataset)
        rows = bench.labelled(dataset.train)
        return Material(bench, rows, bench.encode(test), test, np.array(dataset.class_indices(test)))


class Sources:
    """The base's own tasks: the guarded tasks, and labelled test rows that tell what they really lose.

    Args:
        base, engine, data: as of BaseWithSources.
    """

    def __init__(self, base: Base, engine: Engine, data: Path) -> None:
        self.engine, self.names = engine, [source.name for source in base.sources]
        tries = [engine.trie(source.words) for source in base.sources]
        z = [base.embeddings[source.name] for source in base.sources]
        self.earlier = shipped_tasks(base, engine)
        self._z, self._tries = torch.from_numpy(np.stack(z)), tries
        places, self._ids, targets, tasks = source_places(data), [], [], []
        width = max(trie.labels for trie in tries)
        for number, source in enumerate(base.sources):
            rows = read_rows(places[source.name] / "test.jsonl.gz")
            chosen = [rows[place] for place in np.random.default_rng(0).permutation(len(rows))[:SOURCE_ROWS]]
            self._ids += engine.encoder.encode([(row.text_a, row.text_b) for row in chosen])
            if source.low is not None and source.high is not None:
                buckets = Buckets(source.low, source.high)
                own = np.array([buckets.soft_target(float(row.label)) for row in chosen])
            else:
                own = np.eye(len(source.labels))[[source.labels.index(row.label) for row in chosen]]
            targets.append(np.pad(own, ((0, 0), (0, width - own.shape[1]))))
            tasks += [number] * len(chosen)
        self._targets, self._tasks = np.concatenate(targets), np.array(tasks)
        self._before = self._scores(engine.hypernetwork)

    def losses(self, hypernetwork: Hypernetwork) -> Row:
        """By source: increase of the mean loss (nats), its standard error, divergence (nats), change of accuracy."""
        after, by_source = self._scores(hypernetwork), {}
        for number, name in enumerate(self.names):
            own = self._tasks == number
            old, new, targets = self._before[own], after[own], self._targets[own]
            increases = (targets * (old - new)).sum(1)
            by_source[name] = {
                "increase": float(increases.mean()), "error": float(increases.std(ddof=1) / len(increases) ** 0.5),
                "divergence": float((np.exp(old) * (old - new)).sum(1).mean()),
                "accuracy": accuracy(new, targets) - accuracy(old, targets),
            }  # fmt: skip
        return by_source

    def _scores(self, hypernetwork: Hypernetwork) -> np.ndarray:
        with torch.inference_mode():
            generated = hypernetwork(self._z)
        scores = mixed_log_probabilities(self.engine, self._ids, generated, self._tries, self._tasks)
        capped: np.ndarray = np.maximum(scores, _NEVER)
        return capped


if __name__ == "__main__":
    sys.exit(main())
