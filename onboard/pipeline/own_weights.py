"""Jobs without an embedding: weights of the task's own, or a readout alone, through the same stages as all others.

Nothing is probed, since nothing that was learned before is started from, and no hypernetwork is tuned. What such a
version answers does not depend on the base's head, so it is learned under the base's first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch

from onboard.data.splits import is_folded
from onboard.domain.methods import LINEAR, OWN_START
from onboard.domain.names import Reference
from onboard.domain.report import TrainingJson, WarningJson
from onboard.domain.task import FIRST_HYPERNETWORK
from onboard.hypernetworks.engines import engine_at
from onboard.model.batch import TrainingSet
from onboard.model.engine import Engine
from onboard.model.methods import TASK_METHODS, new_task
from onboard.model.methods.adapters_dagger import AdaptersDagger
from onboard.model.task_files import described
from onboard.model.task_weights import Answering
from onboard.pipeline.attempt import Run
from onboard.pipeline.candidates import named_candidate
from onboard.pipeline.outputs import Folds, ProbeOutput, TrainOutput
from onboard.pipeline.readout import fit_and_compare, with_readout
from onboard.pipeline.without_rows import readout_without_rows
from onboard.probe.candidates import in_sorted
from onboard.registry.versions import VersionRepository
from onboard.statistics.readout import Readout
from onboard.storage.embedding import read_metadata
from onboard.storage.readout import readout_tensors
from onboard.storage.weights import Tensors, described_readout, pack_weights, unpack_weights
from onboard.train.crossvalidation import Fold, fold_of, in_a_fold, log_of, part_rows
from onboard.train.own_weights import NewTask, learn_task, rate_of
from onboard.train.settings import OwnWeightsSettings
from onboard.train.suspects import suspected_rows, warning_of
from onboard.train.witnesses import known_finding
from onboard.versions.answers import module_in
from onboard.versions.trained_rows import TrainedRows

_NOTHING: Final = np.zeros(0, dtype=np.float32)
_NO_ROWS: Final = "There are no labeled rows: the readout is computed from the words of the labels."
_CLOSED_FORM: Final = "The readout is computed in closed form: there is nothing to start from."


def own_start(attempt: Run, method: str) -> ProbeOutput:
    """What stands for the output of the probe: no embedding, and the labels' own words."""
    bench = attempt.bench
    rows = np.unique(bench.hashes([*bench.dataset.train, *bench.dataset.validation, *bench.dataset.test]))
    reason = _CLOSED_FORM
    if not bench.dataset.train:
        reason = _NO_ROWS
    elif method != LINEAR:
        reason = f"{TASK_METHODS[method].TITLE} starts as its paper says. {TASK_METHODS[method].INITIALISATION}"
    alone = ProbeOutput(
        z=_NOTHING,
        words=bench.words,
        fingerprint="",
        init={"chosen": OWN_START, "candidates": [], "reason": reason},
        known=rows[bench.base.knows(rows)],
        numbers={"chosen": OWN_START},
    )
    return _at_adapters(attempt, alone, rows) if attempt.job.spec.starts_from_adapters else alone


def _at_adapters(attempt: Run, alone: ProbeOutput, rows: np.ndarray) -> ProbeOutput:
    """The same, started at the adapters of the embedding that is asked for; what trained that is known."""
    spec, services, base = attempt.job.spec, attempt.services, attempt.bench.base
    named = named_candidate(services, base, spec.seed, spec.start, None, rows)
    trained = TrainedRows(services, base).of_start([named.embedding])
    return replace(
        alone,
        z=named.z,
        init={
            **alone.init, "reason": f"It starts at the adapters of {named.embedding}, which was asked for.",
            "generated_by": named.embedding,
        },
        known=np.union1d(alone.known, rows[np.isin(rows, trained)]),
    )  # fmt: skip


def _start_of(attempt: Run, probed: ProbeOutput, method: str, settings: Mapping[str, Any]) -> NewTask:
    """What makes the parameters as they start; adapters that they start at are generated once for all trainings."""
    bench, made_by = attempt.bench, probed.init.get("generated_by")
    if made_by is None:
        return lambda: new_task(method, bench.engine.backbone, settings)
    with attempt.services.database.read() as session:
        version = VersionRepository(session).resolve(Reference.parse(made_by))
    engine = engine_at(attempt.services, bench.base, version.hypernetwork_version)
    with torch.no_grad():
        adapters = engine.hypernetwork(torch.from_numpy(probed.z)[None].to(engine.device))
    own = attempt.job.spec.settings_on(bench.base.document["reduction_factor"])
    return lambda: AdaptersDagger(bench.engine.backbone, **own).start_at(adapters)


def under_first_head(attempt: Run) -> Run:
    """The same attempt where no head has a part in what it comes to: judged and pinned as if there were the first."""
    bench, services = attempt.bench, attempt.services
    first = replace(
        bench, engine=engine_at(services, bench.base, FIRST_HYPERNETWORK), head=FIRST_HYPERNETWORK, known_rows=None
    )
    return replace(attempt, base=replace(attempt.base, head=FIRST_HYPERNETWORK), bench=first)


def train_own(attempt: Run, probed: ProbeOutput, method: str, settings: Mapping[str, Any]) -> TrainOutput:
    """Train on all rows, and on folds of them where none is held out.

    Args:
        attempt: at the job.
        probed: names the words, and the rows that the folds may not judge by.
        method: one without an embedding.
        settings: of it.
    """
    bench = attempt.bench
    known = in_sorted(bench.hashes(bench.dataset.train), probed.known)
    folded = is_folded(bench.dataset)
    parted = part_rows(bench.dataset, attempt.job.spec.seed, known=known) if folded else []
    if method == LINEAR:
        output = _linear(attempt, parted)
    else:
        output = _weights(attempt, probed, parted, _start_of(attempt, probed, method, settings))
    warnings = known_finding({"training": int(known.sum()) if folded else 0, **bench.left_out})
    if output.folds is not None and bench.dataset.kind == "classification":
        judged, estimate = in_a_fold(output.folds.fold), log_of(output.folds.probabilities)
        suspects = suspected_rows(judged, estimate, bench.targets(bench.dataset.train))
        warnings = [*([warning_of(suspects, bench.dataset)] if suspects else []), *warnings]
    return replace(output, warnings=warnings)


def answering(engine: Engine, trained: TrainOutput) -> Answering:
    """What answers beside the readout: the embedding, the task's own weights, or nothing."""
    if trained.has_embedding:
        return trained.z
    if trained.weights is None:
        return None
    module = module_in(trained.weights, unpack_weights(trained.weights), engine)
    with torch.no_grad():
        return module.weights()


def stored(trained: TrainOutput) -> tuple[Tensors, dict[str, str]]:
    """What a version without an embedding stores: its tensors, and what its file says of them."""
    if trained.weights is None:
        assert trained.readout is not None
        return readout_tensors(trained.readout), described_readout(trained.readout)
    return unpack_weights(trained.weights), read_metadata(trained.weights)


def readout_alone(trained: TrainOutput) -> TrainOutput | None:
    """What `linear` makes of the same rows and folds, where the training of an embedding left it; else None."""
    if trained.readout is None:
        return None
    folds = None
    if trained.folds is not None and trained.read_out is not None:
        folds = replace(trained.folds, probabilities=trained.read_out, z=trained.folds.z[:, :0])
    return replace(_answering_alone(trained.readout, folds, trained.warnings), prior=trained.prior)


def _weights(attempt: Run, probed: ProbeOutput, parted: list[Fold], new: NewTask) -> TrainOutput:
    """Of a method that trains weights of the task's own; `new` makes them as they start."""
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
    training: TrainingJson = {
        "method": module.METHOD, "settings": module.settings, "trained": module.trained, "steps": len(learned.losses),
        "learning_rate": rate_of(module), "loss": list(learned.losses), "padding_share": learned.padding_share,
        "chosen_on": None,
    }  # fmt: skip
    numbers = {"loss": learned.losses[-1], "trained": module.trained, "padding_share": learned.padding_share}
    weights = pack_weights(tensors, described(module))
    output = TrainOutput(_NOTHING, training, folds, None, None, [], dict(numbers), weights=weights)
    output, _ = with_readout(bench, output, spec.readout, attempt.checkpoint)
    return output


def _linear(attempt: Run, parted: list[Fold]) -> TrainOutput:
    """Of a readout alone."""
    bench = attempt.bench
    if not bench.dataset.train:
        return _of_names(attempt)
    fold = fold_of(len(bench.dataset.train), parted) if parted else None
    fitted, prior = fit_and_compare(bench, fold, attempt.checkpoint)
    nothing = np.zeros((len(parted), 0), dtype=np.float32)  # no embedding is trained
    folds = None if fold is None else Folds(fold, fitted.probabilities, nothing)
    return replace(_answering_alone(fitted.readout, folds, []), prior=prior)


def _of_names(attempt: Run) -> TrainOutput:
    """Of a readout without a labeled row."""
    of_names = readout_without_rows(attempt.bench, attempt.checkpoint)
    output = _answering_alone(of_names.readout, None, [])
    training: TrainingJson = {**output.training, "without_rows": of_names.made_of}
    return replace(output, training=training, prior=of_names.prior)


def _answering_alone(readout: Readout, folds: Folds | None, warnings: list[WarningJson]) -> TrainOutput:
    trained = int(readout.weights.size + readout.bias.size)
    training: TrainingJson = {"method": LINEAR, "trained": trained, "steps": 0, "chosen_on": None}
    whole = replace(readout, share=1.0)
    return TrainOutput(_NOTHING, training, folds, None, None, warnings, {"trained": trained}, readout=whole)
