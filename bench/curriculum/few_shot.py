"""A new task on an engine that was trained just now, for `bench.curriculum`: probe, train z on few rows, test.

What a base is good for on new tasks is measured by `bench.transfer`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.harness.as_a_job import train_embedding
from bench.harness.as_if_new import candidates, drawn_tests, workbench
from onboard.bases import Base
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.splits import fair_order
from onboard.domain.dataset import Example
from onboard.evaluate.baselines import score_baselines
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.pipeline.material import Workbench
from onboard.probe.candidates import random_candidate
from onboard.probe.choice import choose
from onboard.probe.evaluator import Evaluator, ProbedTask
from onboard.train.settings import FewShotSettings

TEST_ROWS = 500


def measure(
    base: Base, engine: Engine, folder: Path, shots: int, seed: int, settings: FewShotSettings
) -> dict[str, Any]:
    """Accuracies (per cent) of one task and one draw of its rows, before and after training, and TF-IDF's."""
    options = ReadOptions(test=folder / "test.jsonl.gz", shots=shots, seed=seed, suspects=False)
    dataset = read_dataset(folder / "train.jsonl.gz", options).dataset
    bench = workbench(base, engine, dataset)
    test, rows = drawn_tests(dataset, TEST_ROWS), bench.labelled(dataset.train)
    evaluator = Evaluator(
        engine, ProbedTask(rows.ids, rows.targets, bench.words, bench.hashes(dataset.train), mapped=True)
    )
    offered = candidates(base, seed, folder.name, bench.fingerprint(rows.ids, rows.targets))
    probed = choose(evaluator, offered, np.array(fair_order(dataset, seed)))
    starts = {
        "auto": (probed.z, probed.chosen.words), "random": (random_candidate(len(probed.z), seed).z, bench.words),
    }  # fmt: skip
    accuracies: dict[str, Any] = {"chosen": probed.chosen.embedding}
    for label, (z, words) in starts.items():
        trained = train_embedding(engine, z, rows, engine.trie(words), settings, seed)
        accuracies[f"{label}_before"] = accuracy(bench, z, words, test)
        accuracies[f"{label}_after"] = accuracy(bench, trained.z, words, test)
    return accuracies | {"tfidf": 100.0 * score_baselines(dataset, test)["tfidf_logistic_regression"]["accuracy"].value}


def accuracy(bench: Workbench, z: np.ndarray, words: tuple[str, ...], rows: list[Example]) -> float:
    """Per cent of rows answered right."""
    scores = log_probabilities(bench.engine, bench.encode(rows), z, bench.engine.trie(words))
    return 100.0 * float((scores.argmax(1) == np.array(bench.dataset.class_indices(rows))).mean())
