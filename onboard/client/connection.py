"""HTTP connections to a service: bearer token, timeouts, retries with back-off, errors from problem documents."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, closing
from ipaddress import ip_address
from typing import Any, Final, TypedDict, TypeVar

import httpx

from onboard import __version__
from onboard.client.json_object import JsonObject
from onboard.client.problems import is_certificate_error, problem_of, unreachable
from onboard.client.steps import Once, Request, Step, Steps, Stream, Wait
from onboard.domain.untrusted_json import parse_json
from onboard.errors import InputError, NotAllowedError, UnavailableError

_Result = TypeVar("_Result")
TIMEOUT_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 600.0  # checking a dataset or loading a model may delay the response
ATTEMPTS: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 10.0
_PASSING: Final = (429, 502, 503, 504)  # statuses that may be temporary
_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Patience(TypedDict, total=False):
    """Timeouts and retries of a `Connection`, and its transport for tests."""

    timeout_seconds: float
    attempts: int
    transport: httpx.BaseTransport | None
    sleep: Callable[[float], None]


class AsyncPatience(TypedDict, total=False):
    """Timeouts and retries of an `AsyncConnection`, and its transport for tests."""

    timeout_seconds: float
    attempts: int
    transport: httpx.AsyncBaseTransport | None
    sleep: Callable[[float], Awaitable[None]]


class Way:
    """The service of a connection.

    Args:
        url: of the service, http:// or https://.
        timeout_seconds: for connecting, and between two reads of a response.
        attempts: maximum number of attempts of a repeatable request.

    Raises:
        InputError: the URL is invalid.
    """

    def __init__(self, url: str, timeout_seconds: float, attempts: int) -> None:
        self.url = require_url(url)
        self.host = httpx.URL(self.url).host
        self.attempts = attempts
        self._timeout_seconds = timeout_seconds

    def _options(self, token: str) -> dict[str, Any]:
        headers = {"User-Agent": f"onboard/{__version__}", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {_require_token(token)}"
        # No redirects, so that the token is only sent to this service.
        return {"base_url": self.url, "headers": headers, "timeout": self._timeout_seconds}

    def _arguments(self, request: Request) -> dict[str, Any]:
        """Return the arguments of one attempt."""
        timeout = httpx.Timeout(self._timeout_seconds, read=request.timeout_seconds or self._timeout_seconds)
        arguments = {"method": request.method, "url": request.path, "headers": request.headers, "timeout": timeout}
        return {**arguments, **request.build()}

    def _unreachable(self, error: httpx.RequestError) -> UnavailableError:
        return unreachable(httpx.URL(self.url), error)

    def _attempts(self, request: Request) -> Steps[httpx.Response]:
        """Send a request, with retries, until it is answered.

        Raises:
            UnavailableError: no response, or a temporary refusal, after the last attempt.
            OnboardError: of any kind, as the service reports it.
        """
        attempts = request.attempts or self.attempts
        for attempt in range(1, attempts + 1):
            last, wait = attempt == attempts, None
            try:
                response: httpx.Response = yield Once(request)
            except httpx.RequestError as error:
                if last or not _may_pass(error, request.repeatable):
                    raise self._unreachable(error) from error
            else:
                if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
                    return response
                if last or not _may_pass(response, request.repeatable):
                    raise problem_of(response)
                wait = _asked_pause(response.headers.get("retry-after", ""))
            yield Wait(wait or _pause(attempt))
        raise AssertionError("the last attempt returns or raises")


class Connection(Way):
    """Executes steps one after the other. Thread-safe.

    Args:
        url, timeout_seconds, attempts: as in `Way`.
        token: bearer token; empty sends none.
        transport: replaces the network in tests.
        sleep: waits between attempts.

    Raises:
        InputError: as in `Way`, or the token contains characters that a header cannot contain.
    """

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        attempts: int = ATTEMPTS,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(url, timeout_seconds, attempts)
        self.sleep = sleep
        self._client = httpx.Client(**self._options(token), transport=transport)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def run(self, steps: Steps[_Result]) -> _Result:
        """Execute the steps and return their result."""
        answer, failure = None, None
        try:
            while True:
                step = steps.send(answer) if failure is None else steps.throw(failure)
                answer, failure = None, None
                try:
                    answer = self._taken(step)
                except BaseException as error:  # noqa: BLE001 - the steps decide what becomes of it
                    failure = error
        except StopIteration as done:
            result: _Result = done.value
            return result

    def parts(self, stream: Stream) -> Iterator[Any]:
        """Yield the parts of a stream as they arrive.

        Raises:
            UnavailableError: no response, or it was interrupted.
            OnboardError: of any kind, as the service reports it.
        """
        try:
            with self._client.stream("GET", stream.path, headers=stream.headers) as response:
                if not response.is_success:
                    response.read()
                    raise problem_of(response)
                yield from response.iter_lines() if stream.lines else response.iter_bytes()
        except httpx.RequestError as error:
            raise self._unreachable(error) from error

    def _taken(self, step: Step) -> Any:
        if isinstance(step, Request):
            return self.run(self._attempts(step))
        if isinstance(step, Once):
            return self._client.request(**self._arguments(step.request))
        if isinstance(step, Wait):
            return self.sleep(step.seconds)
        with closing(self.parts(step)) as parts:  # type: ignore[type-var]  # a generator
            return any(step.hear(part) for part in parts)


class AsyncConnection(Way):
    """Like `Connection`, for coroutines."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        attempts: int = ATTEMPTS,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(url, timeout_seconds, attempts)
        self.sleep = sleep
        self._client = httpx.AsyncClient(**self._options(token), transport=transport)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def run(self, steps: Steps[_Result]) -> _Result:
        """Execute the steps and return their result."""
        answer, failure = None, None
        try:
            while True:
                step = steps.send(answer) if failure is None else steps.throw(failure)
                answer, failure = None, None
                try:
                    answer = await self._taken(step)
                except BaseException as error:  # noqa: BLE001 - the steps decide what becomes of it
                    failure = error
        except StopIteration as done:
            result: _Result = done.value
            return result

    async def parts(self, stream: Stream) -> AsyncIterator[Any]:
        """Yield the parts of a stream as they arrive. Raises as `Connection.parts`."""
        try:
            async with self._client.stream("GET", stream.path, headers=stream.headers) as response:
                if not response.is_success:
                    await response.aread()
                    raise problem_of(response)
                async for part in response.aiter_lines() if stream.lines else response.aiter_bytes():
                    yield part
        except httpx.RequestError as error:
            raise self._unreachable(error) from error

    async def _taken(self, step: Step) -> Any:
        if isinstance(step, Request):
            return await self.run(self._attempts(step))
        if isinstance(step, Once):
            return await self._client.request(**self._arguments(step.request))
        if isinstance(step, Wait):
            return await self.sleep(step.seconds)
        async with aclosing(self.parts(step)) as parts:  # type: ignore[type-var]  # a generator
            async for part in parts:
                if step.hear(part):
                    return True
        return False


def pause_after(attempt: int, error: UnavailableError) -> Wait:
    """Return the pause after a failed attempt: `Retry-After` if given, otherwise by back-off."""
    return Wait(_asked_pause(str(error.data.get("retry_after_seconds"))) or _pause(attempt))


def require_private(url: str) -> None:
    """Raise NotAllowedError for http:// to another host, where the token and the texts could be read on the way."""
    parsed = httpx.URL(require_url(url))
    if parsed.scheme == "http" and not _is_loopback(parsed.host):
        raise NotAllowedError("http-not-safe", url=str(parsed))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a host name
        return host == "localhost" or host.endswith(".localhost")


def require_url(url: str) -> str:
    """Return the URL without trailing slashes.

    Raises:
        InputError: it is not http:// or https:// with a host, or contains more than the service's address.
    """
    try:
        parsed = httpx.URL(url.strip())
    except httpx.InvalidURL as error:
        raise InputError("url-invalid", url=url, reason=error) from error
    if parsed.userinfo or parsed.query or parsed.fragment:  # not quoted, because it may be a secret
        raise InputError("url-with-credentials")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InputError("url-not-http", url=url)
    return str(parsed).rstrip("/")


def document_of(response: httpx.Response) -> JsonObject:
    """Return the JSON object of a response; an empty one for an empty response.

    Raises:
        UnavailableError: it is not JSON, so something other than the service answered.
    """
    place = response.request.url.host
    if response.status_code == httpx.codes.NO_CONTENT:
        return JsonObject.of({}, place)
    try:
        document = parse_json(response.content)
    except ValueError as error:
        raise UnavailableError("answer-not-json", place=place) from error
    if not isinstance(document, dict):
        raise UnavailableError("answer-not-object", place=place)
    return JsonObject.of(document, place)


def _require_token(token: str) -> str:
    stripped = token.strip()  # a file ends with a line feed
    if not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise InputError("token-characters-invalid")
    return stripped


def _may_pass(outcome: httpx.Response | httpx.RequestError, repeatable: bool) -> bool:
    """Return whether a failure may be temporary and the request may be repeated."""
    if isinstance(outcome, httpx.Response):
        if outcome.status_code == 429:
            return problem_of(outcome).retryable  # a quota is not
        return repeatable and outcome.status_code in _PASSING
    return (repeatable or isinstance(outcome, _NEVER_SENT)) and not is_certificate_error(outcome)


def _pause(attempt: int) -> float:
    """Return the back-off: doubled each time, with jitter."""
    return float(min(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), _LONGEST_PAUSE_SECONDS) * random.uniform(0.5, 1.0))


def _asked_pause(asked: str) -> float | None:
    """Return the seconds of `Retry-After`, or None. Dates are ignored, because clocks may differ."""
    return min(float(asked), _LONGEST_PAUSE_SECONDS) if asked.isdecimal() else None
