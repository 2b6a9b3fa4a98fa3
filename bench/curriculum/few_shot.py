"""A new task on an engine that was trained just now, for `bench.curriculum`: probe, train z on few rows, test.

`bench.heldout` measures a base on new tasks.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.harness.as_a_job import train_embedding
from bench.harness.as_if_new import candidates, workbench
from bench.harness.rows import Row
from bench.stream.tasks import drawn
from onboard.bases import Base
from onboard.data.splits import fair_order
from onboard.evaluate.baselines import score_baselines
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.probe.choice import choose
from onboard.probe.evaluator import Evaluator, ProbedTask
from onboard.train.settings import FewShotSettings

TEST_ROWS = 200


def measure(base: Base, engine: Engine, folder: Path, shots: int, seed: int, settings: FewShotSettings) -> Row:
    """Accuracies (per cent) of one task and one draw of its rows, the embedding's and TF-IDF's, and the start."""
    dataset, test = drawn(folder, shots, seed, TEST_ROWS)
    bench = workbench(base, engine, dataset)
    rows = bench.labelled(dataset.train)
    evaluator = Evaluator(
        engine, ProbedTask(rows.ids, rows.targets, bench.words, bench.hashes(dataset.train), mapped=True)
    )
    offered = candidates(base, seed, folder.name, bench.fingerprint(rows.ids, rows.targets))
    probed = choose(evaluator, offered, np.array(fair_order(dataset, seed)))
    trie = engine.trie(probed.chosen.words)
    z = train_embedding(engine, probed.z, rows, trie, settings, seed).z
    scores = log_probabilities(engine, bench.encode(test), z, trie)
    right = scores.argmax(1) == np.array(dataset.class_indices(test))
    tfidf = score_baselines(dataset, test)["tfidf_logistic_regression"]["accuracy"].value
    return {
        "accuracy": round(100.0 * float(right.mean()), 2), "tfidf": round(100.0 * tfidf, 2),
        "chosen": probed.chosen.embedding,
    }  # fmt: skip
