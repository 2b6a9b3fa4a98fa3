"""The probe stage of a job: choose the embedding that its training starts from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from onboard.bases import Base
from onboard.bases.fingerprints import pack_fingerprint
from onboard.contract.report import TrainingStart
from onboard.data.hashes import in_sorted
from onboard.domain.dataset import Example
from onboard.domain.init import InitKind
from onboard.model.cost import Passes
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.candidates import collect_candidates, named_candidate
from onboard.pipeline.outputs import ProbeOutput
from onboard.pipeline.own_start import own_start
from onboard.probe.candidates import ProbeResult
from onboard.probe.choice import choose, measure_named
from onboard.probe.evaluator import Evaluator
from onboard.probe.passes import probe_passes
from onboard.probe.settings import ProbeSettings
from onboard.versions.trained_rows import TrainedRows

_MOST_LIKE: Final = 3  # number of sources described in words


def probe_stage(attempt: Attempt) -> ProbeOutput:
    """Choose the initialization. A named one is only measured; label words of a task's version are mapped.

    Returns immediately if no embedding is trained.
    """
    spec, bench = attempt.job.spec, attempt.bench
    if spec.without_embedding:
        return own_start(attempt, spec.method)
    rows = bench.probed(spec.seed)
    fingerprint = bench.fingerprint(bench.encode(rows), bench.targets(rows))
    evaluator = _watched(attempt, rows)
    everything = np.unique(bench.hashes([*bench.dataset.train, *bench.dataset.validation, *bench.dataset.test]))
    result, how = _start(attempt, evaluator, fingerprint, everything)
    chosen = result.chosen
    return ProbeOutput(
        z=result.z,
        words=chosen.words,
        fingerprint=pack_fingerprint(fingerprint),
        init=TrainingStart(
            chosen=chosen.embedding,
            candidates=result.scores,
            rows=chosen.rows,
            overlap=result.overlap,
            **how,
            ties=result.ties,
            alarm=result.alarm,
            weights=result.weights,
            most_like=most_like(result, bench.base),
            known_too=result.known_too,
        ),
        known=_known(attempt, everything, result.weights or [chosen.embedding]),
        numbers={
            "chosen": chosen.embedding,
            "loss": chosen.loss,
            "candidates": len(result.scores),
            "rows_scored": evaluator.passes,
            "rows_trained": evaluator.trained,
        },
    )


def _watched(attempt: Attempt, rows: Sequence[Example]) -> Evaluator:
    """Return an evaluator of candidates on these rows; it logs progress and can be cancelled."""
    bench, evaluator = attempt.bench, None

    def before_batch() -> None:
        if evaluator is None:
            return
        done = Passes(evaluator.passes, evaluator.trained).seconds(tokens)
        course.reached(done, f"probe: {evaluator.passes:,} rows scored, {evaluator.trained:,} trained on")

    evaluator = bench.evaluator(rows, before_batch)
    tokens = sum(map(len, evaluator.ids)) / max(1, len(evaluator.ids))
    probed = attempt.job.spec.start.kind is InitKind.AUTO
    passes = probe_passes(len(bench.dataset.train)) if probed else Passes(evaluator.rows)
    course = attempt.course(passes.seconds(tokens))
    return evaluator


def _known(attempt: Attempt, rows: np.ndarray, start: Iterable[str]) -> np.ndarray:
    """Return the job's rows (sorted hashes) on which the start of the training or the head was trained."""
    bench = attempt.bench
    trained = TrainedRows(attempt.services, bench.base)
    learned = (trained.of_start(start), trained.tuning(bench.head, exactly=True), bench.base.known_rows)
    known: np.ndarray = rows[np.any([in_sorted(rows, hashes) for hashes in learned], axis=0)]
    return known


def most_like(result: ProbeResult, base: Base) -> dict[str, str]:
    """Describe the nearest sources by embedding, nearest first; empty if no learned task is worth starting from."""
    weights = result.weights or {}  # of a mixture
    ranked = [*sorted(weights, key=lambda name: -weights[name]), *(score.embedding for score in result.scores)]
    titles = {f"{source.name}@v1": source.title for source in base.sources if source.title}
    alike = [] if result.alarm else [name for name in dict.fromkeys(ranked) if name in titles]
    return {name: titles[name] for name in alike[:_MOST_LIKE]}


def _start(
    attempt: Attempt, evaluator: Evaluator, fingerprint: np.ndarray, rows: np.ndarray
) -> tuple[ProbeResult, dict[str, Any]]:
    """Choose the start; return the result and how it was chosen. `rows` are the hashes of all rows of the job."""
    spec, services, base = attempt.job.spec, attempt.services, attempt.bench.base
    if spec.start.kind is not InitKind.AUTO:
        named = named_candidate(services, base, spec.seed, spec.start, fingerprint, rows)
        return measure_named(evaluator, named), {"reason": "asked for", "strategy": None, "prefilter": None}
    collected = collect_candidates(services, base, spec.seed, fingerprint, rows)
    for reference, trouble in collected.unreadable.items():
        attempt.progress.note(f"{reference} was excluded from the probe. {trouble}")
    strategy = spec.options.get("probe", "race")
    settings = ProbeSettings(exhaustive=strategy == "exhaustive")
    result = choose(evaluator, collected.candidates, np.arange(evaluator.rows), settings)
    prefilter = {"considered": collected.considered, "kept": collected.kept}
    return result, {"reason": None, "strategy": strategy, "prefilter": prefilter}
