"""The start of a job without an embedding: it probes nothing and tunes no hypernetwork.

Task-specific weights start as in their paper, or at the adapters of an embedding that `--init` names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch

from onboard.contract.report import TrainingStart
from onboard.data.hashes import in_sorted
from onboard.domain.methods import LINEAR, OWN_START
from onboard.domain.names import Reference
from onboard.domain.task import FIRST_HYPERNETWORK
from onboard.hypernetworks.engines import engine_at
from onboard.model.methods import TASK_METHODS, new_task
from onboard.model.methods.adapters_dagger import AdaptersDagger
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.candidates import named_candidate
from onboard.pipeline.outputs import ProbeOutput
from onboard.registry.versions import VersionRepository
from onboard.train.own_weights import NewTask
from onboard.versions.trained_rows import TrainedRows

_NOTHING: Final = np.zeros(0, dtype=np.float32)
_NO_ROWS: Final = "There are no labeled rows: the readout is computed from the words of the labels."
_CLOSED_FORM: Final = "The readout is computed in closed form and needs no start."


def own_start(attempt: Attempt, method: str) -> ProbeOutput:
    """Return a probe output without an embedding, with the labels' own words."""
    bench = attempt.bench
    rows = np.unique(bench.hashes([*bench.dataset.train, *bench.dataset.validation, *bench.dataset.test]))
    reason = _CLOSED_FORM
    if not bench.dataset.train:
        reason = _NO_ROWS
    elif method != LINEAR:
        reason = f"{TASK_METHODS[method].TITLE} starts as described in its paper. {TASK_METHODS[method].INITIALISATION}"
    alone = ProbeOutput(
        z=_NOTHING,
        words=bench.words,
        fingerprint="",
        init=TrainingStart(chosen=OWN_START, candidates=(), reason=reason),
        known=rows[bench.base.knows(rows)],
        numbers={"chosen": OWN_START},
    )
    return _at_adapters(attempt, alone, rows) if attempt.job.spec.starts_from_adapters else alone


def _at_adapters(attempt: Attempt, alone: ProbeOutput, rows: np.ndarray) -> ProbeOutput:
    """Start at the adapters of the requested embedding; the rows that trained it become known."""
    spec, services, base = attempt.job.spec, attempt.services, attempt.bench.base
    named = named_candidate(services, base, spec.seed, spec.start, None, rows)
    trained = TrainedRows(services, base).of_start([named.embedding])
    return replace(
        alone,
        z=named.z,
        init=alone.init.model_copy(
            update={
                "reason": f"It starts from the adapters of {named.embedding}, as requested.",
                "generated_by": named.embedding,
            }
        ),
        known=np.union1d(alone.known, rows[in_sorted(rows, trained)]),
    )


def new_parameters(attempt: Attempt, probed: ProbeOutput, method: str, settings: Mapping[str, Any]) -> NewTask:
    """Return a factory of initial parameters; adapters to start at are generated once for all trainings."""
    bench, made_by = attempt.bench, probed.init.generated_by
    if made_by is None:
        return lambda: new_task(method, bench.engine.backbone, settings)
    with attempt.services.database.read() as session:
        version = VersionRepository(session).resolve(Reference.parse(made_by))
    engine = engine_at(attempt.services, bench.base, version.hypernetwork_version)
    with torch.no_grad():
        adapters = engine.hypernetwork(torch.from_numpy(probed.z)[None].to(engine.device))
    own = attempt.job.spec.settings_on(bench.base.document["reduction_factor"])
    return lambda: AdaptersDagger(bench.engine.backbone, **own).start_at(adapters)


def under_first_head(attempt: Attempt) -> Attempt:
    """Return the same attempt under the base's first hypernetwork: no later one affects such a job."""
    bench, services = attempt.bench, attempt.services
    first = replace(
        bench, engine=engine_at(services, bench.base, FIRST_HYPERNETWORK), head=FIRST_HYPERNETWORK, known_rows=None
    )
    return replace(attempt, base=replace(attempt.base, head=FIRST_HYPERNETWORK), bench=first)
