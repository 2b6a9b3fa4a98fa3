"""The service of this environment: its database, queue and artifacts.

What it offers is what commands ask of any service. It answers with the documents that `--json` prints;
`cli.remote.RemoteGateway` answers the same calls with the same documents, and raises the same errors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.output import Document, say
from cli.waking import start_webhook_worker, start_worker, wake
from onboard.bases import find_base
from onboard.contract.access import SessionDocument, TokenCreated, TokenDocument
from onboard.contract.versions import AliasMoveDocument, VersionDocument
from onboard.domain.job import JobState
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.domain.names import require_name
from onboard.hypernetworks import line
from onboard.hypernetworks.prior import line as prior_line
from onboard.jobs import control, logs, many, status
from onboard.jobs.detached import require_no_trouble
from onboard.jobs.doorbell import DEFAULT_QUEUE
from onboard.jobs.waking import doorbell
from onboard.operations import access
from onboard.operations.worker_logs import log_files
from onboard.versions import carry, compare, delete, describe, fetch, promote, task_map

if TYPE_CHECKING:
    from onboard.contract.carrying import CarriedTasks
    from onboard.contract.drift import DriftDocument
    from onboard.contract.evaluations import ComparisonDocument, EvaluationDocument
    from onboard.contract.hypernetworks import HypernetworkDetail, HypernetworkList, HypernetworkReverted
    from onboard.contract.priors import PriorDetail, PriorList
    from onboard.domain.addition import Addition
    from onboard.domain.evaluation import Evaluation
    from onboard.domain.label_change import LabelChange
    from onboard.domain.prediction import Outcome, Prediction
    from onboard.domain.prior import Form
    from onboard.domain.submission import Submission
    from onboard.domain.task import AliasNames
    from onboard.domain.task_search import TaskSearch
    from onboard.registry.services import Services
    from onboard.serving.predictor import Predictor


class LocalGateway:
    """What commands ask of a service, near."""

    poll_seconds = 0.2  # between two looks at a job that is followed

    def __init__(self, services: Services) -> None:
        self._services = services
        self._database = services.database
        self._predictor: Predictor | None = None

    def submit(self, submission: Submission) -> Document:
        """Queue a job; warnings are said. Raises as `submission.prepare` and `submit`."""
        from onboard.jobs.submission import prepare
        from onboard.jobs.submit import submit

        if submission.base and "/" in submission.base:  # a worker has another present folder
            submission = replace(submission, base=str(find_base(submission.base).folder))
        request = prepare(submission, self._services.settings.base)
        for finding in request.checked.report.warnings:
            say(f"warning: {finding.message} {finding.remedy}")

        def start_early() -> None:
            """It loads the base while the job is being stored."""
            if submission.queue == DEFAULT_QUEUE:
                start_worker(self._services, submission.queue)

        job, warning = submit(self._services, doorbell(self._services), request, start_early)
        if warning:
            say(f"warning: {warning}")
        start_worker(self._services, submission.queue)  # one that lived may have left meanwhile
        return {"job": job.id, "state": job.state.value, "task": job.spec.task}

    def add(self, task: str, addition: Addition) -> Document:
        """Queue a job that learns a task's rows with those of a file; warnings are said. See `onboard.jobs.add`."""
        from onboard.jobs.add import add

        def start_early() -> None:
            """It loads the base while the job is being stored."""
            if addition.queue == DEFAULT_QUEUE:
                start_worker(self._services, addition.queue)

        added = add(self._services, doorbell(self._services), task, addition, accepted=start_early)
        for finding in added.job.spec.options["dataset_report"]["warnings"]:
            say(f"warning: {finding['message']} {finding['remedy']}")
        if added.warning:
            say(f"warning: {added.warning}")
        start_worker(self._services, addition.queue)
        return added.to_json()

    def labels(self, task: str) -> Document:
        """The labels of a task's newest rows. Raises NotFoundError, ConflictError."""
        from onboard.jobs.labels import list_labels

        return list_labels(self._services, require_name(task))

    def relabel(self, task: str, asked: LabelChange, *, fast: bool = False) -> Document:
        """Change labels; warnings are said. Raises as `onboard.jobs.labels.change_labels`."""
        from onboard.jobs.labels import change_labels

        changed = change_labels(self._services, doorbell(self._services), require_name(task), asked, fast=fast)
        if changed.queued is None:
            start_webhook_worker(self._services)
        else:
            if changed.queued.warning:
                say(f"warning: {changed.queued.warning}")
            start_worker(self._services, changed.queued.job.queue)
        return changed.to_json()

    def progress(self, job: str, since: int) -> Document:
        """A job's `job`, `state`, `queue` and its `events` after `since`. Raises NotFoundError, UnavailableError."""
        present, events = control.news_of(self._database, job, since)
        return {
            "job": present.id, "state": present.state.value, "queue": present.queue,
            "events": [event.to_json() for event in events],
        }  # fmt: skip

    def waiting(self, job: str) -> Document | None:
        """Why a job waits; None unless it is queued."""
        wait = status.waiting(self._database, control.find_job(self._database, job))
        return wait.to_json() if wait else None

    def keep_served(self, queue: str) -> None:
        """See to it that a worker lives, where that is for the command to do: the one that was there may be killed.

        Raises:
            DamagedError: the last one has left because it cannot load what jobs need.
        """
        if self._services.settings.embedded:
            require_no_trouble(self._services, queue)
        start_worker(self._services, queue)

    def log(self, job: str, attempt: int | None, cursor: str | None) -> Document:
        """A part of a job's log, see `onboard.jobs.logs.read_log`."""
        return logs.read_log(self._database, log_files(self._services.settings), job, attempt, cursor)

    def open_jobs(self, most: int) -> Document:
        """What runs, and the `most` most urgent jobs that wait."""
        return status.open_jobs(self._database, most).to_json()

    def queues(self) -> Document:
        """Every queue with its figures."""
        return status.queues(self._database).to_json()

    def workers(self) -> Document:
        """Every worker with what it does."""
        return status.workers(self._database).to_json()

    def jobs(self, states: Sequence[str], task: str | None, limit: int, sort: str) -> list[Document]:
        """Jobs, of these states or of all, the newest first or as `sort` says."""
        search = JobSearch(tuple(map(JobState, states)), task)
        jobs, _ = many.listed_jobs(self._database, search, None, limit, JobOrder(sort))
        return [control.brief(job) for job in jobs]

    def job(self, job: str) -> Document:
        """A job in full, by its id or its task. Raises NotFoundError."""
        return control.full_document(self._database, control.find_job(self._database, job))

    def cancel(self, job: str) -> Document:
        """Cancel a job, by its id or its task. Raises NotFoundError, ConflictError."""
        return control.brief(control.cancel(self._database, job))

    def retry(self, job: str, time_limit_seconds: float | None) -> Document:
        """Queue a job again. Raises NotFoundError, ConflictError, InputError."""
        queued = control.retry(self._database, job, time_limit_seconds)
        wake(self._services, queued.queue)
        return control.brief(queued)

    def set_paused(self, queue: str, paused: bool) -> None:
        """Hold a queue's jobs back, or let them go on. Raises InputError."""
        control.set_paused(self._database, queue, paused)
        if not paused:
            wake(self._services, queue)

    def drain(self, worker: str) -> None:
        """Let a worker leave. Raises NotFoundError."""
        control.drain(self._database, worker)

    def create_token(self, name: str | None, scopes: Sequence[str], expires: str) -> Document:
        """A new token with its `secret`. Raises InputError."""
        token, secret = access.create_token(self._database, name, scopes, expires)
        return TokenCreated.of(token, secret=secret).to_json()

    def tokens(self, include_ended: bool) -> list[Document]:
        """The tokens that work now, or all of them."""
        tokens = access.list_tokens(self._database, include_ended=include_ended)
        return [TokenDocument.of(token).to_json() for token in tokens]

    def revoke_token(self, token: str) -> Document:
        """End a token, by its id or its name. Raises NotFoundError, ConflictError."""
        return TokenDocument.of(access.revoke_token(self._database, token)).to_json()

    def sessions(self) -> list[Document]:
        """The browsers that are signed in."""
        return [SessionDocument.of(session).to_json() for session in access.list_sessions(self._database)]

    def end_session(self, session: str) -> Document:
        """Sign a browser out, by the id of its session. Raises NotFoundError."""
        return SessionDocument.of(access.end_session(self._database, session)).to_json()

    def changes(self, limit: int, before: int | None) -> Document:
        """The newest `changes`, those before that id; `next` is the id to go on before, None at the end."""
        return access.changes(self._database, limit, before)

    def submit_bulk(
        self,
        references: Sequence[str],
        source: str,
        output: str,
        queue: str,
        asked: Mapping[str, Any],
        *,
        refuses_bad_rows: bool,
    ) -> Document:
        """Queue a job that answers files; warnings are said. Raises as `onboard.serving.bulk.submit.submit_bulk`."""
        from onboard.jobs.submit import warn_of_queue
        from onboard.serving.bulk.submit import submit_bulk

        job, warnings = submit_bulk(
            self._services, references, source, output, queue, asked, refuses_bad_rows=refuses_bad_rows
        )
        for warning in filter(None, [*warnings, warn_of_queue(self._services, queue)]):
            say(f"warning: {warning}")
        wake(self._services, queue)
        return {"job": job.id, "state": job.state.value, "task": job.spec.task}

    def predict(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        probabilities: bool,  # noqa: ARG002 - near, they cost nothing
    ) -> list[Prediction]:
        """Answers in the order of the inputs.

        Raises:
            InputError, NotFoundError, PinMismatchError: nothing is answered.
        """
        from onboard.contract.requests import parse_requests
        from onboard.serving.unloaded import look_up, require_known

        requests = parse_requests(inputs)
        if self._predictor is None:  # before a model is loaded
            require_known(look_up(self._database, requests))
        return self._loaded().answer(requests)

    def outcomes(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        probabilities: bool,  # noqa: ARG002
    ) -> list[Outcome]:
        """The same, but an input whose version cannot answer is `Unanswered`. Raises InputError."""
        from onboard.contract.requests import parse_requests
        from onboard.serving.unloaded import look_up, unless_any

        requests = parse_requests(inputs)
        unknown = [] if self._predictor else unless_any(requests, look_up(self._database, requests))
        return unknown or self._loaded().answer_others(requests)

    def close(self) -> None:
        """Write what was recorded of answered texts."""
        if self._predictor is not None:
            self._predictor.close()

    def drift(self, reference: str) -> DriftDocument:
        """How the texts of a version differ from earlier ones. Raises NotFoundError."""
        from onboard.versions.drift import drift_of

        return drift_of(self._services, reference)

    def _loaded(self) -> Predictor:
        if self._predictor is None:
            from onboard.serving.predictor import Predictor

            self._predictor = Predictor(self._services, record=True)
        return self._predictor

    def tasks(self, search: TaskSearch) -> list[Document]:
        """The tasks that fit, by name, each with its latest version."""
        return describe.list_tasks(self._database, search)

    def tasks_map(self) -> Document:
        """Every task in two dimensions, see `task_map.map_tasks`. Raises DamagedError."""
        return task_map.present_map(self._services)

    def task(self, task: str) -> Document:
        """A task with its latest version and its aliases. Raises NotFoundError."""
        return describe.describe_task(self._database, require_name(task))

    def delete_task(self, task: str, *, unlearn: bool, dry_run: bool) -> Document:
        """Delete a task for good, and raise what `onboard.versions.delete.delete_task` raises."""
        deleted = delete.delete_task(self._services, require_name(task), unlearning=unlearn, dry_run=dry_run)
        if not dry_run:
            for queue in sorted(deleted.queues):
                wake(self._services, queue)
            start_webhook_worker(self._services)
        return deleted.to_json()

    def versions(self, task: str, limit: int, before: int | None) -> Document:
        """The newest `versions`, those before that number, and the `aliases`. Raises NotFoundError."""
        return describe.versions_page(self._database, require_name(task), limit, before)

    def version(self, reference: str) -> Document:
        """A version. Raises InputError, NotFoundError."""
        (version,) = describe.resolve(self._database, reference)
        return VersionDocument.of(version).to_json()

    def alias_names(self, reference: str) -> AliasNames:
        """What the alias of a reference calls labels; empty where it calls them as the version does."""
        return describe.alias_names(self._database, reference)

    def compare(self, earlier: str, later: str, test: Evaluation | None = None) -> ComparisonDocument:
        """Two versions side by side, on the rows of a file if one is given.

        Raises:
            InputError, NotFoundError, DamagedError: as `onboard.versions.compare.compare`.
            DatasetError: the file's rows do not fit the task.
        """
        from onboard.data.labelled import read_labelled
        from onboard.versions.measure import takes_of

        a, b = compare.both_versions(self._services, earlier, later)
        file = None if test is None else read_labelled(test, takes_of(b))
        return compare.compare_versions(self._services, a, b, file=file).to_document()

    def evaluate(self, reference: str, asked: Evaluation) -> EvaluationDocument:
        """A version measured on a file. Raises as `onboard.versions.measure.evaluate`."""
        from onboard.versions.measure import evaluate

        return evaluate(self._services, reference, asked).to_document()

    def promote(self, reference: str, alias: str, *, if_better: bool, as_before: bool = False) -> AliasMoveDocument:
        """Let an alias mean a version. Raises InputError, NotFoundError, NotBetterError, PreconditionFailedError."""
        moved = promote.promote(self._services, reference, alias, if_better=if_better, as_before=as_before)
        start_webhook_worker(self._services)
        return AliasMoveDocument.of(moved)

    def rollback(self, task: str, alias: str) -> AliasMoveDocument:
        """Let an alias mean what it meant before. Raises NotFoundError, ConflictError."""
        moved = promote.rollback(self._services, task, alias)
        start_webhook_worker(self._services)
        return AliasMoveDocument.of(moved)

    def carry(self, task: str | None, *, dry_run: bool, on_page: Callable[[CarriedTasks], None]) -> CarriedTasks:
        """Carry a task to the head, or with None all; then `on_page` hears of every few. Raises NotFoundError."""
        carried = carry.carry(self._services, task, dry_run=dry_run, on_page=lambda page: on_page(page.to_document()))
        if any(outcome.version for outcome in carried.outcomes):
            start_webhook_worker(self._services)
        return carried.to_document()

    def fetch(self, reference: str, folder: Path, bundle: bool) -> Sequence[Path]:
        """Write a version's files; returns what was written. Raises as `onboard.versions.fetch.fetch`."""
        return fetch.fetch(self._services, reference, folder, bundle).files

    def hypernetworks(self, base: str | None) -> HypernetworkList:
        """The line of a base, by its name or digest; None is the service's default one. Raises NotFoundError."""
        return line.list_hypernetworks(self._database, self._named(base))

    def hypernetwork_version(self, version: int, base: str | None) -> HypernetworkDetail:
        """One version with what is pinned to it and the guard's verdict. Raises NotFoundError."""
        return line.show_hypernetwork(self._database, self._named(base), version)

    def revert_hypernetwork(self, version: int, base: str | None) -> HypernetworkReverted:
        """Make a version the head again. Raises NotFoundError, ConflictError."""
        return line.revert_hypernetwork(self._database, self._named(base), version)

    def priors(self, base: str | None) -> PriorList:
        """The versions of a base's priors, and what earlier tasks contributed. Raises NotFoundError."""
        return prior_line.list_priors(self._database, self._named(base))

    def prior(self, form: Form, version: int | None, base: str | None) -> PriorDetail:
        """One version of a prior (None is the head) with what taught it. Raises NotFoundError."""
        return prior_line.show_prior(self._database, self._named(base), form, version)

    def _named(self, base: str | None) -> str:
        """What the registry finds it by: the digest of the default base, which may have been registered by a folder."""
        return base or find_base(self._services.settings.base).digest
