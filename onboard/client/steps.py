"""Operations of a service, each written once for a blocking and an asynchronous client.

An operation is a generator. It yields steps (a request, a stream, a pause), receives the result of each, and returns
the final result. `onboard.client.connection` executes the steps with httpx.Client or httpx.AsyncClient.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """A request. Its result is a response with status 2xx or 304.

    Args:
        method, path: the path is relative to the URL of the service.
        repeatable: whether it may be sent twice; otherwise it is only repeated if it never left this machine.
        timeout_seconds: between two reads of the response, if it takes longer than others.
        attempts: how often it is sent at most; None takes the attempts of the connection.
        build: makes `params`, `json`, `data` and `files` for every attempt, because a file is read only once.
    """

    method: str
    path: str
    repeatable: bool
    headers: Mapping[str, str] = field(default_factory=dict)
    timeout_seconds: float | None = None
    attempts: int | None = None
    build: Callable[[], Mapping[str, Any]] = dict


@dataclass(frozen=True, slots=True)
class Once:
    """One attempt of a request. Its result is any response. Raises httpx.RequestError."""

    request: Request


@dataclass(frozen=True, slots=True)
class Stream:
    """A response that is read as it arrives, in one attempt.

    Args:
        hear: receives each part, and returns whether to stop.
        lines: whether parts are lines of text instead of bytes.
    """

    path: str
    headers: Mapping[str, str]
    hear: Callable[[Any], object]
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """A pause."""

    seconds: float


Step = Request | Once | Stream | Wait
Steps = Generator[Step, Any, T]


class Blocking(ABC):
    """A client with operations that return their results."""

    @abstractmethod
    def _run(self, steps: Steps[T]) -> T:
        """Execute the steps and return their result."""


class Awaiting(ABC):
    """A client with operations that are coroutines."""

    @abstractmethod
    async def _run(self, steps: Steps[T]) -> T:
        """Execute the steps and return their result."""


if TYPE_CHECKING:

    class operation(Generic[P, T]):  # noqa: N801 - a decorator
        """A method of `Blocking` and `Awaiting` clients, written as steps."""

        def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None: ...
        @overload
        def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Any]: ...
        @overload
        def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
        @overload
        def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
        def __get__(self, client: object, owner: type) -> Any: ...

else:

    def operation(steps):
        """A method of `Blocking` and `Awaiting` clients, written as steps."""

        @wraps(steps)
        def call(self, *args, **options):
            return self._run(steps(self, *args, **options))

        return call
