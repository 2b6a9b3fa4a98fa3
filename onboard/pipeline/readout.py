"""Fit a job's readout on the frozen encoder in closed form, and choose its share in the answer.

The readout complements an embedding or task-specific weights, which learn what the encoder's features do not show.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from onboard.contract.priors import PriorUse
from onboard.contract.report import ReadoutFacts
from onboard.data.splits import evenly_spaced
from onboard.errors import InputError
from onboard.hypernetworks.prior.fitting import usual_scale
from onboard.model.readout import probabilities_of
from onboard.model.task_weights import Answering
from onboard.pipeline.evidence import HELD, PREDICTED
from onboard.pipeline.material import Workbench
from onboard.pipeline.outputs import Folds, TrainOutput
from onboard.pipeline.prior import contributed
from onboard.statistics.label_sets import fit_sets
from onboard.statistics.prior import Lesson
from onboard.statistics.probabilities import blend, mean_loss
from onboard.statistics.readout import Fitted, Readout, fit_readout, lesson_of
from onboard.statistics.share import PRIOR_BESIDE_WEIGHTS, choose_share
from onboard.train.crossvalidation import in_a_fold, rows_in_folds
from onboard.train.learning import choosing

MOST_ROWS: Final = 2048  # maximum number of rows of a readout; more change little, and each needs a pass of the encoder


def fit(bench: Workbench, fold: np.ndarray | None, checkpoint: Callable[[], None]) -> Fitted:
    """Fit the readout on the training rows; for rows in folds, also predict them out of fold.

    Args:
        bench: the job's material.
        fold: fold of each training row (n,) in the embedding's cross-validation, which the readout shares.
        checkpoint: stops the work.

    Raises:
        InputError: the rows allow no readout.
    """
    rows = [bench.dataset.train[row] for row in drawn(bench)]
    features = bench.own_features(rows, checkpoint)
    values, names = None, None
    if bench.buckets is None:
        names = bench.names(checkpoint)
    else:
        values = np.array(bench.buckets.values)
    if fold is None:
        groups = [np.array([row]) for row in range(len(rows))]
    else:
        groups = [np.flatnonzero(fold == number) for number in np.unique(fold[in_a_fold(fold)])]
    prior = None if bench.prior is None else bench.prior.prior
    blocks, usual = blocks_of(bench, features), 0.0
    if values is None:
        usual = usual_scale(bench.dataset.labels, bench.words, bench.descriptions)
    if bench.dataset.several_labels:
        return fit_sets(features, bench.targets(rows), groups, blocks, names, prior, usual)
    return fit_readout(features, bench.weighted(rows), groups, values, blocks, names, prior, usual)


def fit_and_compare(
    bench: Workbench, fold: np.ndarray | None, checkpoint: Callable[[], None]
) -> tuple[Fitted, PriorUse | None]:
    """Fit the readout; also return what earlier tasks contributed, or None without a prior. Arguments as for `fit`."""
    fitted = fit(bench, fold, checkpoint)
    if bench.prior is None:
        return fitted, None
    plain = fit(replace(bench, prior=None), fold, checkpoint)
    targets = bench.targets([bench.dataset.train[row] for row in drawn(bench)])
    return fitted, contributed(bench.prior, bench.names(checkpoint), fitted, plain, targets)


def lesson_of_job(bench: Workbench, checkpoint: Callable[[], None]) -> Lesson | None:
    """Return the task's lesson for the prior; None for regressions, sets of labels, and rows that allow no readout."""
    if bench.buckets is not None or bench.dataset.several_labels or not bench.dataset.train:
        return None
    rows = [bench.dataset.train[row] for row in drawn(bench)]
    features = bench.own_features(rows, checkpoint)
    try:
        return lesson_of(features, bench.weighted(rows), bench.names(checkpoint), blocks_of(bench, features))
    except InputError:  # a label without a row, or non-finite features: there is no readout either
        return None


def blocks_of(bench: Workbench, features: np.ndarray) -> int:
    """Return the number of blocks in the features (n, …) of rows."""
    return int(features.shape[1]) // bench.width


def drawn(bench: Workbench) -> np.ndarray:
    """Return ascending indices of the rows that a readout is fitted on: a sample if there are many, with all labels."""
    kinds = bench.targets(bench.dataset.train).argmax(1)
    _, firsts = np.unique(kinds, return_index=True)
    if bench.dataset.several_labels:
        firsts = np.union1d(firsts, bench.targets(bench.dataset.train).argmax(0))
    return np.union1d(evenly_spaced(len(kinds), MOST_ROWS), firsts)


def with_readout(
    bench: Workbench, trained: TrainOutput, use: str, checkpoint: Callable[[], None]
) -> tuple[TrainOutput, Fitted | None]:
    """Add a readout of the same rows and folds to a training, if it is wanted and the rows allow one.

    Args:
        bench: the job's material.
        trained: an embedding or task-specific weights.
        use: "never" or "auto".
        checkpoint: stops the work.
    """
    if use == "never":
        return trained, None
    try:
        fold = trained.folds.fold if trained.folds else None
        fitted, prior = fit_and_compare(bench, fold, checkpoint)
    except InputError as error:
        return replace(trained, no_readout=error.message), None
    if not trained.has_embedding:
        fitted = replace(fitted, readout=replace(fitted.readout, share=PRIOR_BESIDE_WEIGHTS))
    read_out = fitted.probabilities if trained.folds else None
    return replace(trained, readout=fitted.readout, read_out=read_out, prior=prior), fitted


@dataclass(frozen=True)
class Answered:
    """Probabilities (m, K) of the training and of the readout, out of sample, and the rows' weighted targets (m, K)."""

    trained: np.ndarray
    readout: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class Together:
    """The training and the readout combined.

    Args:
        readout: readout with its share; None if the training answers alone.
        folds: combined out-of-fold predictions; None without a cross-validation.
        facts: for the job's document; None if no readout was wanted.
        answered: separate predictions of the rows that chose the share; None if no rows chose.
    """

    readout: Readout | None
    folds: Folds | None
    facts: ReadoutFacts | None
    answered: Answered | None = None


def together(
    bench: Workbench,
    words: Sequence[str],
    trained: TrainOutput,
    task: Answering,
    use: str,
    checkpoint: Callable[[], None],
) -> Together:
    """Choose the readout's share, which may be 0, on rows that neither part was trained on.

    Without a training the readout is the whole answer.

    Args:
        bench: the job's material.
        words: words that represent the labels.
        trained: the embedding or weights, their folds, and the readout.
        task: the trained task for the model.
        use: "never" or "auto".
        checkpoint: stops the work.
    """
    readout, folds = trained.readout, trained.folds
    if trained.is_readout:
        return Together(readout, folds, None)
    if use == "never":
        return Together(None, folds, None)
    if readout is None:
        return Together(None, folds, ReadoutFacts(asked=use, share=0.0, reason=trained.no_readout or ""))
    answered, evidence = _in_folds(bench, trained), PREDICTED
    if answered is None:
        answered, evidence = _on_held_out_rows(bench, words, readout, task, checkpoint), HELD
    if answered is None:
        reason = "No rows show how much it adds, so it has the default share."
        return Together(readout, folds, ReadoutFacts(asked=use, share=readout.share, reason=reason))
    facts = _facts(use, trained, answered, evidence)
    share = facts.share
    if folds is not None and trained.read_out is not None:
        folds = replace(folds, probabilities=blend(folds.probabilities, trained.read_out, share))
    return Together(replace(readout, share=share) if share else None, folds, facts, answered)


def _in_folds(bench: Workbench, trained: TrainOutput) -> Answered | None:
    """Return out-of-fold predictions of both; None without folds."""
    if trained.folds is None or trained.read_out is None:
        return None
    rows = rows_in_folds(bench.dataset, trained.folds.fold)
    return Answered(trained.folds.probabilities, trained.read_out, bench.weighted(rows))


def _on_held_out_rows(
    bench: Workbench, words: Sequence[str], readout: Readout, task: Answering, checkpoint: Callable[[], None]
) -> Answered | None:
    """Return predictions of both on the held-out rows that may choose; None without any."""
    validation = bench.dataset.validation
    rows = [validation[row] for row in choosing(len(validation))]
    if not rows:
        return None
    ids, trie = bench.encode(rows), bench.engine.trie(words)
    alone = probabilities_of(bench.engine, ids, task, trie, None, checkpoint, bench.scored_at_once)
    return Answered(alone, readout.probabilities(bench.features(rows, checkpoint)), bench.weighted(rows))


def _facts(use: str, trained: TrainOutput, answered: Answered, evidence: str) -> ReadoutFacts:
    alone, readout, targets = answered.trained, answered.readout, answered.targets
    assert trained.readout is not None, "it has answered"
    share = choose_share(alone, readout, targets, trained.readout.share)
    before, after = (mean_loss(probabilities, targets) for probabilities in (alone, blend(alone, readout, share)))
    seen = f"on {len(targets)} {evidence}"
    reason = f"With it the loss {seen} is {after:.3f} nats, {before:.3f} without."
    if after > before:
        reason += " Such a small loss may be chance, and on other tasks a readout helps."
    if not share:
        which = "The embedding is" if trained.has_embedding else "The task-specific weights are"
        reason = f"{which} clearly better without it {seen} ({before:.3f} nats), so no readout is used."
    return ReadoutFacts(
        asked=use, share=share, reason=reason, before=before, after=after, evidence=evidence, rows=len(targets)
    )
