"""Check and submit datasets, each in a child process that can be killed at a deadline.

Checking a dataset of a gigabyte takes several of memory. A process rarely returns memory to the system, and the service
must stay small. A file that crashes or blocks a parser must not affect the service either.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, ParamSpec, Self, TypeVar

from onboard.api.child import (
    LOOK_SECONDS,
    AbandonedError,
    Bounds,
    ChildDeadlineError,
    ChildDiedError,
    ChildMemoryError,
    call_in_child,
)
from onboard.api.places import RequestPlaces
from onboard.data.labelled import CheckedRows, Takes, read_labelled
from onboard.domain.access import acting, current_actor
from onboard.domain.addition import Addition
from onboard.domain.counting import counted
from onboard.domain.evaluation import Evaluation
from onboard.domain.job import Job
from onboard.domain.submission import Submission
from onboard.errors import InputError, TooLargeError, UnavailableError
from onboard.jobs import submission as submissions
from onboard.jobs.add import Added
from onboard.jobs.pace import Pace
from onboard.jobs.submission import Outside
from onboard.settings import Settings

SMALL_BYTES: Final = 4 << 20  # smaller content is checked without waiting
SMALL_CHILD_BYTES: Final = 1 << 30  # memory limit for small content
CHILD_BYTES: Final = 4 << 30  # memory limit otherwise: a gigabyte of plain rows takes 2.4 times as much
CHECK_SECONDS: Final = 300.0  # time limit of a check; a gigabyte of plain rows takes a third of it
_MOST_AT_ONCE: Final = 4  # checks that run or wait; further ones are refused for now
_RETRY_SECONDS: Final = 10

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


class Intake:
    """Accepts submissions, at most four at a time. On exit, the context manager ends running children.

    Args:
        folder: folder for downloads; None is the system's temporary folder.
    """

    def __init__(self, settings: Settings, folder: Path | None = None) -> None:
        self._settings, self._folder = settings, folder
        self._places = RequestPlaces(
            _MOST_AT_ONCE, "Too many datasets are being checked.", retry_seconds=_RETRY_SECONDS
        )
        self._one_child = threading.Lock()
        self._ending = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End the children within a second and accept no further checks."""
        self._ending.set()

    def check(
        self, submission: Submission, content_bytes: int, left: Callable[[], bool], pace: Pace | None = None
    ) -> dict[str, Any]:
        """See `onboard.jobs.submission.check`.

        Args:
            content_bytes: size of the files after decompression.
            left: whether the client has disconnected; called twice a second.

        Raises:
            UnavailableError: too many checks are running, or the service is shutting down.
            InputError: the client has disconnected, or the child died.
            TooLargeError: the child exceeded its memory or time limit.
        """
        with self._outside() as outside:
            return self._done(
                content_bytes, left, submissions.check, submission, self._settings.base, outside=outside, pace=pace
            )

    def submit(
        self, submission: Submission, owner: str, content_bytes: int, left: Callable[[], bool]
    ) -> tuple[Job, str | None]:
        """See `onboard.jobs.submit.submit`; otherwise like `check`."""
        with self._outside() as outside:
            return self._done(content_bytes, left, _submit, self._settings, submission, owner, current_actor(), outside)

    def add(self, task: str, asked: Addition, owner: str, content_bytes: int, left: Callable[[], bool]) -> Added:
        """See `onboard.jobs.add.add`; otherwise like `check`."""
        return self._done(content_bytes, left, _add, self._settings, task, asked, owner, current_actor())

    def labelled(self, asked: Evaluation, takes: Takes, content_bytes: int, left: Callable[[], bool]) -> CheckedRows:
        """See `onboard.data.labelled.read_labelled`; otherwise like `check`."""
        return self._done(content_bytes, left, read_labelled, asked, takes, hide_folders=True)

    @contextmanager
    def _outside(self) -> Iterator[Outside]:
        """Delete the folder here, not in the child, which may be killed."""
        with TemporaryDirectory(prefix="hub-", dir=self._folder) as folder:
            yield Outside(self._settings.hub_terms, Path(folder))

    def _done(
        self,
        content_bytes: int,
        left: Callable[[], bool],
        do: Callable[_Given, _Result],
        *args: _Given.args,
        **kwargs: _Given.kwargs,
    ) -> _Result:
        small = content_bytes <= SMALL_BYTES
        bounds = Bounds(SMALL_CHILD_BYTES if small else CHILD_BYTES, CHECK_SECONDS)
        with self._places.place():
            try:
                with nullcontext() if small else self._turn(left):
                    return call_in_child(lambda: self._ending.is_set() or left(), bounds, do, *args, **kwargs)
            except ChildDiedError as error:
                raise InputError("check-died") from error
            except ChildMemoryError as error:
                raise TooLargeError(
                    "check-needs-memory", limit=bounds.most_bytes, mebibytes=bounds.most_bytes >> 20
                ) from error
            except ChildDeadlineError as error:
                raise TooLargeError(
                    "check-needs-time",
                    limit_seconds=bounds.most_seconds,
                    most_seconds=counted(round(bounds.most_seconds), "second"),
                ) from error
            except AbandonedError as error:
                raise self._abandoned() from error

    def _abandoned(self) -> InputError | UnavailableError:
        if self._ending.is_set():
            return UnavailableError("service-ending", retry_after_seconds=_RETRY_SECONDS)
        return InputError("client-went-away")

    @contextmanager
    def _turn(self, left: Callable[[], bool]) -> Iterator[None]:
        """Wait until no other large dataset is being checked. Raises AbandonedError."""
        while not self._one_child.acquire(timeout=LOOK_SECONDS):
            if self._ending.is_set() or left():
                raise AbandonedError
        try:
            yield
        finally:
            self._one_child.release()


def _submit(
    settings: Settings, submission: Submission, owner: str, actor: str | None, outside: Outside
) -> tuple[Job, str | None]:
    """Run in the child, with its own connections."""
    from onboard.jobs.submit import submit
    from onboard.jobs.waking import doorbell
    from onboard.registry.services import open_services

    with closing(open_services(settings)) as services, acting(actor) if actor else nullcontext():
        request = submissions.prepare(submission, settings.base, owner=owner, outside=outside)
        return submit(services, doorbell(services, outside=True), request)


def _add(settings: Settings, task: str, asked: Addition, owner: str, actor: str | None) -> Added:
    """Run in the child, with its own connections."""
    from onboard.jobs.add import add
    from onboard.jobs.waking import doorbell
    from onboard.registry.services import open_services

    with closing(open_services(settings)) as services, acting(actor) if actor else nullcontext():
        return add(services, doorbell(services, outside=True), task, asked, owner=owner, hide_folders=True)
