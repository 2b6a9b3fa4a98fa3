"""Onboard without a server: the methods of `onboard.client.Onboard` for this machine.

    from onboard.local import Onboard

    with Onboard() as here:
        job = here.submit(frame, "tickets")
        here.wait(job)
        here.predict([{"task": "tickets", "text": "My card was charged twice."}])

It works on the home, the database and the queue that the environment names.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from onboard.bases import find_base, named_bases
from onboard.client.frames import as_files
from onboard.client.json_object import JsonObject
from onboard.client.service import not_ended, require_success
from onboard.client.tasks import PublishedVersion, published
from onboard.client.uploads import taking
from onboard.contract.access import QuotaUse, SessionDocument, TokenCreated, TokenDocument
from onboard.contract.changes import TaskLabel
from onboard.contract.checks import CheckDocument
from onboard.contract.document import Document
from onboard.contract.jobs import Accepted, JobEventDocument, JobStatus
from onboard.contract.versions import AliasMoveDocument, TaskDetail, VersionDocument
from onboard.domain.addition import Addition
from onboard.domain.arguments import speaking_of_arguments
from onboard.domain.evaluation import Evaluation
from onboard.domain.job import EVENTS_AT_ONCE, Job, JobState
from onboard.domain.job_search import JobOrder, JobSearch
from onboard.domain.names import require_name
from onboard.domain.prior import require_form
from onboard.domain.submission import Submission
from onboard.domain.task_search import TaskSearch
from onboard.errors import NotAllowedError, OnboardError
from onboard.hypernetworks import line
from onboard.hypernetworks.prior import line as prior_line
from onboard.jobs import control, logs, many, status, waking
from onboard.jobs import submission as submissions
from onboard.jobs.detached import require_no_trouble
from onboard.jobs.doorbell import DEFAULT_QUEUE
from onboard.operations import access
from onboard.operations.worker_logs import log_file, log_files
from onboard.registry.services import open_services
from onboard.settings import Settings
from onboard.versions import carry, compare, delete, describe, fetch, promote, task_map

if TYPE_CHECKING:
    from onboard.contract.carrying import CarriedTasks
    from onboard.contract.drift import DriftDocument
    from onboard.contract.evaluations import ComparisonDocument, EvaluationDocument
    from onboard.domain.label_change import LabelChange
    from onboard.domain.prediction import Outcome, Prediction
    from onboard.domain.prior import Form
    from onboard.domain.task import AliasNames
    from onboard.jobs.pace import Pace
    from onboard.registry.services import Services
    from onboard.serving.predictor import Predictor

__all__ = ["Onboard"]

_HERE: Final = "this machine"
_WORKER_LOOK_SECONDS: Final = 10.0
_Parsed = TypeVar("_Parsed", bound=Document)


def _on_standard_error(message: str) -> None:
    sys.stderr.write(message + "\n")


class Onboard:
    """The service on this machine. Close it, or use it in a `with` statement. Methods are those of the client.

    It opens the home on first use. In embedded mode, it starts a worker for jobs that it queues.

    Args:
        services: of another home; None means the home from the environment.
        register: whether to add the source tasks of the base to the home first.
        notify: called with messages for users, such as the log of a started worker.

    Raises:
        NotAllowedError: ONBOARD_API_URL is set; use `onboard.client.Onboard`.
    """

    in_commands = False  # whether the messages of errors name command-line options
    poll_seconds = 0.2  # interval for following a job or a log

    def __init__(
        self,
        services: Services | None = None,
        *,
        register: bool = True,
        notify: Callable[[str], object] = _on_standard_error,
    ) -> None:
        if services is None:
            require_here("onboard.local")
        self._given, self._register, self._notify = services, register, notify
        self._opened: Services | None = None
        self._predictor: Predictor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Store the pending records of predicted texts, and close the database."""
        if self._predictor is not None:
            self._predictor.close()
            self._predictor = None
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def services(self) -> Services:
        """The database, store and device of this machine."""
        if self._given is not None:
            return self._given
        if self._opened is None:
            self._opened = open_here(self._notify)
            if self._register:
                from onboard.hypernetworks.register import register_base

                register_base(self._opened, find_base(self._opened.settings.base))
        return self._opened

    @taking(Submission)
    def check(self, submission: Submission) -> CheckDocument:
        """Check a dataset and estimate the time. Nothing is queued, and no home is made. Raises as in the client."""
        return _parsed(submissions.check(submission, Settings().base, pace=pace_here()), CheckDocument)

    @taking(Submission)
    def submit(self, submission: Submission) -> JobStatus:
        """Submit a dataset. It is checked at once; a worker on this machine learns it. Raises as in the client."""
        from onboard.jobs.submit import submit

        if submission.base and "/" in submission.base:  # a worker has another working folder
            submission = replace(submission, base=str(find_base(submission.base).folder))
        services = self.services
        request = submissions.prepare(submission, services.settings.base)
        early = self._early(submission.queue)
        job, warning = submit(services, waking.doorbell(services), request, early)
        self.start_worker(submission.queue)  # an earlier one may have exited since
        return _parsed(Accepted.of_job(job, warning).to_json(), JobStatus)

    def add(self, task: str, dataset: Any, **options: Any) -> JobStatus:
        """Add rows to a task, correct labels or remove rows. A worker learns the result. Raises as in the client."""
        from onboard.jobs.add import add

        with self._files({"dataset": dataset, "task": task, **options}) as arguments:
            addition = Addition(**arguments)
            services = self.services
            early = self._early(addition.queue)
            added = add(services, waking.doorbell(services), task, addition, accepted=early)
        self.start_worker(addition.queue)
        return _parsed(added.to_document().to_json(), JobStatus)

    def labels(self, task: str) -> list[TaskLabel]:
        """The labels of a task's newest rows. Raises NotFoundError."""
        return [part.parsed(TaskLabel) for part in self.labels_document(task).parts("labels")]

    def labels_document(self, task: str) -> JsonObject:
        """The labels of a task's newest rows, as `onboard labels TASK --json` prints them. Raises NotFoundError."""
        from onboard.jobs.labels import list_labels

        return _document(list_labels(self.services, require_name(task)))

    def change_labels(self, task: str, asked: LabelChange, *, fast: bool = False) -> JsonObject:
        """Change labels, like `onboard labels TASK rename A B --json`. Raises the same errors as the command."""
        from onboard.jobs.labels import change_labels

        services = self.services
        changed = change_labels(services, waking.doorbell(services), require_name(task), asked, fast=fast)
        if changed.queued is None:
            self._start_webhook_worker()
        else:
            self.start_worker(changed.queued.job.queue)
        return _document(changed.to_document().to_json())

    def jobs(
        self, states: str | Sequence[str] = (), task: str | None = None, limit: int = 50, sort: str = "newest"
    ) -> list[JobStatus]:
        """Jobs in one state, in several or in all, in the order of `sort`."""
        named = [states] if isinstance(states, str) else states
        search = JobSearch(tuple(map(JobState, named)), task)
        jobs, _ = many.listed_jobs(self.services.database, search, None, limit, JobOrder(sort))
        return [_brief(job) for job in jobs]

    def job(self, job: str, since: int | None = None) -> JobStatus:
        """A job, given by id, or by task name for its newest job, with the events after `since`."""
        database = self.services.database
        record = control.find_job(database, job)
        return _parsed(control.full_document(database, record, since or 0), JobStatus)

    def keep_served(self, queue: str) -> None:
        """In embedded mode, start a worker for the queue unless one is alive: the earlier one may have been killed.


        Raises:
            DamagedError: the last worker has exited because it cannot load what jobs need.
        """
        if self.services.settings.embedded:
            require_no_trouble(self.services, queue)
        self.start_worker(queue)

    def wait(
        self,
        job: str | JobStatus,
        *,
        timeout_seconds: float | None = None,
        on_event: Callable[[JobEventDocument], None] | None = None,
    ) -> JobStatus:
        """Wait until a job ends, and start a worker if none serves it. Raises as in the client."""
        name = job if isinstance(job, str) else job.id
        started = last_check = time.monotonic()
        last_event = 0
        while True:
            news = self.job(name, last_event)
            events = JsonObject.of(news.document, _HERE).parts("events")
            for event in events:
                last_event = event.read("id", int)
                if on_event is not None:
                    on_event(event.parsed(JobEventDocument))
            now = time.monotonic()
            if news.state.finished and len(events) < EVENTS_AT_ONCE:
                return require_success(self.job(name))
            if timeout_seconds is not None and now - started > timeout_seconds:
                raise not_ended(name, timeout_seconds)
            if now - last_check > _WORKER_LOOK_SECONDS:
                last_check = now
                self.keep_served(str(news.document["queue"]))
            time.sleep(self.poll_seconds)

    def log(self, job: str, attempt: int | None = None, cursor: str | None = None) -> JsonObject:
        """A page of the worker log of a job; `next` is the cursor of the following page."""
        services = self.services
        return _document(logs.read_log(services.database, log_files(services.settings), job, attempt, cursor))

    def cancel(self, job: str) -> JobStatus:
        """Cancel a queued job at once, or a running one at its next step. Raises ConflictError if it has ended."""
        return _brief(control.cancel(self.services.database, job))

    def retry(self, job: str, time_limit_seconds: float | None = None) -> JobStatus:
        """Queue a failed, cancelled or dead job again. Raises ConflictError in other states."""
        queued = control.retry(self.services.database, job, time_limit_seconds)
        self._wake(queued.queue)
        return _brief(queued)

    def open_jobs(self, most: int) -> JsonObject:
        """Running jobs, and the `most` most urgent waiting ones."""
        return _document(status.open_jobs(self.services.database, most).to_json())

    def queues(self) -> JsonObject:
        """All queues with their statistics."""
        return _document(status.queues(self.services.database).to_json())

    def set_paused(self, queue: str, paused: bool) -> str | None:
        """Pause or resume a queue. Returns a warning if no worker could be woken. Raises InputError."""
        control.set_paused(self.services.database, queue, paused)
        return None if paused else self._woken(queue)

    def workers(self) -> JsonObject:
        """All workers with their current jobs."""
        return _document(status.workers(self.services.database).to_json())

    def drain(self, worker: str) -> None:
        """Let a worker finish its job and exit. Raises NotFoundError."""
        control.drain(self.services.database, worker)

    def create_token(
        self,
        name: str | None,
        scopes: str | Sequence[str],
        expires: str,
        *,
        max_jobs: int | None = None,
        max_bytes: int | None = None,
    ) -> JsonObject:
        """Create a token; the result has its `secret`.

        Args:
            name: of it; None names it after its scopes.
            scopes: of it; one text may hold several with commas between.
            expires: "90d", "never", ….
            max_jobs: limit of queued and running jobs of all tokens of this name; None leaves it as it is.
            max_bytes: limit of their stored bytes, likewise.

        Raises:
            InputError: the name, a scope, the time or a limit is invalid.
        """
        named = [scopes] if isinstance(scopes, str) else scopes
        limits = {"max_jobs": max_jobs, "max_bytes": max_bytes}
        token, secret = access.create_token(self.services.database, name, named, expires, limits)
        return _document(TokenCreated.of(token, secret=secret).to_json())

    def set_quota(self, owner: str, limits: Mapping[str, int | None]) -> JsonObject:
        """Change limits of all tokens of a name: `max_jobs`, `max_bytes`; None lifts one.

        Raises:
            InputError: a limit is invalid, or none is given.
            NotFoundError: no valid token has that name.
        """
        return _document(QuotaUse.of(access.set_quota(self.services.database, owner, limits)).to_json())

    def tokens(self, include_ended: bool = False) -> list[JsonObject]:
        """Valid tokens, or all."""
        tokens = access.list_tokens(self.services.database, include_ended=include_ended)
        return [_document(TokenDocument.of(token).to_json()) for token in tokens]

    def revoke_token(self, token: str) -> JsonObject:
        """Revoke a token by id or name. Raises NotFoundError, ConflictError."""
        return _document(TokenDocument.of(access.revoke_token(self.services.database, token)).to_json())

    def sessions(self) -> list[JsonObject]:
        """Signed-in browsers."""
        sessions = access.list_sessions(self.services.database)
        return [_document(SessionDocument.of(session).to_json()) for session in sessions]

    def end_session(self, session: str) -> JsonObject:
        """End a browser session by its id. Raises NotFoundError."""
        return _document(SessionDocument.of(access.end_session(self.services.database, session)).to_json())

    def changes(self, limit: int, before: int | None = None) -> JsonObject:
        """A page of the audit log, newest first, before an id; `next` is the id for the following page."""
        return _document(access.changes(self.services.database, limit, before))

    def submit_bulk(
        self,
        references: Sequence[str],
        source: str,
        output: str,
        queue: str,
        asked: Mapping[str, Any],
        *,
        refuses_bad_rows: bool,
    ) -> JobStatus:
        """Queue a job that predicts the texts of files.

        Warnings go to `notify`. Raises as `serving.bulk.submit.submit_bulk`.
        """
        from onboard.jobs.submit import warn_of_queue
        from onboard.serving.bulk.submit import submit_bulk

        job, warnings = submit_bulk(
            self.services, references, source, output, queue, asked, refuses_bad_rows=refuses_bad_rows
        )
        for warning in filter(None, [*warnings, warn_of_queue(self.services, queue)]):
            self._notify(f"warning: {warning}")
        self._wake(queue)
        return _parsed(Accepted.of_job(job, None, ()).to_json(), JobStatus)

    def predict(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        probabilities: bool = True,  # noqa: ARG002 - here they cost nothing
    ) -> list[Prediction]:
        """Predictions with all probabilities, in the order of the inputs. Raises as in the client."""
        from onboard.contract.requests import parse_requests
        from onboard.serving.unloaded import look_up, require_known

        requests = parse_requests(inputs)
        if self._predictor is None:  # before a model is loaded
            require_known(look_up(self.services.database, requests))
        return self._loaded().answer(requests)

    def outcomes(
        self,
        inputs: Sequence[Mapping[str, Any]],
        *,
        probabilities: bool = True,  # noqa: ARG002
    ) -> list[Outcome]:
        """Like `predict`, but returns `Unanswered` with the error for an input that its version cannot answer."""
        from onboard.contract.requests import parse_requests
        from onboard.serving.unloaded import look_up, unless_any

        requests = parse_requests(inputs)
        unknown = [] if self._predictor else unless_any(requests, look_up(self.services.database, requests))
        return unknown or self._loaded().answer_others(requests)

    def _loaded(self) -> Predictor:
        if self._predictor is None:
            from onboard.serving.predictor import Predictor

            self._predictor = Predictor(self.services, record=True)
        return self._predictor

    def tasks(
        self, *, label: str | None = None, metric: str | None = None, at_least: float | None = None
    ) -> list[TaskDetail]:
        """Matching tasks by name; the arguments are the options of `onboard tasks list`. Raises InputError."""
        search = TaskSearch(label=label, metric=metric, at_least=at_least)
        return [_parsed(task, TaskDetail) for task in describe.list_tasks(self.services.database, search)]

    def task(self, task: str) -> TaskDetail:
        """A task with its aliases. Raises NotFoundError."""
        return _parsed(describe.describe_task(self.services.database, require_name(task)), TaskDetail)

    def map_document(self) -> JsonObject:
        """The map of tasks, as printed by `onboard tasks map --json`. Raises DamagedError."""
        return _document(task_map.present_map(self.services))

    def delete_task(self, task: str, *, unlearn: bool = False, dry_run: bool = False) -> JsonObject:
        """Delete a task permanently; returns the output of `onboard tasks delete --json`. Raises as in the client."""
        deleted = delete.delete_task(self.services, require_name(task), unlearning=unlearn, dry_run=dry_run)
        if not dry_run:
            for queue in sorted(deleted.queues):
                self._wake(queue)
            self._start_webhook_worker()
        return _document(deleted.to_document().to_json())

    def versions(self, task: str, limit: int = 200, before: int | None = None) -> list[PublishedVersion]:
        """The newest `limit` versions of a task, or those before a number. Raises NotFoundError."""
        page = self.versions_page(task, limit, before)
        aliases = page.mapped("aliases", int)
        return [published(document, aliases) for document in page.parts("versions")]

    def versions_page(self, task: str, limit: int, before: int | None = None) -> JsonObject:
        """A page of `versions`, newest first, before a number, and the `aliases`. Raises NotFoundError."""
        return _document(describe.versions_page(self.services.database, require_name(task), limit, before))

    def version_document(self, reference: str) -> JsonObject:
        """A version without its numbers, as printed by `onboard versions --json`. Raises NotFoundError."""
        (version,) = describe.resolve(self.services.database, reference)
        return _document(VersionDocument.of(version).to_json())

    def alias_names(self, reference: str) -> AliasNames:
        """The label names of a reference's alias, if they differ from the version's."""
        return describe.alias_names(self.services.database, reference)

    def compare(
        self, earlier: str, later: str, test: Any = None, *, text_field: str | Sequence[str] = (), **options: Any
    ) -> ComparisonDocument:
        """Compare two versions of a task. The verdict is about `later`. Raises as in the client."""
        from onboard.data.labelled import read_labelled
        from onboard.versions.measure import takes_of

        a, b = compare.both_versions(self.services, earlier, later)
        if test is None:
            return compare.compare_versions(self.services, a, b).to_document()
        with self._files({"dataset": test, "task": a.task, "text_field": text_field, **options}) as arguments:
            file = read_labelled(Evaluation(**arguments), takes_of(b))
        return compare.compare_versions(self.services, a, b, file=file).to_document()

    def evaluate(
        self, reference: str, dataset: Any, *, text_field: str | Sequence[str] = (), **options: Any
    ) -> EvaluationDocument:
        """Measure a version on labeled rows that it was not trained on. Raises as in the client."""
        from onboard.versions.measure import evaluate

        all_arguments = {"dataset": dataset, "task": reference.partition("@")[0], "text_field": text_field, **options}
        with self._files(all_arguments) as arguments:
            return evaluate(self.services, reference, Evaluation(**arguments)).to_document()

    def promote(
        self,
        reference: str,
        alias: str,
        *,
        if_better: bool = False,
        as_before: bool = False,
        share: float | None = None,
    ) -> AliasMoveDocument:
        """Move an alias to a version, or with `share` make the version its canary. Raises as in the client."""
        moved = promote.promote(self.services, reference, alias, if_better=if_better, as_before=as_before, share=share)
        self._start_webhook_worker()
        return AliasMoveDocument.of(moved)

    def drift(self, reference: str) -> DriftDocument:
        """How the texts of a version differ from earlier ones. Raises NotFoundError."""
        from onboard.versions.drift import drift_of

        return drift_of(self.services, reference)

    def rollback(self, task: str, alias: str) -> AliasMoveDocument:
        """Move an alias to its previous version, or end its canary. Raises NotFoundError, ConflictError."""
        moved = promote.rollback(self.services, task, alias)
        self._start_webhook_worker()
        return AliasMoveDocument.of(moved)

    def carry(
        self,
        task: str | None = None,
        *,
        dry_run: bool = False,
        on_page: Callable[[CarriedTasks], None] | None = None,
    ) -> CarriedTasks:
        """Carry a task, or all tasks that are not at the head, to the head. Raises NotFoundError."""

        def tell(page: carry.Carried) -> None:
            if on_page is not None:
                on_page(page.to_document())

        carried = carry.carry(self.services, task, dry_run=dry_run, on_page=tell)
        if any(outcome.version for outcome in carried.outcomes):
            self._start_webhook_worker()
        return carried.to_document()

    def fetch(self, reference: str, folder: str | Path, bundle: bool = False) -> Sequence[Path]:
        """Write the verified files of a version. Raises as `onboard.versions.fetch.fetch`."""
        return fetch.fetch(self.services, reference, Path(folder), bundle).files

    def hypernetworks(self, base: str | None = None) -> JsonObject:
        """The hypernetworks of a base, given by name or digest; None means the default base. Raises NotFoundError."""
        return _document(line.list_hypernetworks(self.services.database, self._named(base)).to_json())

    def hypernetwork_version(self, version: int, base: str | None = None) -> JsonObject:
        """A hypernetwork with the versions pinned to it and the guard's verdict. Raises NotFoundError."""
        return _document(line.show_hypernetwork(self.services.database, self._named(base), version).to_json())

    def revert_hypernetwork(self, version: int, base: str | None = None) -> JsonObject:
        """Make a hypernetwork the head again. Raises NotFoundError, ConflictError."""
        return _document(line.revert_hypernetwork(self.services.database, self._named(base), version).to_json())

    def priors(self, base: str | None = None) -> JsonObject:
        """The priors of a base, and the contributions of earlier tasks. Raises NotFoundError."""
        return _document(prior_line.list_priors(self.services.database, self._named(base)).to_json())

    def prior(self, form: Form = "single", version: int | None = None, base: str | None = None) -> JsonObject:
        """A prior (None means the head) with the tasks that taught it. Raises NotFoundError, InputError."""
        form = require_form(form)
        return _document(prior_line.show_prior(self.services.database, self._named(base), form, version).to_json())

    def bases(self, name: str | None = None) -> list[JsonObject]:
        """Available bases, or the one with this name or folder. Raises NotFoundError."""
        from onboard.bases.documents import base_document

        bases = named_bases() if name is None else [find_base(name)]
        return [_document(base_document(base)) for base in bases]

    def base_card(self, digest: str) -> str:
        """The card of a base as Markdown. Raises NotFoundError."""
        from onboard.hypernetworks.files import base_at_hand

        return (base_at_hand(self.services, digest).folder / "card.md").read_text(encoding="utf-8")

    def _named(self, base: str | None) -> str:
        """Return the digest that the registry knows a base by; the default base may be registered under a folder."""
        return base or find_base(self.services.settings.base).digest

    @contextmanager
    def _files(self, asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The arguments of a call without the task, with data frames replaced by files."""
        words = nullcontext() if self.in_commands else speaking_of_arguments()
        with words, as_files(asked) as arguments:
            del arguments["task"]
            yield arguments

    def _early(self, queue: str) -> Callable[[], None]:
        """Return a function that starts a worker, which loads the base while the job is being stored."""
        return (lambda: self.start_worker(queue)) if queue == DEFAULT_QUEUE else (lambda: None)

    def _woken(self, queue: str) -> str | None:
        """Wake the workers of a queue that got work. Returns a warning if that failed."""
        warning, started = waking.wake(self.services, queue)
        self._tell(started)
        return warning

    def _wake(self, queue: str) -> None:
        if warning := self._woken(queue):
            self._notify(f"warning: {warning}")

    def start_worker(self, queue: str) -> None:
        """In embedded mode, start a worker for the queue unless one is alive."""
        self._tell(waking.start_worker(self.services, queue))

    def _start_webhook_worker(self) -> None:
        self._tell(waking.start_webhook_worker(self.services))

    def _tell(self, started: bool) -> None:
        if started:
            self._notify(f"started a worker, log: {log_file(self.services.settings.resolved_home)}")


def require_here(what: str = "This command") -> None:
    """Raise NotAllowedError when ONBOARD_API_URL is set."""
    url = Settings().api_url
    if url:
        raise NotAllowedError("command-needs-service-machine", part=what, url=url)


def open_here(notify: Callable[[str], object]) -> Services:
    """Open the services of the environment. `notify` is called with the path of a new home."""
    settings = Settings()
    is_new = settings.embedded and not _is_there(settings.resolved_home)
    services = open_services(settings)
    if is_new:
        notify(f"home: {settings.resolved_home}, created now; set ONBOARD_HOME to use another folder")
    return services


def pace_here() -> Pace | None:
    """The pace of the last jobs in this environment; None if there is no home yet, or it cannot be read."""
    from onboard.jobs.pace import pace_of

    settings = Settings()
    try:
        if settings.embedded and not (settings.resolved_home / "onboard.db").is_file():
            return None  # a check does not make a home
        with closing(open_services(settings)) as services:
            return pace_of(services.database)
    except (OnboardError, OSError):  # an error of the home must not fail the check of a dataset
        return None


def _is_there(home: Path) -> bool:
    try:
        return home.exists()
    except OSError:  # reported when the home is opened
        return True


def _document(answer: Mapping[str, Any]) -> JsonObject:
    return JsonObject.of(answer, _HERE)


def _parsed(answer: Mapping[str, Any], kind: type[_Parsed]) -> _Parsed:
    return _document(answer).parsed(kind)


def _brief(job: Job) -> JobStatus:
    return _parsed(control.brief(job), JobStatus)
