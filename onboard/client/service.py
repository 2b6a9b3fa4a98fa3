"""`Onboard(url, token)`: all requests to a remote service in one class; `AsyncOnboard` for coroutines."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final, Self, TypeVar, Unpack
from urllib.parse import quote

from onboard.client.answers import Embedding
from onboard.client.asking import get, send, text, upload
from onboard.client.bases import download_base, download_hypernetwork, download_readout, download_weights
from onboard.client.cache import MOST_BYTES, EmbeddingCache
from onboard.client.connection import AsyncConnection, AsyncPatience, Connection, Patience, require_private
from onboard.client.events import EventReader
from onboard.client.fetching import Fetcher
from onboard.client.frames import as_files
from onboard.client.json_object import JsonObject
from onboard.client.operations import Operations, job_documents
from onboard.client.predictions import PredictionOperations
from onboard.client.problems import job_in_commands
from onboard.client.steps import Awaiting, Blocking, Steps, Stream, Wait, operation
from onboard.client.tasks import Tasks
from onboard.client.uploads import Upload, taking
from onboard.client.versions import version_document
from onboard.contract.access import Me
from onboard.contract.checks import CheckDocument
from onboard.contract.jobs import JobEventDocument, JobStatus, Report
from onboard.domain.addition import Addition
from onboard.domain.arguments import speaking_of_arguments
from onboard.domain.job import JobState, job_failure
from onboard.domain.names import LATEST, Reference, require_name
from onboard.domain.submission import Submission
from onboard.errors import AnswerError, CancelledError, InputError, JobFailedError, NotAllowedError, UnavailableError

_Result = TypeVar("_Result")
_LOOK_SECONDS: Final = 1.0  # between polls of a job after its events ended
_AWAY_SECONDS: Final = 2.0


class ServiceOperations(Tasks, Operations, PredictionOperations):
    """The operations of a service."""

    poll_seconds = 1.0  # between polls of a followed job or log
    _fetcher: Fetcher

    def keep_served(self, queue: str) -> None:
        """Do nothing: the service manages its workers."""

    @operation
    @taking(Submission)
    def submit(self, submission: Submission) -> Steps[JobStatus]:
        """Submit a dataset. It is checked at once and learned by a worker.

        Arguments are the options of `onboard submit`: submit("paws.jsonl", "paws", init="sst2", rows=32). Without a
        key, a random one is used, so that a lost response is harmless.

        Raises:
            DatasetError: rows are wrong; nothing was queued.
            InputError, ConflictError, NotAllowedError, UnavailableError: as in `onboard submit`.
        """
        headers = {"Idempotency-Key": submission.key or uuid.uuid4().hex}
        return (yield from upload("/v1/jobs", Upload.of(submission), headers)).parsed(JobStatus)

    @operation
    def add(self, /, task: str, dataset: Any, **options: Any) -> Steps[JobStatus]:
        """Add rows to a task, correct labels or remove rows. A worker learns the result.

        Args:
            task: its name.
            dataset: a file, or a frame of pandas, polars or `datasets`.
            options: those of `onboard add`: replace=True, remove=True, new_labels=True, text_field, label_field, fast …

        Raises:
            DatasetError: the rows do not fit the task; nothing was queued.
            InputError: the rows change nothing, or leave a label without rows.
            NotFoundError: the task does not exist.
            ConflictError: its rows are not stored by the service, or it was learned on another base.
        """
        fields = {"dataset": dataset, "task": require_name(task), **options}  # a frame needs a name
        words = nullcontext() if self.in_commands else speaking_of_arguments()
        with words, as_files(fields) as as_written:
            del as_written["task"]
            addition = Addition(**as_written)
            headers = {"Idempotency-Key": addition.key or uuid.uuid4().hex}
            return (yield from upload(f"/v1/tasks/{task}/rows", Upload.of(addition), headers)).parsed(JobStatus)

    @operation
    @taking(Submission)
    def check(self, submission: Submission) -> Steps[CheckDocument]:
        """Check a dataset and estimate the time, like `onboard check`. Raises the same errors as `submit`.

        Arguments are the options of `onboard check`.
        """
        return (yield from upload("/v1/check", Upload.of(submission))).parsed(CheckDocument)

    @operation
    def jobs(
        self, states: str | Sequence[str] = (), task: str | None = None, limit: int = 50, sort: str = "newest"
    ) -> Steps[list[JobStatus]]:
        """Return jobs in one state, in several or in all, in the order of `sort` (`onboard jobs list --help`)."""
        states = [states] if isinstance(states, str) else states
        documents = yield from job_documents(states, task, limit, sort)
        return [document.parsed(JobStatus) for document in documents]

    @operation
    def report(self, job: str, file: str | Path | None = None) -> Steps[Report]:
        """Return the report of a job, given by id, or by task name for its newest job.

        Args:
            file: path to write the report to as an HTML page, or None.

        Raises:
            NotFoundError: the job does not exist.
            NotAllowedError: the file cannot be written.
        """
        report = (yield from _job(job)).parsed(Report)
        if file is not None:
            page = yield from text(f"/v1/jobs/{report.job}/report")
            try:
                Path(file).write_text(page, encoding="utf-8")
            except OSError as error:
                raise NotAllowedError("report-not-writable", file=file, reason=error.strerror) from error
        return report

    @operation
    def job(self, job: str, since: int | None = None) -> Steps[JobStatus]:
        """Return a job, given by id, or by task name for its newest job, with the events after `since`.

        Raises:
            NotFoundError: the job does not exist.
        """
        return (yield from _job(job, since)).parsed(JobStatus)

    @operation
    def cancel(self, job: str) -> Steps[JobStatus]:
        """Cancel a queued job at once, or a running one at its next step. Raises ConflictError if it has ended."""
        document = yield from send("POST", f"/v1/jobs/{quote(job, safe='')}/cancel")
        return job_in_commands(document).parsed(JobStatus)

    @operation
    def retry(self, job: str, time_limit_seconds: float | None = None) -> Steps[JobStatus]:
        """Queue a failed, cancelled or dead job again. Raises ConflictError in other states."""
        body = {} if time_limit_seconds is None else {"time_limit": time_limit_seconds}
        document = yield from send("POST", f"/v1/jobs/{quote(job, safe='')}/retry", body)
        return job_in_commands(document).parsed(JobStatus)

    @operation
    def wait(
        self,
        job: str | JobStatus,
        *,
        timeout_seconds: float | None = None,
        on_event: Callable[[JobEventDocument], None] | None = None,
    ) -> Steps[JobStatus]:
        """Wait until a job ends. Tolerates a temporarily unavailable service.

        Args:
            timeout_seconds: maximum time, checked about every 15 s; None waits forever.
            on_event: called with each event.

        Raises:
            JobFailedError: it failed or is dead; CancelledError: it was cancelled.
            UnavailableError: the time is over, and the job continues.
            AnswerError: the service's response cannot be read.
        """
        name = job if isinstance(job, str) else job.id
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        seen = 0

        def hear(event: JobEventDocument | None) -> bool:
            nonlocal seen
            if event is not None:
                seen = event.id
                if on_event is not None:
                    on_event(event)
            return _over(deadline)  # checked with every keep-alive, about every 15 s

        while True:
            pause = _LOOK_SECONDS
            try:
                yield events_after(name, seen, self._connection.host, hear)
                if (yield from _job(name)).parsed(JobStatus).state.finished:
                    break
            except AnswerError:
                raise  # a retry would not help
            except UnavailableError:
                pause = _AWAY_SECONDS
            if timeout_seconds is not None and _over(deadline):
                raise not_ended(name, timeout_seconds)
            yield Wait(pause)
        return require_success((yield from _job(name)).parsed(JobStatus))

    @operation
    def embedding(self, reference: str) -> Steps[Embedding]:
        """Return the verified embedding of TASK[@latest|@vN|@ALIAS].

        A version in the cache needs no request. An alias needs one, which is answered with 304 unless the alias has
        moved. If the service is unavailable, the last known version of the alias is returned: `stale`, with its
        `age_seconds`, and with a warning in the log.

        Raises:
            NotFoundError: the task or version does not exist.
            DamagedError: the bytes do not match.
            NotAllowedError, UnavailableError: and nothing is in the cache.
        """
        return self._fetcher.embedding(Reference.parse(reference))

    @operation
    def embeddings(self, ref: str = LATEST) -> Steps[dict[str, Embedding]]:
        """Return the embeddings that an alias points to, by task. Raises the same errors as `embedding`.

        Takes one request if nothing has changed, and at most ten, independent of the number of tasks.
        """
        return self._fetcher.embeddings(ref)

    @operation
    def fetch(self, reference: str, folder: str | Path, bundle: bool = False) -> Steps[Sequence[Path]]:
        """Download and verify the files of a version into a folder, like `onboard fetch`. Returns their paths.

        Args:
            folder: created if missing.
            bundle: add the base, for machines without it.

        Raises:
            NotFoundError: the version does not exist.
            DamagedError: the received bytes differ.
            ConflictError: the folder contains another base.
            NotAllowedError, StorageError: the folder cannot be written.
        """
        from onboard.contract.version_files import BASE, HYPERNETWORK, READOUT, made_folder, write_files, write_parts
        from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion

        target, attempts = Path(folder), self._connection.attempts
        version = (yield from version_document(reference)).read_by(EmbeddingVersion.from_json)
        further: list[Path] = []
        pins = None
        if version.content == "embedding":
            embedding = yield from self._fetcher.embedding(Reference.parse(version.reference))
            content, pins = embedding.content, embedding.pins
        else:
            content = yield from download_weights(Reference.parse(version.reference), version.artifact)
        made_folder(target)
        if bundle:
            further.append((yield from download_base(version.base_digest, target / BASE, attempts)))
        if pins is not None and version.hypernetwork_version != FIRST_HYPERNETWORK:
            further.append((yield from download_hypernetwork(pins, target / HYPERNETWORK, attempts)))
        if version.readout is not None:
            readout = yield from download_readout(Reference.parse(version.reference), version.readout)
            further += write_parts(target, {READOUT: readout})
        return (*write_files(version, content, target), *further)

    @operation
    def me(self) -> Steps[Me]:
        """Return the scopes of the token. Raises NotAllowedError if it is invalid."""
        return (yield from get("/v1/me")).parsed(Me)


class Onboard(Blocking, ServiceOperations):
    """A remote service. Threads may share an instance. Close it, or use it in a `with` statement.

    Args:
        url: of the service, for example https://onboard.example.org.
        token: bearer token; its scopes determine which requests are allowed.
        cache: folder for fetched embeddings; by default ~/.cache/onboard.
        cache_bytes: its maximum size.
        insecure: allow plain http:// to another machine, if the network is trusted.
        patience: timeout_seconds for connecting and between two reads of a response, and attempts, the maximum number
            of attempts for a repeatable request; for tests also transport and sleep.

    Raises:
        InputError: the URL or the token is invalid, or the cache has no folder.
        NotAllowedError: the URL is plain http:// to another machine, and not `insecure`.
    """

    _connection: Connection

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
        self._connection = Connection(url, token, **patience)
        self._fetcher = Fetcher(EmbeddingCache(cache or _default_cache(), self._connection.url, cache_bytes))

    def _run(self, steps: Steps[_Result]) -> _Result:
        return self._connection.run(steps)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()

    def events(self, job: str, since: int = 0) -> Iterator[JobEventDocument]:
        """Yield the events of a job after `since` until it ends. Raises UnavailableError if the connection is lost."""
        reader = EventReader(self._connection.host)
        for line in self._connection.parts(event_lines(job, since)):
            yield from filter(None, reader.events(line))


class AsyncOnboard(Awaiting, ServiceOperations):
    """The same service for coroutines: the methods of `Onboard`, awaited. Use it in an `async with` statement.

    Args:
        url, token, cache, cache_bytes, insecure, patience: as in `Onboard`; the transport is asynchronous.

    Raises:
        InputError, NotAllowedError: as in `Onboard`.
    """

    _connection: AsyncConnection

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        cache: str | Path | None = None,
        cache_bytes: int = MOST_BYTES,
        insecure: bool = False,
        **patience: Unpack[AsyncPatience],
    ) -> None:
        if not insecure:
            require_private(url)
        self._connection = AsyncConnection(url, token, **patience)
        self._fetcher = Fetcher(EmbeddingCache(cache or _default_cache(), self._connection.url, cache_bytes))

    async def _run(self, steps: Steps[_Result]) -> _Result:
        return await self._connection.run(steps)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def events(self, job: str, since: int = 0) -> AsyncIterator[JobEventDocument]:
        """Yield the events of a job after `since` until it ends. Raises UnavailableError if the connection is lost."""
        reader = EventReader(self._connection.host)
        async for line in self._connection.parts(event_lines(job, since)):
            for event in filter(None, reader.events(line)):
                yield event


def event_lines(job: str, since: int, hear: Callable[[str], object] = bool) -> Stream:
    """Return the stream of a job's events after `since`, as lines."""
    headers = {"Accept": "text/event-stream", "Last-Event-ID": str(since)}
    return Stream(f"/v1/jobs/{quote(job, safe='')}/events", headers, hear, lines=True)


def events_after(job: str, since: int, host: str, hear: Callable[[JobEventDocument | None], bool]) -> Stream:
    """Like `event_lines`; `hear` receives each event, and None for each keep-alive, and returns whether to stop."""
    reader = EventReader(host)
    return event_lines(job, since, lambda line: any(map(hear, reader.events(line))))


def _job(job: str, since: int | None = None) -> Steps[JsonObject]:
    return job_in_commands((yield from get(f"/v1/jobs/{quote(job, safe='')}", since=since)))


def _default_cache() -> Path:
    try:
        return Path.home() / ".cache" / "onboard"
    except RuntimeError as error:  # a user without a name and without HOME
        raise InputError("cache-without-home") from error


def require_success(job: JobStatus) -> JobStatus:
    """Return the job if it succeeded. Raises JobFailedError, CancelledError."""
    if job.state is JobState.SUCCEEDED:
        return job
    kind = CancelledError if job.state is JobState.CANCELLED else JobFailedError
    raise job_failure(job.id, job.state, job.document.get("error"), kind)


def not_ended(job: str, timeout_seconds: float) -> UnavailableError:
    """Return the error for a job that continues after the wait timed out."""
    return UnavailableError("job-not-ended", job=job, timeout_seconds=timeout_seconds)


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline
