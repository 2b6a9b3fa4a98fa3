"""Train a job without an embedding: task-specific weights, or a readout alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from onboard.contract.checks import DatasetWarning
from onboard.contract.report import TrainingFacts
from onboard.data.hashes import in_sorted
from onboard.data.splits import is_folded
from onboard.domain.methods import LINEAR
from onboard.model.batch import TrainingSet
from onboard.model.task_files import described
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.outputs import Folds, ProbeOutput, TrainOutput
from onboard.pipeline.own_start import new_parameters
from onboard.pipeline.readout import fit_and_compare, with_readout
from onboard.pipeline.without_rows import readout_without_rows
from onboard.statistics.readout import Readout
from onboard.storage.weights import pack_weights
from onboard.train.crossvalidation import Fold, fold_of, in_a_fold, log_of, part_rows
from onboard.train.own_weights import NewTask, learn_task, rate_of
from onboard.train.settings import OwnWeightsSettings
from onboard.train.suspects import suspected_rows, warning_of
from onboard.train.witnesses import known_finding

_NOTHING: Final = np.zeros(0, dtype=np.float32)


def train_own(attempt: Attempt, probed: ProbeOutput, method: str, settings: Mapping[str, Any]) -> TrainOutput:
    """Train on all rows and, if no row is held out, on folds.

    Args:
        attempt: the current attempt.
        probed: supplies the words and the rows that must not judge the folds.
        method: a method without an embedding.
        settings: its settings.
    """
    bench = attempt.bench
    known = in_sorted(bench.hashes(bench.dataset.train), probed.known)
    folded = is_folded(bench.dataset)
    parted = part_rows(bench.dataset, attempt.job.spec.seed, known=known) if folded else []
    if method == LINEAR:
        output = _linear(attempt, parted)
    else:
        output = _weights(attempt, probed, parted, new_parameters(attempt, probed, method, settings))
    warnings = known_finding({"training": int(known.sum()) if folded else 0, **bench.left_out})
    if output.folds is not None and bench.dataset.kind == "classification":
        judged, estimate = in_a_fold(output.folds.fold), log_of(output.folds.probabilities)
        suspects = suspected_rows(judged, estimate, bench.targets(bench.dataset.train))
        warnings = [*([warning_of(suspects, bench.dataset)] if suspects else []), *warnings]
    return replace(output, warnings=warnings)


def readout_alone(trained: TrainOutput) -> TrainOutput | None:
    """Return what `linear` would train on the same rows and folds, if the embedding's training left it; else None."""
    if trained.readout is None:
        return None
    folds = None
    if trained.folds is not None and trained.read_out is not None:
        folds = replace(trained.folds, probabilities=trained.read_out, z=trained.folds.z[:, :0])
    return replace(_answering_alone(trained.readout, folds, trained.warnings), prior=trained.prior)


def _weights(attempt: Attempt, probed: ProbeOutput, parted: list[Fold], new: NewTask) -> TrainOutput:
    """Train task-specific weights; `new` creates their initial values."""
    bench, spec = attempt.bench, attempt.job.spec
    rows = bench.labelled(bench.dataset.train)
    settings = OwnWeightsSettings().for_rows(len(rows.ids))
    steps = settings.steps + sum(settings.for_part(len(part.kept), len(rows.ids)).steps for part in parted)
    execution = bench.execution(attempt.checkpoint, attempt.course(steps).part("train", settings.steps))
    training_set = TrainingSet(rows, bench.engine.trie(probed.words))
    learned = learn_task(bench.engine, new, training_set, settings, spec.seed, parted, execution)
    folds = None
    if learned.folds is not None:
        probabilities = np.exp(learned.folds.scores).astype(np.float64)
        folds = Folds(learned.folds.fold, probabilities, learned.folds.z)
    module = learned.module
    tensors = {name: tensor.numpy() for name, tensor in module.state().items()}
    training = TrainingFacts(
        method=module.METHOD, settings=module.settings, trained=module.trained, steps=len(learned.losses),
        learning_rate=rate_of(module), loss=tuple(learned.losses), padding_share=learned.padding_share, chosen_on=None,
    )  # fmt: skip
    numbers = {"loss": learned.losses[-1], "trained": module.trained, "padding_share": learned.padding_share}
    weights = pack_weights(tensors, described(module))
    output = TrainOutput(_NOTHING, training, folds, None, None, [], dict(numbers), weights=weights)
    output, _ = with_readout(bench, output, spec.readout, attempt.checkpoint)
    return output


def _linear(attempt: Attempt, parted: list[Fold]) -> TrainOutput:
    bench = attempt.bench
    if not bench.dataset.train:
        return _of_names(attempt)
    fold = fold_of(len(bench.dataset.train), parted) if parted else None
    fitted, prior = fit_and_compare(bench, fold, attempt.checkpoint)
    nothing = np.zeros((len(parted), 0), dtype=np.float32)  # no embedding is trained
    folds = None if fold is None else Folds(fold, fitted.probabilities, nothing)
    return replace(_answering_alone(fitted.readout, folds, []), prior=prior)


def _of_names(attempt: Attempt) -> TrainOutput:
    of_names = readout_without_rows(attempt.bench, attempt.checkpoint)
    output = _answering_alone(of_names.readout, None, [])
    training = output.training.model_copy(update={"without_rows": of_names.made_of})
    return replace(output, training=training, prior=of_names.prior)


def _answering_alone(readout: Readout, folds: Folds | None, warnings: list[DatasetWarning]) -> TrainOutput:
    trained = int(readout.weights.size + readout.bias.size)
    training = TrainingFacts(method=LINEAR, trained=trained, steps=0, chosen_on=None)
    whole = replace(readout, share=1.0)
    return TrainOutput(_NOTHING, training, folds, None, None, warnings, {"trained": trained}, readout=whole)
