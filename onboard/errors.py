"""The error tree of the package. Errors carry data, are rendered once, and name the command that mends them.

OnboardError                     exit  HTTP  retryable
├── InputError                     2    422   no     what was handed in is wrong
│   ├── DatasetError               2    422   no     rows of a dataset are wrong (all problems together)
│   ├── MethodNotAllowedError      2    405   no     a path does not take the method of a request
│   ├── HostError                  2    421   no     a request was sent to a name that is not ours
│   ├── TooLargeError              2    413   no     a request or an upload has more bytes, rows or letters than it may
│   │   └── HeadTooLargeError      2    431   no     address and headers of a request have more bytes than they may
│   └── PreconditionRequiredError  2    428   no     a change that does not say what it changes (If-Match is missing)
├── NotFoundError                  3    404   no     a task, version, job, base or file does not exist
│   └── BaseMissingError           3    404   no     a base is not on this machine (another worker may have it)
├── ConflictError                  4    409   no     the present state forbids it
│   ├── PinMismatchError           4    409   no     an embedding does not belong to this backbone or hypernetwork
│   │   └── OtherBaseError         4    409   no     a worker has another base than the job pins (another may have it)
│   ├── NotBetterError             4    409   no     a version is worse than the present one, or not better
│   ├── PreconditionFailedError    4    412   no     it was changed since it was looked at (If-Match)
│   └── FencedError                4    409   no     another attempt owns the job now
├── UnavailableError               5    503   yes    database, broker, artifact store or hub cannot be reached
│   ├── SlotTakenError             5    503   yes    what only one job may have at a time is another one's now
│   ├── StorageError               5    503   yes    an artifact cannot be written (full disk, read-only folder)
│   ├── AnswerError                5    503   no     a service answered what its client cannot read
│   ├── RateLimitError             5    429   yes    too many requests at once
│   └── DeadlineError              5    504   yes    a prediction was not made in the time that was given
├── NotAllowedError                6    403   no     the file system or a token forbids it
│   ├── BaseForbiddenError         6    403   no     the files of a base may not be read (the machine is at fault)
│   ├── SignInError                6    401   no     no token, or one that is unknown, expired or revoked
│   └── ScopeError                 6    403   no     the token lacks a scope
├── JobFailedError                 1    500   no     the job itself failed
│   ├── CancelledError             1    500   no     the job was cancelled while it ran
│   └── OutOfMemoryError           1    500   no     a GPU's memory is too small, even for one row
├── InternalError                  1    500   no     a fault of the service
└── DamagedError                   1    500   no     stored bytes do not match their digest
    └── BaseDamagedError           1    500   no     the files of a base are broken (the machine is at fault)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

from onboard.messages import MESSAGES

__all__ = [
    "AnswerError",
    "BaseDamagedError",
    "BaseForbiddenError",
    "BaseMissingError",
    "CancelledError",
    "ConflictError",
    "DamagedError",
    "DatasetError",
    "DeadlineError",
    "DeadlockError",
    "FencedError",
    "HeadTooLargeError",
    "HostError",
    "InputError",
    "InternalError",
    "JobFailedError",
    "MethodNotAllowedError",
    "NotAllowedError",
    "NotBetterError",
    "NotFoundError",
    "OnboardError",
    "OtherBaseError",
    "OutOfMemoryError",
    "PinMismatchError",
    "PreconditionFailedError",
    "PreconditionRequiredError",
    "RateLimitError",
    "ScopeError",
    "SignInError",
    "SlotTakenError",
    "StorageError",
    "TooLargeError",
    "UnavailableError",
]


_TYPE_URI: Final = "urn:onboard:error:"


def type_uri(type_: str) -> str:
    """The type of an error as the URI that problem documents (RFC 9457) name it by."""
    return f"{_TYPE_URI}{type_}"


def type_in(uri: object) -> str:
    """The type that such a URI names; empty where it names none, as in problems of other services."""
    return uri.removeprefix(_TYPE_URI) if isinstance(uri, str) and uri.startswith(_TYPE_URI) else ""


Fault = Literal["job", "place", "machine"]
"""Whose fault it is that a job cannot go on: its own; that it runs on this worker, which lacks what another may have;
or the worker's machine, where no other job would do better."""


class OnboardError(Exception):
    """Base of every error that Onboard raises on purpose.

    Its class says how it is handled (exit code, HTTP status, `code`), its `type` what exactly is wrong.

    Args:
        what: a type of `onboard.messages.MESSAGES`, such as `unknown-task`, which holds the message and its remedy;
            or, in programs of others, a sentence. Then the type is that of the class, such as `not-found`.
        remedy: what to do about it, where the message leaves that to the place that raises it.
        data: the facts (row, field, limit …), with which the message is filled in. They are kept as JSON has them.
    """

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    fault: ClassVar[Fault] = "job"

    def __init_subclass__(
        cls, *, code: str = "", exit_code: int = 0, http_status: int = 0, retryable: bool = False, fault: Fault = "job"
    ) -> None:
        """What a kind says differs from the kind above it; the rest is as there."""
        super().__init_subclass__()
        cls.code = code or cls.code
        cls.exit_code = exit_code or cls.exit_code
        cls.http_status = http_status or cls.http_status
        cls.retryable = retryable or cls.retryable
        cls.fault = fault if fault != "job" else cls.fault

    def __init__(self, what: str, /, remedy: str = "", **data: Any) -> None:
        known = MESSAGES.get(what)
        self.type = what if known else self.code.replace("_", "-")
        self.message, self.remedy = known.render({**data, "remedy": remedy}) if known else (what, remedy)
        super().__init__(self.message)
        self.data = {name: _plain(value) for name, value in data.items()}
        self._outside: OnboardError | None = None

    @classmethod
    def reported(cls, type_: str, message: str, remedy: str, data: Mapping[str, Any]) -> Self:
        """The error that a service or another process raised and reported."""
        error = cls(message, remedy)
        error.type = type_ or error.type
        error.message = message  # also where it is one word, which could be a type
        error.data = dict(data)
        return error

    @classmethod
    def like(cls, error: OnboardError, remedy: str = "", **data: Any) -> Self:
        """The same fault as an error of this class: type, message and facts stay, the remedy may be another."""
        return cls.reported(error.type, error.message, remedy or error.remedy, {**error.data, **data})

    @property
    def outside(self) -> OnboardError:
        """What somebody elsewhere is told of it; the rest is for whoever runs the service."""
        return self._outside or self

    def hide(self, outside: OnboardError) -> Self:
        """Keep the message from those elsewhere, who are told `outside` instead."""
        self._outside = outside
        return self

    def to_json(self) -> dict[str, Any]:
        """The error as a JSON-compatible document: code, type, message, remedy and data."""
        return {"code": self.code, "type": self.type, "message": self.message, "remedy": self.remedy, **self.data}


def _plain(value: Any) -> Any:
    """A fact as JSON has it; what JSON lacks becomes a text."""
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, str | int | float | list | dict) else str(value)


class InternalError(OnboardError, code="internal"):
    """A fault of the service. Its log says more."""


class InputError(OnboardError, code="input", exit_code=2, http_status=422):
    """What was handed in is wrong: usage, a name, a file."""


class DatasetError(InputError, code="dataset"):
    """Rows of a dataset are wrong. `data["problems"]` lists all of them with row, field and remedy."""


class PreconditionRequiredError(InputError, code="precondition_required", http_status=428):
    """A change over HTTP that does not say, by If-Match, which state it changes."""


class HostError(InputError, code="host", http_status=421):
    """A request was sent to a name that is not ours."""


class MethodNotAllowedError(InputError, code="method_not_allowed", http_status=405):
    """A request to a path that does not take its method."""


class TooLargeError(InputError, code="too_large", http_status=413):
    """A request or an upload has more bytes, rows or letters than it may. `data["limit"]` says how many."""


class HeadTooLargeError(TooLargeError, http_status=431):
    """The address and the headers of a request have more bytes than they may."""


class NotFoundError(OnboardError, code="not_found", exit_code=3, http_status=404):
    """A task, version, job, base or file does not exist."""


class BaseMissingError(NotFoundError, fault="place"):
    """A base is not on this machine."""


class ConflictError(OnboardError, code="conflict", exit_code=4, http_status=409):
    """The present state forbids it (another label set, a finished job, a name in use)."""


class PinMismatchError(ConflictError, code="pin_mismatch"):
    """An embedding is pinned to another backbone or hypernetwork version than the one at hand."""


class OtherBaseError(PinMismatchError, fault="place"):
    """The base of that name on this machine is not the one that a job was submitted for."""


class NotBetterError(ConflictError, code="not_better"):
    """A version is significantly worse than the one that it should replace, or not better.

    `data["comparison"]` says how; it is None where there is no other version, only the commonest answer.
    """


class PreconditionFailedError(ConflictError, code="precondition_failed", http_status=412):
    """It was changed since it was looked at: another one came first."""


class FencedError(ConflictError, code="fenced"):
    """The job is owned by a later attempt (or was ended): this worker must drop its work."""


class UnavailableError(OnboardError, code="unavailable", exit_code=5, http_status=503, retryable=True):
    """A service (database, broker, artifact store, hub) cannot be reached."""


class DeadlockError(UnavailableError, code="deadlock"):
    """Two transactions waited for each other, and the database undid this one. The same again will do."""


class SlotTakenError(UnavailableError, code="slot_taken"):
    """What only one job may have at a time is another one's now. `data["holder"]` is that job."""


class StorageError(UnavailableError, code="storage"):
    """An artifact cannot be written: full disk, read-only folder."""


class AnswerError(UnavailableError, code="answer"):
    """A service answered what its client cannot read: asked again it answers the same.

    `data["missing"]` or `data["wrong"]` is the key.
    """

    retryable = False


class RateLimitError(UnavailableError, code="rate_limit", http_status=429):
    """Too many requests at once. `data["retry_after_seconds"]` says when the next one is answered."""


class DeadlineError(UnavailableError, code="deadline", http_status=504):
    """A prediction was not made in the time that its client gave it."""


class NotAllowedError(OnboardError, code="not_allowed", exit_code=6, http_status=403):
    """Permissions forbid it."""


class BaseForbiddenError(NotAllowedError, fault="machine"):
    """The files of a base may not be read by whoever runs this process."""


class SignInError(NotAllowedError, code="sign_in", http_status=401):
    """Nobody is signed in: no token, or one that is unknown, expired or revoked."""


class ScopeError(NotAllowedError, code="scope"):
    """The token is good, but lacks a scope."""


class JobFailedError(OnboardError, code="job_failed"):
    """The job itself failed."""


class CancelledError(JobFailedError, code="cancelled"):
    """The job was cancelled while it ran."""


class OutOfMemoryError(JobFailedError, code="out_of_memory"):
    """A GPU's memory is too small, even for one row at a time."""


class DamagedError(OnboardError, code="damaged"):
    """Stored bytes are gone, or do not match their digest."""


class BaseDamagedError(DamagedError, fault="machine"):
    """The files of a base on this machine are broken."""
