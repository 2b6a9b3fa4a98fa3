"""The service at ONBOARD_API_URL, as commands ask it: most of it is the client itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cli.output import Document, say
from onboard.client.operations import Operations
from onboard.client.versions import Versions
from onboard.contract.hypernetworks import HypernetworkDetail, HypernetworkList, HypernetworkReverted
from onboard.contract.priors import PriorDetail, PriorList
from onboard.domain.submission import asked

if TYPE_CHECKING:
    from onboard.client import Onboard
    from onboard.contract.carrying import CarriedTasks
    from onboard.contract.evaluations import ComparisonDocument, EvaluationDocument
    from onboard.domain.addition import Addition
    from onboard.domain.evaluation import Evaluation
    from onboard.domain.label_change import LabelChange
    from onboard.domain.prediction import Outcome, Prediction
    from onboard.domain.prior import Form
    from onboard.domain.submission import Submission
    from onboard.domain.task_search import TaskSearch

_NO_EVENTS: Final = 2**53 - 1  # events after this one: none


def check(client: Onboard, submission: Submission) -> Document:
    """What a service says of a dataset."""
    report = client.check(**asked(submission)).document
    named = {} if submission.dataset is None else {"source": submission.dataset}
    return {**report, **named}  # the service knows the name of the file only


class RemoteGateway(Versions, Operations):
    """What commands ask of a service, far; what each call does `cli.local.LocalGateway` says.

    Only what commands want otherwise than programs stands here: warnings said, answers as documents.
    """

    poll_seconds = 1.0

    def __init__(self, client: Onboard) -> None:
        super().__init__(client._connection)
        self._client = client

    def submit(self, submission: Submission) -> Document:
        """Upload a dataset, to be checked and queued."""
        job = self._client.submit(**asked(submission)).document
        for finding in job["warnings"]:
            say(f"warning: {finding['message']} {finding['remedy']}")
        if job["warning"]:
            say(f"warning: {job['warning']}")
        return {"job": job["job"], "state": job["state"], "task": job["task"]}

    def add(self, task: str, addition: Addition) -> Document:
        """Upload rows for a task, to be checked and queued."""
        options = asked(addition)
        job = self._client.add(task, options.pop("dataset"), **options).document
        for finding in job["warnings"]:
            say(f"warning: {finding['message']} {finding['remedy']}")
        if job["warning"]:
            say(f"warning: {job['warning']}")
        return {name: job[name] for name in ("job", "state", "task", "change")}

    def labels(self, task: str) -> Document:
        """The labels of a task's newest rows."""
        return dict(self.labels_document(task))

    def relabel(self, task: str, asked: LabelChange, *, fast: bool = False) -> Document:
        """Change labels; warnings are said."""
        changed = dict(self.change_labels(task, asked, fast=fast))
        if warning := changed.pop("warning", None):
            say(f"warning: {warning}")
        return changed

    def progress(self, job: str, since: int) -> Document:
        """What is new about a job, and why it waits."""
        return dict(self._client.job(job, since).document)

    def waiting(self, job: str) -> Document | None:
        """Why a job waits."""
        wait: Document | None = self._client.job(job, _NO_EVENTS).document["waiting"]
        return wait

    def keep_served(self, queue: str) -> None:
        """The service sees to its workers."""

    def job(self, job: str) -> Document:
        """A job in full."""
        return dict(self._client.job(job).document)

    def cancel(self, job: str) -> Document:
        """Cancel a job."""
        return dict(self._client.cancel(job).document)

    def retry(self, job: str, time_limit_seconds: float | None) -> Document:
        """Queue a job again."""
        return dict(self._client.retry(job, time_limit_seconds).document)

    def set_paused(self, queue: str, paused: bool) -> None:
        """Hold a queue's jobs back, or let them go on."""
        warning = super().set_paused(queue, paused)
        if warning:
            say(f"warning: {warning}")

    def predict(self, inputs: Sequence[Mapping[str, Any]], *, probabilities: bool) -> list[Prediction]:
        """Answers in the order of the inputs."""
        return self._client.predict(inputs, probabilities=probabilities)

    def outcomes(self, inputs: Sequence[Mapping[str, Any]], *, probabilities: bool) -> list[Outcome]:
        """The same, and why some inputs have none."""
        return self._client.outcomes(inputs, probabilities=probabilities)

    def tasks(self, search: TaskSearch) -> list[Document]:
        """The tasks that fit."""
        return list[Document](self.task_documents(search))

    def task(self, task: str) -> Document:
        """A task with its latest version and its aliases."""
        return self.task_document(task)

    def versions(self, task: str, limit: int, before: int | None) -> Document:
        """The newest versions, and the aliases."""
        return self.versions_page(task, limit, before)

    def version(self, reference: str) -> Document:
        """A version."""
        return self.version_document(reference)

    def jobs(self, states: Sequence[str], task: str | None, limit: int, sort: str) -> list[Document]:
        """Jobs."""
        return list[Document](self.job_documents(states, task, limit, sort))

    def compare(self, earlier: str, later: str, test: Evaluation | None = None) -> ComparisonDocument:
        """Two versions side by side, on the rows of a file if one is given."""
        if test is None:
            return self._client.compare(earlier, later)
        options = asked(test)
        return self._client.compare(earlier, later, options.pop("dataset"), **options)

    def evaluate(self, reference: str, asked_of: Evaluation) -> EvaluationDocument:
        """A version measured on a file."""
        options = asked(asked_of)
        return self._client.evaluate(reference, options.pop("dataset"), **options)

    def carry(self, task: str | None, *, dry_run: bool, on_page: Callable[[CarriedTasks], None]) -> CarriedTasks:
        """Carry a task to the head, or with None all."""
        return self._client.carry(task, dry_run=dry_run, on_page=on_page)

    def hypernetworks(self, base: str | None = None) -> HypernetworkList:  # type: ignore[override]  # programs get the JSON
        """The line of a base."""
        return self._client.hypernetworks(base).parsed(HypernetworkList)

    def hypernetwork_version(self, version: int, base: str | None = None) -> HypernetworkDetail:  # type: ignore[override]  # programs get the JSON
        """One version of it."""
        return self._client.hypernetwork_version(version, base).parsed(HypernetworkDetail)

    def revert_hypernetwork(self, version: int, base: str | None = None) -> HypernetworkReverted:  # type: ignore[override]  # programs get the JSON
        """Make a version the head again."""
        return self._client.revert_hypernetwork(version, base).parsed(HypernetworkReverted)

    def priors(self, base: str | None = None) -> PriorList:  # type: ignore[override]  # programs get the JSON
        """The versions of a base's priors."""
        return self._client.priors(base).parsed(PriorList)

    def prior(self, form: Form = "single", version: int | None = None, base: str | None = None) -> PriorDetail:  # type: ignore[override]  # programs get the JSON
        """One version of a prior."""
        return self._client.prior(form, version, base).parsed(PriorDetail)

    def tasks_map(self) -> Document:
        """Every task in two dimensions, as the service lays it out."""
        return dict(self.map_document())

    def fetch(self, reference: str, folder: Path, bundle: bool) -> Sequence[Path]:
        """Write a version's files, verified."""
        from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion
        from onboard.storage.readout import READOUT
        from onboard.versions.fetch import BASE, HYPERNETWORK, verify, write_files, write_whole

        version = self.version_document(reference).read_by(EmbeddingVersion.from_json)
        parts: dict[str, Callable[[Path], object]] = {}
        if bundle:
            parts[BASE] = lambda target: self.base(version.base_digest, target)
        if version.readout is not None:
            readout = self._client.readout(version.reference)
            parts[READOUT] = lambda target: write_whole(target, readout)
        if version.content != "embedding":
            weights = self._client.weights(version.reference)
            verify(weights, version)
            return write_files(version, weights, folder, parts)
        embedding = self._client.embedding(version.reference)
        if version.hypernetwork_version != FIRST_HYPERNETWORK:
            parts[HYPERNETWORK] = lambda target: self.hypernetwork(embedding.pins, target)
        return write_files(version, embedding.content, folder, parts)
