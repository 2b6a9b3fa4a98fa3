"""The tune stage of a job: hypernetwork and embedding learn the task together, where that is asked for or worth it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from onboard.attempt import Output, Run
from onboard.earlier import kept, protected
from onboard.errors import CancelledError, JobFailedError, OutOfMemoryError
from onboard.guard.canaries import canary_ids
from onboard.heads import store_hypernetwork
from onboard.judge import Judged
from onboard.model.batch import LabelledRows
from onboard.outcome import embedding
from onboard.train.tuning import EarlierEmbedding, Tuned, TuningSettings, tune
from onboard.train.worth_tuning import EmbeddingAlone, Worth, worth_tuning
from onboard.tuning_slot import take_slot


def tune_stage(attempt: Run, probed: Output, trained: Output, alone: Judged) -> Output:
    """Tune hypernetwork and embedding on the new task, where that is asked for or worth it.

    Args:
        attempt: at the job.
        probed, trained: outputs of those stages.
        alone: the embedding alone, as it is judged.

    Raises:
        SlotTakenError, HeadMovedError: as `take_slot`.
    """
    worth = Worth(True, "It was asked for.")
    if attempt.job.spec.tune_hypernetwork == "auto":
        worth = worth_tuning(_embedding_alone(attempt, probed, trained, alone))
    if not worth.tune:
        return _not_tuned(attempt, worth.reason, tried=False)
    take_slot(attempt.services, attempt.job.id, attempt.base)
    bench, settings = attempt.bench, TuningSettings()
    try:
        tuned = tuning(attempt, probed["words"])(embedding(trained), bench.labelled(bench.dataset.train))
    except (CancelledError, OutOfMemoryError):
        raise
    except JobFailedError as error:  # the loss or a weight is not finite
        attempt.progress.note(f"{error.message} Going on with the embedding alone.")
        return _not_tuned(attempt, error.message, tried=True)
    draft = store_hypernetwork(attempt.services, attempt.bench.base, tuned.hypernetwork)
    return {
        "z": tuned.z.tolist(),
        "artifact": draft.artifact,
        "tuning": {
            "asked": attempt.job.spec.tune_hypernetwork,
            "tried": True,
            "kept": False,
            "reason": worth.reason,
            "learning_rate": settings.learning_rate,
            "regulariser": settings.regulariser,
            **tuned.to_json(),
        },
        "numbers": {"loss": tuned.losses[-1], "drift": tuned.drift},
    }


def _not_tuned(attempt: Run, reason: str, *, tried: bool) -> Output:
    asked = attempt.job.spec.tune_hypernetwork
    return {
        "artifact": None,
        "tuning": {"asked": asked, "tried": tried, "kept": False, "reason": reason},
        "numbers": {"tuned": False},
    }


def tuning(attempt: Run, words: Sequence[str], what: str = "tune") -> Callable[[np.ndarray, LabelledRows], Tuned]:
    """The job's way to tune from an embedding (t,) on rows, with all earlier embeddings held; the log calls it `what`.

    Raises, when it is called:
        JobFailedError: it diverged.
        OutOfMemoryError: the GPU has no room for a single row.
    """
    bench, services = attempt.bench, attempt.services
    versions = protected(services, bench.base, attempt.base, attempt.job.spec.task)
    earlier = [
        EarlierEmbedding(each.z, bench.engine.trie(each.version.words), each.reference)
        for each in (kept(services, bench.base, version) for version in versions)
        if each.trouble is None  # the guard will refuse it, and say so
    ]
    trie, canaries = bench.engine.trie(words), canary_ids(bench.engine.encoder, "tuning")

    def tuned_on(z: np.ndarray, rows: LabelledRows) -> Tuned:
        settings = TuningSettings().for_rows(len(rows.ids))
        return tune(
            bench.engine, z, rows, trie, earlier, settings, attempt.job.spec.seed, canaries=canaries,
            on_step=attempt.told(what, settings.steps), at_once=bench.trained_at_once,
        )  # fmt: skip

    return tuned_on


def _embedding_alone(attempt: Run, probed: Output, trained: Output, alone: Judged) -> EmbeddingAlone:
    """What is known of it by rows that chose nothing else; the test rows have no say in what is published."""
    found, _, _ = alone.validation()
    baselines = alone.baselines.get("validation") or {}

    def accuracy(metrics: Any) -> float | None:
        return metrics["accuracy"].value if metrics and "accuracy" in metrics else None

    return EmbeddingAlone(
        accuracy=accuracy(found),
        rows=found["accuracy"].n if found and "accuracy" in found else 0,
        majority=accuracy(baselines.get("majority")),
        tfidf=accuracy(baselines.get("tfidf_logistic_regression")),
        training_loss=attempt.bench.loss(
            attempt.bench.dataset.train, probed["words"], embedding(trained), attempt.checkpoint
        ),
        labels=len(probed["words"]),
        alarm=bool(probed["init"]["alarm"]),
    )
