"""The train stage of a job: its embedding is learned, and how sure that is is estimated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onboard.data.splits import is_folded
from onboard.model.batch import TrainingSet
from onboard.pipeline.attempt import Output, Run
from onboard.pipeline.label_next import labelling
from onboard.probe.candidates import in_sorted
from onboard.train.learning import Validation, learn
from onboard.train.settings import FewShotSettings
from onboard.train.suspects import warning_of
from onboard.train.witnesses import known_finding


def train_stage(attempt: Run, probed: Output) -> Output:
    """Train z on all training rows; without held-out rows, train it on folds as well."""
    bench, seed, checkpoint = attempt.bench, attempt.job.spec.seed, attempt.checkpoint
    known = in_sorted(bench.hashes(bench.dataset.train), np.array(probed["known"], dtype=np.int64))
    train, validation = bench.dataset.train, bench.dataset.validation
    settings = FewShotSettings().for_rows(len(train))
    if bench.buckets:
        settings = replace(settings, curve=())  # it is one of accuracy
    rows = bench.labelled(train)
    held = bench.labelled(validation) if validation else None
    learned = learn(
        bench.engine, TrainingSet(rows, bench.engine.trie(probed["words"])), np.array(probed["z"], dtype=np.float32),
        settings, seed, Validation(bench.dataset, is_folded(bench.dataset), held, known),
        bench.execution(checkpoint, attempt.told("train", settings.steps)),
    )  # fmt: skip
    trained, more = learned.trained, None if bench.buckets else learned.more_rows(rows.targets)
    suspects = [] if bench.buckets else learned.suspects(rows.targets)
    pool = attempt.job.spec.options.get("unlabelled", {})
    return {
        "z": trained.z.tolist(),
        "training": {
            **learned.to_json(),
            "method": attempt.bench.base.method,
            "learning_rate": settings.learning_rate,
        },
        "folds": learned.folds_to_json(),
        "more_rows": more.to_json() if more else None,
        "label_next": labelling(bench, pool, probed["words"], trained.z, checkpoint),
        "warnings": [
            *([warning_of(suspects, bench.dataset)] if suspects else []),
            *known_finding({"training": int(known.sum()) if is_folded(bench.dataset) else 0, **bench.left_out}),
        ],
        "numbers": {"loss": trained.losses[-1], "z_norm": trained.norms[-1], "padding_share": trained.padding_share},
    }
