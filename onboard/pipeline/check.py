"""The check stage of a job: load the snapshot, held-out rows, label words and model."""

from __future__ import annotations

import time
from dataclasses import replace

from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.data.descriptions import descriptions_of
from onboard.data.regression import BUCKETS
from onboard.data.snapshot import load as load_snapshot
from onboard.data.splits import held_out_places, holdout
from onboard.data.targets import buckets_of
from onboard.data.verbaliser import verbalise
from onboard.domain.dataset import Dataset
from onboard.domain.job import Job, JobSpec, Stage
from onboard.domain.progress import Progress
from onboard.domain.task import FIRST_HYPERNETWORK, BaseRecord
from onboard.errors import NotFoundError, OtherBaseError, SlotTakenError
from onboard.hypernetworks.engines import engine_at
from onboard.hypernetworks.register import register_base
from onboard.model.engine import Engine
from onboard.pipeline.attempt import Attempt
from onboard.pipeline.kept_features import kept_features
from onboard.pipeline.material import Workbench
from onboard.pipeline.prior import pinned_prior
from onboard.pipeline.rebuilding import require_turn_to_tune
from onboard.registry.jobs import JobRepository
from onboard.registry.services import Services
from onboard.versions.trained_rows import head_rows, read_snapshot


def check_stage(job: Job, services: Services, progress: Progress) -> Attempt:
    """Load the inputs of the job."""
    started = time.monotonic()
    progress.stage_started(Stage.CHECK)
    base = register_base(services, pinned_base(job.spec, services.device))
    _require_turn(job, services)
    if job.spec.tune_hypernetwork == "always":
        require_turn_to_tune(job, services)
    if job.spec.without_embedding:  # no later head affects it: judge and pin it as if only the first one existed
        base = replace(base, head=FIRST_HYPERNETWORK)
    bench = prepare(job.spec, services, base)
    bench = replace(bench, kept=kept_features(services, job.spec.task, base.digest))
    if job.spec.readout != "never":
        bench = replace(bench, prior=pinned_prior(services, bench, job.spec.task))
    seconds = round(time.monotonic() - started, 3)
    rows = {
        "train": len(bench.dataset.train),
        "validation": len(bench.dataset.validation),
        "test": len(bench.dataset.test),
    }
    progress.stage_finished(Stage.CHECK, seconds, {"rows": rows, "labels": len(bench.words)})
    return Attempt(job, services, progress, base, bench, {"check": seconds})


def _require_turn(job: Job, services: Services) -> None:
    """Raise SlotTakenError while the job whose labels this one corrects is unfinished: its version comes first."""
    change = job.spec.change
    if change is None or change["job"] is None or not job.spec.new_labels:
        return
    try:
        with services.database.read() as session:
            before = JobRepository(session).get(change["job"])
    except NotFoundError:  # old jobs are deleted
        return
    if not before.state.finished:
        raise SlotTakenError("earlier-change-open", holder=before.id, task=job.spec.task)


def pinned_base(spec: JobSpec, device: str) -> Base:
    """Load the worker's base. It is registered only after that, so that broken files never become a base.

    Raises:
        OtherBaseError: the job was submitted for another base.
        BaseMissingError: the base is not on this machine.
        BaseDamagedError: its files cannot be loaded.
    """
    base = find_base(spec.base)
    _require_pinned(spec, base, spec.options.get("base_digest") or base.digest)
    load_engine(base, device)
    return base


def prepare(spec: JobSpec, services: Services, record: BaseRecord) -> Workbench:
    """Load the snapshot and the model, hold out rows, and find the label words.

    Args:
        record: the worker's base as registered; the task is learned under its head.

    Raises:
        OtherBaseError: the job was submitted for a base other than the worker's.
        NotFoundError, DamagedError: the base, its hypernetwork or the snapshot is missing or damaged.
    """
    base = find_base(spec.base)
    _require_pinned(spec, base, spec.options.get("base_digest") or record.digest)
    _require_pinned(spec, base, record.digest)
    engine = engine_at(services, base, record.head)
    known = None if record.head == FIRST_HYPERNETWORK else head_rows(services, base, record.head)
    stored = load_snapshot(read_snapshot(services, spec.dataset))
    dataset = holdout(stored, spec.seed)
    pool = spec.options.get("unlabelled")
    unlabelled = load_snapshot(read_snapshot(services, pool["digest"])).train if pool else ()
    described = descriptions_of(spec.options.get("label_description", ()), dataset.labels)
    return Workbench(
        base, engine, dataset, label_words(dataset, engine), unlabelled, record.head, known,
        held_out_places(stored, dataset), descriptions=described,
    )  # fmt: skip


def _require_pinned(spec: JobSpec, base: Base, pinned: str) -> None:
    if base.digest != pinned:
        raise OtherBaseError("job-of-other-base", pinned=pinned, base_digest=base.digest, base=spec.base)


def label_words(dataset: Dataset, engine: Engine) -> tuple[str, ...]:
    """Return a word per label, or per bucket; all are distinct for the base's tokenizer."""
    buckets = buckets_of(dataset)
    if buckets is not None:
        assert len(buckets.words) == BUCKETS
        return buckets.words
    return verbalise(dataset.labels, engine.encoder.word_ids, engine.encoder.tokenizer.unk_token_id)
