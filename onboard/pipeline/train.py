"""The train stage of a job: learn its embedding and estimate how good it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onboard.data.hashes import in_sorted
from onboard.data.splits import is_folded
from onboard.model.batch import TrainingSet
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.label_next import labelling
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import Folds, ProbeOutput, TrainOutput
from onboard.pipeline.own_weights import train_own
from onboard.pipeline.published import as_published
from onboard.pipeline.readout import with_readout
from onboard.train.learning import Learned, Validation, learn
from onboard.train.settings import FewShotSettings
from onboard.train.suspects import warning_of
from onboard.train.witnesses import known_finding


def train_stage(attempt: Attempt, probed: ProbeOutput) -> TrainOutput:
    """Train z, or the weights of another method, on all training rows; without held-out rows also on folds."""
    if attempt.job.spec.without_embedding:
        output = train_own(attempt, probed, attempt.job.spec.method, attempt.job.spec.method_settings)
        return replace(output, label_next=labelling(attempt, attempt.bench, probed.words, output))
    bench, seed, checkpoint = attempt.bench, attempt.job.spec.seed, attempt.checkpoint
    known = in_sorted(bench.hashes(bench.dataset.train), probed.known)
    train, validation = bench.dataset.train, bench.dataset.validation
    settings = FewShotSettings().for_rows(len(train))
    settings = replace(settings, curve_trained=attempt.job.spec.readout == "never")
    if bench.buckets:
        settings = replace(settings, curve=())  # the curve measures accuracy
    rows = bench.labelled(train)
    held = bench.labelled(validation) if validation else None
    learned = learn(
        bench.engine, TrainingSet(rows, bench.engine.trie(probed.words)), probed.z,
        settings, seed, Validation(bench.dataset, is_folded(bench.dataset), held, known),
        bench.execution(checkpoint, attempt.course(settings.steps).part("train", settings.steps)),
    )  # fmt: skip
    trained, folds = learned.trained, None
    if learned.folds is not None:
        probabilities = np.exp(learned.folds.scores).astype(np.float64)
        folds = Folds(learned.folds.fold, probabilities, learned.folds.z)
    output = TrainOutput(
        z=trained.z,
        training=learned.to_document().model_copy(
            update={
                "method": bench.base.method,
                "trained": int(trained.z.size),
                "learning_rate": settings.learning_rate,
            }
        ),
        folds=folds,
        more_rows=None,
        label_next=None,
        warnings=known_finding({"training": int(known.sum()) if is_folded(bench.dataset) else 0, **bench.left_out}),
        numbers={"loss": trained.losses[-1], "z_norm": trained.norms[-1], "padding_share": trained.padding_share},
    )
    output = _told(bench, *_published(attempt, output, learned))
    return replace(output, label_next=labelling(attempt, bench, probed.words, output))


def _published(attempt: Attempt, trained: TrainOutput, learned: Learned) -> tuple[TrainOutput, Learned]:
    """Add a readout, if wanted, and return the combined answers."""
    bench, checkpoint = attempt.bench, attempt.checkpoint
    output, fitted = with_readout(bench, trained, attempt.job.spec.readout, checkpoint)
    if fitted is None or bench.buckets:
        return output, learned
    return output, as_published(bench, learned, fitted, checkpoint)


def _told(bench: Workbench, output: TrainOutput, learned: Learned) -> TrainOutput:
    """Add the estimate for more rows and warnings about suspicious labels; not for regressions."""
    if bench.buckets:
        return output
    targets = bench.targets(bench.dataset.train)
    more, suspects = learned.more_rows(targets), learned.suspects(targets)
    warnings = [*([warning_of(suspects, bench.dataset)] if suspects else []), *output.warnings]
    return replace(output, more_rows=more.to_document() if more else None, warnings=warnings)
