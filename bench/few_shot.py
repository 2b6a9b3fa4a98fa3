"""What a base is good for on tasks that it has not seen: probe, train z on few rows, test; TF-IDF on the same rows.

    python -m bench.few_shot [--base mini] [--suite target] [--shots 32] [--seeds 3] [--tasks imdb …] [--output FILE]

With `--suite source` each source task is learned as if it were new, without its own embedding among the candidates (the
head has seen it all the same): that is where settings are chosen, never on the targets.
Needs the datasets beside the checkout (../shared/data); says so and stops where they are missing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.as_if_new import candidates, drawn_tests
from bench.budgeted import DATA, datasets_there
from bench.machine import describe
from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.data.read import ReadOptions, read_dataset
from onboard.data.splits import fair_order
from onboard.domain.dataset import Dataset, Example
from onboard.evaluate import score_baselines
from onboard.model.batch import LabelledRows
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.probe.candidates import random_candidate
from onboard.probe.choice import choose
from onboard.probe.evaluator import Evaluator
from onboard.train.fewshot import FewShotSettings, train_embedding
from onboard.workbench import Workbench, label_words

TEST_ROWS = 500


def main() -> int:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="mini")
    parser.add_argument("--suite", choices=("target", "source"), default="target")
    parser.add_argument("--batch", type=int, default=FewShotSettings.batch)
    parser.add_argument("--shots", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", nargs="*", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=FewShotSettings.steps)
    parser.add_argument("--learning-rate", type=float, default=FewShotSettings.learning_rate)
    parser.add_argument("--output", type=Path)
    asked = parser.parse_args()
    if not datasets_there():
        return 0
    torch.set_num_threads(asked.threads)
    base = find_base(asked.base)
    engine = load_engine(base, "cpu")
    settings = FewShotSettings(steps=asked.steps, batch=asked.batch, learning_rate=asked.learning_rate)
    suite = DATA / asked.suite
    rows = []
    for name in asked.tasks or sorted(path.name for path in suite.iterdir() if path.is_dir() and path.name != "stsb"):
        for seed in range(asked.seeds):
            rows.append(measure(base, engine, suite / name, asked.shots, seed, settings))
            print(json.dumps(rows[-1]), flush=True)
    summary = summarise(rows)
    for name, values in summary.items():
        print(f"{name:15s}", "  ".join(f"{key} {value:5.1f}" for key, value in values.items()))
    if asked.output:
        document = {
            "command": "python -m bench.few_shot " + " ".join(sys.argv[1:]), "machine": describe(),
            "base": base.digest, "settings": asdict(settings), "summary": summary, "rows": rows,
        }  # fmt: skip
        asked.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def measure(
    base: Base, engine: Engine, folder: Path, shots: int, seed: int, settings: FewShotSettings
) -> dict[str, Any]:
    """Accuracies (per cent) of one task and one draw of its rows."""
    options = ReadOptions(test=folder / "test.jsonl.gz", shots=shots, seed=seed, suspects=False)
    dataset = read_dataset(folder / "train.jsonl.gz", options).dataset
    bench = Workbench(base, engine, dataset, label_words(dataset, engine))
    test = drawn_tests(dataset, TEST_ROWS)
    started = time.monotonic()
    ids, targets = bench.encode(dataset.train), bench.targets(dataset.train)
    evaluator = Evaluator(
        engine,
        ids,
        targets,
        bench.words,
        bench.hashes(dataset.train),
        mapped=True,
    )
    offered = candidates(base, seed, folder.name, bench.fingerprint(ids, targets))
    probed = choose(evaluator, offered, np.array(fair_order(dataset, seed)))
    probe_seconds = time.monotonic() - started
    found: dict[str, Any] = {
        "task": folder.name,
        "shots": shots,
        "seed": seed,
        "chosen": probed.chosen.embedding,
        "words": probed.chosen.words,
    }
    random = random_candidate(len(probed.z), seed)
    for label, z, words in (("auto", probed.z, probed.chosen.words), ("random", random.z, bench.words)):
        found[f"{label}_before"] = accuracy(bench, z, words, test)
        trie = engine.trie(words)
        rows = LabelledRows(ids, targets)
        started = time.monotonic()
        trained = train_embedding(engine, z, rows, trie, settings, seed)
        found[f"{label}_train_seconds"] = round(time.monotonic() - started, 1)
        found[f"{label}_after"] = accuracy(bench, trained.z, words, test)
    found["tfidf"] = _tfidf(dataset, test)
    found["probe_seconds"] = round(probe_seconds, 1)
    return found


def accuracy(bench: Workbench, z: np.ndarray, words: tuple[str, ...], rows: list[Example]) -> float:
    """Per cent of rows answered right."""
    scores = log_probabilities(bench.engine, bench.encode(rows), z, bench.engine.trie(words))
    return 100.0 * float((scores.argmax(1) == np.array(bench.dataset.class_indices(rows))).mean())


def _tfidf(dataset: Dataset, test: list[Example]) -> float:
    return 100.0 * score_baselines(dataset, test)["tfidf_logistic_regression"]["accuracy"].value


def summarise(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Means over seeds by task, and over tasks."""
    columns = ("auto_before", "auto_after", "random_before", "random_after", "tfidf")
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    means = {
        task: {each: statistics.fmean(row[each] for row in rows if row["task"] == task) for each in columns}
        for task in tasks
    }
    if len(tasks) > 1:
        means["mean"] = {each: statistics.fmean(means[task][each] for task in tasks) for each in columns}
    return means


if __name__ == "__main__":
    sys.exit(main())
