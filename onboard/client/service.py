"""`Onboard(url, token)`: what a program wants of a remote service, in one class."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, Unpack
from urllib.parse import quote

from onboard.client.answers import Embedding
from onboard.client.cache import MOST_BYTES, EmbeddingCache
from onboard.client.connection import PATIENCE_SECONDS, Connection, Patience, document_of, require_private
from onboard.client.document import Document
from onboard.client.events import job_events
from onboard.client.fetching import Fetcher
from onboard.client.frames import as_files
from onboard.client.operations import Operations
from onboard.client.predictions import Predictions
from onboard.client.problems import in_commands, job_in_commands
from onboard.client.tasks import Tasks
from onboard.client.uploads import Upload, taking
from onboard.contract.access import Me
from onboard.contract.checks import CheckDocument
from onboard.contract.jobs import JobEventDocument, JobStatus, Report
from onboard.domain.addition import Addition
from onboard.domain.arguments import speaking_of_arguments
from onboard.domain.job import JobState, job_failure
from onboard.domain.names import LATEST, Reference, require_name
from onboard.domain.submission import Submission
from onboard.errors import AnswerError, CancelledError, InputError, JobFailedError, NotAllowedError, UnavailableError

_LOOK_SECONDS: Final = 1.0  # between two looks at a job whose events have ended
_AWAY_SECONDS: Final = 2.0


class Onboard(Tasks, Operations, Predictions):
    """A remote service. Threads may share one; close it, or use it with `with`.

    Args:
        url: of the service, for example https://onboard.example.org.
        token: bearer token; its scopes say what may be asked.
        cache: folder of embeddings that were fetched; ~/.cache/onboard.
        cache_bytes: how large that may become.
        insecure: whether plain http:// may be spoken to another machine, where the way there is one's own.
        patience: timeout_seconds for connecting and between two reads of an answer, attempts that a request that may be
            repeated has at most; for tests another transport than the network, and the sleep between attempts.

    Raises:
        InputError: the URL or the token cannot be used; there is no home for the cache.
        NotAllowedError: the URL is plain http:// to another machine, and not `insecure`.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        cache: str | Path | None = None,
        cache_bytes: int = MOST_BYTES,
        insecure: bool = False,
        **patience: Unpack[Patience],
    ) -> None:
        if not insecure:
            require_private(url)
        super().__init__(Connection(url, token, **patience))
        folder = cache or _default_cache()
        self._fetcher = Fetcher(self._connection, EmbeddingCache(folder, self._connection.url, cache_bytes))

    def __enter__(self) -> Onboard:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the sockets."""
        self._connection.close()

    @taking(Submission)
    def submit(self, submission: Submission) -> JobStatus:
        """Hand a dataset in; it is checked at once and learned by a worker.

        It takes what `onboard submit` takes, in its words: submit("paws.jsonl", "paws", init="sst2", shots=32). Without
        a key it makes a random one, so that a lost answer does no harm.

        Raises:
            DatasetError: rows are wrong; nothing was queued.
            InputError, ConflictError, NotAllowedError, UnavailableError: as `onboard submit` says.
        """
        upload = Upload.of(submission)
        return self._upload("/v1/jobs", upload, {"Idempotency-Key": submission.key or uuid.uuid4().hex}).parsed(
            JobStatus
        )

    def add(self, task: str, dataset: Any, **options: Any) -> JobStatus:
        """Add rows to a task, correct labels or remove rows; a worker learns what the task has then.

        Args:
            task: its name.
            dataset: a file, or a frame of pandas, polars or `datasets`.
            options: those of `onboard add`: replace=True, remove=True, new_labels=True, text_field, label_field, fast …

        Raises:
            DatasetError: the rows do not fit the task; nothing was queued.
            InputError: the rows change nothing, or leave a label without rows.
            NotFoundError: there is no such task.
            ConflictError: its rows are not stored by the service, or it was learned on another base.
        """
        asked = {"dataset": dataset, "task": require_name(task), **options}  # a frame needs a name
        words = nullcontext() if self.in_commands else speaking_of_arguments()
        with words, as_files(asked) as given:
            del given["task"]
            addition = Addition(**given)
            headers = {"Idempotency-Key": addition.key or uuid.uuid4().hex}
            return self._upload(f"/v1/tasks/{task}/rows", Upload.of(addition), headers).parsed(JobStatus)

    @taking(Submission)
    def check(self, submission: Submission) -> CheckDocument:
        """The checks of a dataset and a time estimate, as `onboard check` shows them. Raises as `submit`.

        It takes what `onboard check` takes, in its words.
        """
        return self._upload("/v1/check", Upload.of(submission)).parsed(CheckDocument)

    def jobs(
        self, states: str | Sequence[str] = (), task: str | None = None, limit: int = 50, sort: str = "newest"
    ) -> list[JobStatus]:
        """Jobs, of this state, of these or of all, the newest first or as `sort` says (`onboard jobs list --help`)."""
        states = [states] if isinstance(states, str) else states
        return [document.parsed(JobStatus) for document in self.job_documents(states, task, limit, sort)]

    def report(self, job: str, file: str | Path | None = None) -> Report:
        """What a job has come to, by its id, or a task's newest job by the task's name.

        Args:
            file: where the report goes as one HTML page; None writes none.

        Raises:
            NotFoundError: there is no such job.
            NotAllowedError: the file cannot be written.
        """
        report = self._job(job).parsed(Report)
        if file is not None:
            page = self.text(f"/v1/jobs/{report.job}/report")
            try:
                Path(file).write_text(page, encoding="utf-8")
            except OSError as error:
                raise NotAllowedError("report-not-writable", file=file, reason=error.strerror) from error
        return report

    def job(self, job: str, since: int | None = None) -> JobStatus:
        """A job by its id, or a task's newest job by the task's name; its document with the events after `since`.

        Raises:
            NotFoundError: there is no such job.
        """
        return self._job(job, since).parsed(JobStatus)

    def _job(self, job: str, since: int | None = None) -> Document:
        return job_in_commands(self.get(f"/v1/jobs/{quote(job, safe='')}", since=since))

    def cancel(self, job: str) -> JobStatus:
        """Cancel a queued job at once, a running one at its next step. Raises ConflictError when it has ended."""
        return job_in_commands(self.send("POST", f"/v1/jobs/{quote(job, safe='')}/cancel")).parsed(JobStatus)

    def retry(self, job: str, time_limit_seconds: float | None = None) -> JobStatus:
        """Queue a failed, cancelled or dead job again. Raises ConflictError when it is none of these."""
        body = {} if time_limit_seconds is None else {"time_limit": time_limit_seconds}
        return job_in_commands(self.send("POST", f"/v1/jobs/{quote(job, safe='')}/retry", body)).parsed(JobStatus)

    def events(self, job: str, since: int = 0) -> Iterator[JobEventDocument]:
        """A job's events after `since` as they come, until it has ended. Raises UnavailableError when cut off."""
        return (event for event in self._heard(job, since) if event is not None)

    def _heard(self, job: str, since: int = 0) -> Iterator[JobEventDocument | None]:
        """The same, and None for each sign of life in between (every 15 s or so)."""
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(since)}
        with self._connection.stream(f"/v1/jobs/{quote(job, safe='')}/events", headers) as answer:
            yield from job_events(answer.iter_lines(), answer.request.url.host)

    def wait(
        self,
        job: str | JobStatus,
        *,
        timeout_seconds: float | None = None,
        on_event: Callable[[JobEventDocument], None] | None = None,
    ) -> JobStatus:
        """Wait until a job has ended. A service that goes away meanwhile is waited for.

        Args:
            timeout_seconds: how long at most, to some 15 s; None is for ever.
            on_event: called with each event.

        Raises:
            JobFailedError: it failed or is dead; CancelledError: it was cancelled.
            UnavailableError: the time is over, and the job goes on.
            AnswerError: the service answers what cannot be read.
        """
        name = job if isinstance(job, str) else job.id
        for event in self._followed(name, timeout_seconds):
            if on_event is not None:
                on_event(event)
        return require_success(self.job(name))

    def _followed(self, job: str, timeout_seconds: float | None) -> Iterator[JobEventDocument]:
        """The events of a job until it has ended, each once. A service that goes away meanwhile is waited for.

        Raises:
            UnavailableError: the time is over. It is looked at whenever something is heard, every 15 s at least.
        """
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        seen = 0
        while True:
            pause = _LOOK_SECONDS
            try:
                for event in self._heard(job, seen):
                    if event is not None:
                        seen = event.id
                        yield event
                    if _over(deadline):
                        break
                if self.job(job).state.finished:
                    return
            except AnswerError:
                raise  # it would be the same again
            except UnavailableError:
                pause = _AWAY_SECONDS
            if timeout_seconds is not None and _over(deadline):
                raise not_ended(job, timeout_seconds)
            self._connection.sleep(pause)

    def embedding(self, reference: str) -> Embedding:
        """A verified embedding of TASK[@latest|@vN|@ALIAS].

        A version that was fetched before costs no request; an alias costs one that is answered by 304 unless it has
        moved. Where the service is away, what the alias meant last is returned: `stale`, with its `age_seconds`, and
        with a warning in the log.

        Raises:
            NotFoundError: no such task or version.
            DamagedError: the bytes are not what was asked for.
            NotAllowedError, UnavailableError: and nothing is in the cache.
        """
        return self._fetcher.embedding(Reference.parse(reference))

    def embeddings(self, ref: str = LATEST) -> dict[str, Embedding]:
        """Every task's embedding of that alias, by task. Raises as `embedding`.

        One request when nothing has changed, never more than ten however many tasks there are.
        """
        return self._fetcher.embeddings(ref)

    def me(self) -> Me:
        """What the token is good for. Raises NotAllowedError when it is good for nothing."""
        return self.get("/v1/me").parsed(Me)

    def _upload(self, path: str, upload: Upload, headers: Mapping[str, str] | None = None) -> Document:
        with upload.opened() as build:
            response = self._connection.request(
                "POST", path, repeatable=True, headers=headers, timeout_seconds=PATIENCE_SECONDS, build=build
            )
        document = document_of(response)
        if "warnings" not in document:
            return document
        return Document.of({**document, "warnings": in_commands(document.parts("warnings"))}, document.place)


def _default_cache() -> Path:
    try:
        return Path.home() / ".cache" / "onboard"
    except RuntimeError as error:  # a user without a name and without HOME
        raise InputError("cache-without-home") from error


def require_success(job: JobStatus) -> JobStatus:
    """The job, if it succeeded. Raises JobFailedError, CancelledError."""
    if job.state is JobState.SUCCEEDED:
        return job
    kind = CancelledError if job.state is JobState.CANCELLED else JobFailedError
    raise job_failure(job.id, job.state, job.document.get("error"), kind)


def not_ended(job: str, timeout_seconds: float) -> UnavailableError:
    """The error for a job that goes on when the time to wait for it is over."""
    return UnavailableError("job-not-ended", job=job, timeout_seconds=timeout_seconds)


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
