"""One HTTP connection to a service: bearer token, timeouts, retries with back-off, refusals as errors."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import IO, Any, Final, TypedDict

import httpx

from onboard import __version__
from onboard.client.document import Document
from onboard.client.problems import is_certificate_error, problem_of, unreachable
from onboard.domain.untrusted_json import parse_json
from onboard.errors import InputError, NotAllowedError, UnavailableError

TIMEOUT_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 600.0  # a dataset is checked, or a model loaded, before the answer begins
ATTEMPTS: Final = 4
_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 10.0
_PASSING: Final = (429, 502, 503, 504)  # answers that may be others a moment later
_NEVER_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Patience(TypedDict, total=False):
    """How a `Connection` waits, and for tests by which transport."""

    timeout_seconds: float
    attempts: int
    transport: httpx.BaseTransport | None
    sleep: Callable[[float], None]


class Connection:
    """Sends requests to one service; may be shared by threads.

    Args:
        url: of the service, http:// or https://.
        token: bearer token; empty sends none.
        timeout_seconds: for connecting, and between two reads of an answer.
        attempts: how often a request that may be repeated is sent at most.
        transport: another one than the network, for tests.
        sleep: waits between attempts.

    Raises:
        InputError: the URL is none of a service, or the token cannot stand in a header.
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
        self.url = require_url(url)
        self.attempts, self.sleep = attempts, sleep
        self._timeout_seconds = timeout_seconds
        headers = {"User-Agent": f"onboard/{__version__}", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {_require_token(token)}"
        # redirects are not followed: the token is for this service alone
        self._client = httpx.Client(base_url=self.url, headers=headers, timeout=timeout_seconds, transport=transport)

    def close(self) -> None:
        """Close the sockets."""
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        repeatable: bool,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float | None = None,
        attempts: int | None = None,
        build: Callable[[], Mapping[str, Any]] = dict,
    ) -> httpx.Response:
        """One answer: 2xx or 304.

        Args:
            method, path: of the request; the path is below the service's URL.
            repeatable: whether sending it twice does no harm; else it is repeated only when it never left.
            headers: more of them.
            timeout_seconds: between two reads of the answer, where it takes longer than others.
            attempts: how often it is sent at most; None: as often as this connection's others.
            build: makes `params`, `json`, `data` and `files`, anew for every attempt: a file is read only once.

        Raises:
            UnavailableError: no answer, or one that says that it may pass, after the last attempt.
            OnboardError: each of its kinds, as the service says.
        """
        timeout, attempts = self._timeout(timeout_seconds), attempts or self.attempts
        for attempt in range(1, attempts + 1):
            last, wait = attempt == attempts, None
            try:
                response = self._client.request(method, path, headers=headers, timeout=timeout, **build())
            except httpx.RequestError as error:
                if last or not _may_pass(error, repeatable):
                    raise unreachable(self._client.base_url, error) from error
            else:
                if response.is_success or response.status_code == httpx.codes.NOT_MODIFIED:
                    return response
                if last or not _may_pass(response, repeatable):
                    raise problem_of(response)
                wait = _asked_pause(response.headers.get("retry-after", ""))
            self.sleep(wait or _pause(attempt))
        raise AssertionError("the last attempt returns or raises")

    def pause(self, attempt: int, error: UnavailableError) -> None:
        """Wait before the attempt after this one, as long as the refusal asks for if it does."""
        self.sleep(_asked_pause(str(error.data.get("retry_after_seconds"))) or _pause(attempt))

    def _timeout(self, read_seconds: float | None) -> httpx.Timeout:
        return httpx.Timeout(self._timeout_seconds, read=read_seconds or self._timeout_seconds)

    @contextmanager
    def stream(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """An answer that is read as it comes; one attempt.

        Raises:
            UnavailableError: no answer, or it was cut off.
            OnboardError: each of its kinds, as the service says.
        """
        try:
            with self._client.stream("GET", path, headers=headers) as response:
                if not response.is_success:
                    response.read()
                    raise problem_of(response)
                yield response
        except httpx.RequestError as error:
            raise unreachable(self._client.base_url, error) from error

    def download(self, path: str, target: IO[bytes]) -> str:
        """Write the bytes at a path to a file that is empty; returns `sha256:…` over them. Raises as `request`."""
        for attempt in range(1, self.attempts + 1):
            try:
                return self._downloaded(path, target)
            except UnavailableError:
                if attempt == self.attempts:
                    raise
                self.sleep(_pause(attempt))
        raise AssertionError("the last attempt returns or raises")

    def _downloaded(self, path: str, target: IO[bytes]) -> str:
        target.seek(0)
        target.truncate()
        digest = hashlib.sha256()
        with self.stream(path, {"Accept": "*/*"}) as response:
            for part in response.iter_bytes():
                digest.update(part)
                target.write(part)
        return f"sha256:{digest.hexdigest()}"


def require_private(url: str) -> None:
    """Raise NotAllowedError where whoever is on the way could read the token and the texts: http:// to elsewhere."""
    parsed = httpx.URL(require_url(url))
    if parsed.scheme == "http" and not _is_loopback(parsed.host):
        raise NotAllowedError("http-not-safe", url=str(parsed))


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost" or host.endswith(".localhost")


def require_url(url: str) -> str:
    """The URL without a slash at its end.

    Raises:
        InputError: it is not http:// or https:// with a host, or says more than where the service is.
    """
    try:
        parsed = httpx.URL(url.strip())
    except httpx.InvalidURL as error:
        raise InputError("url-invalid", url=url, reason=error) from error
    if parsed.userinfo or parsed.query or parsed.fragment:  # not shown: it may be a secret
        raise InputError("url-with-credentials")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise InputError("url-not-http", url=url)
    return str(parsed).rstrip("/")


def document_of(response: httpx.Response) -> Document:
    """The JSON object that a request was answered with; an empty one for an empty answer.

    Raises:
        UnavailableError: it is none; something else than the service answered.
    """
    place = response.request.url.host
    if response.status_code == httpx.codes.NO_CONTENT:
        return Document.of({}, place)
    try:
        document = parse_json(response.content)
    except ValueError as error:
        raise UnavailableError("answer-not-json", place=place) from error
    if not isinstance(document, dict):
        raise UnavailableError("answer-not-object", place=place)
    return Document.of(document, place)


def _require_token(token: str) -> str:
    stripped = token.strip()  # a file ends with a line feed
    if not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise InputError("token-characters-invalid")
    return stripped


def _may_pass(outcome: httpx.Response | httpx.RequestError, repeatable: bool) -> bool:
    """Whether a refusal, or no answer at all, may be another one a moment later, and may be asked for."""
    if isinstance(outcome, httpx.Response):
        return outcome.status_code == 429 or (repeatable and outcome.status_code in _PASSING)
    return (repeatable or isinstance(outcome, _NEVER_SENT)) and not is_certificate_error(outcome)


def _pause(attempt: int) -> float:
    """Twice as long each time, and never the same for two clients."""
    return float(min(_FIRST_PAUSE_SECONDS * 2 ** (attempt - 1), _LONGEST_PAUSE_SECONDS) * random.uniform(0.5, 1.0))


def _asked_pause(asked: str) -> float | None:
    """What `Retry-After` asks for in seconds; its other form, a date, is not worth the clock's error."""
    return min(float(asked), _LONGEST_PAUSE_SECONDS) if asked.isdecimal() else None
