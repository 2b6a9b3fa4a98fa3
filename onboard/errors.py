"""The errors of the package. Each has a type, data, a message and a remedy.

OnboardError                     exit  HTTP  retryable
├── InputError                     2    422   no     the input is invalid
│   ├── DatasetError               2    422   no     rows of a dataset are invalid (the error lists all problems)
│   ├── MethodNotAllowedError      2    405   no     a path does not support the request's method
│   ├── HostError                  2    421   no     a request was sent to an unknown host name
│   ├── TooLargeError              2    413   no     a request or an upload exceeds a limit of bytes or rows
│   │   └── HeadTooLargeError      2    431   no     the URL and headers of a request are too long
│   └── PreconditionRequiredError  2    428   no     a change without If-Match
├── NotFoundError                  3    404   no     a task, version, job, base or file does not exist
│   └── BaseMissingError           3    404   no     a base is not on this machine (another worker may have it)
├── ConflictError                  4    409   no     not possible in the current state
│   ├── PinMismatchError           4    409   no     an embedding is pinned to another backbone or hypernetwork
│   │   └── OtherBaseError         4    409   no     a worker has another base than the one of the job
│   ├── NotBetterError             4    409   no     a version is worse than the current one, or not better
│   ├── PreconditionFailedError    4    412   no     it has changed since it was read (If-Match)
│   ├── QuotaError                 4    429   no     an owner has reached its limit of jobs or bytes
│   └── FencedError                4    409   no     another attempt owns the job now
├── UnavailableError               5    503   yes    database, broker, artifact store or hub cannot be reached
│   ├── SlotTakenError             5    503   yes    another job holds what only one job may hold
│   ├── StorageError               5    503   yes    an artifact cannot be written (full disk, read-only folder)
│   ├── AnswerError                5    503   no     the client cannot read the service's response
│   ├── RateLimitError             5    429   yes    too many requests at once
│   └── DeadlineError              5    504   yes    a prediction exceeded its time limit
├── NotAllowedError                6    403   no     not allowed by the file system or a token
│   ├── BaseForbiddenError         6    403   no     the files of a base may not be read on this machine
│   ├── SignInError                6    401   no     no token, or one that is unknown, expired or revoked
│   └── ScopeError                 6    403   no     the token lacks a scope
├── JobFailedError                 1    500   no     the job itself failed
│   ├── CancelledError             1    500   no     the job was cancelled while it ran
│   └── OutOfMemoryError           1    500   no     a GPU's memory is too small, even for one row
├── InternalError                  1    500   no     a bug in the service
└── DamagedError                   1    500   no     stored bytes do not match their digest
    └── BaseDamagedError           1    500   no     the files of a base are damaged on this machine
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

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
    "QuotaError",
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
    """Return an error's type as the URI that identifies it in problem documents (RFC 9457)."""
    return f"{_TYPE_URI}{type_}"


def type_in(uri: object) -> str:
    """Return the error's type in such a URI; empty if it is of another service."""
    return uri.removeprefix(_TYPE_URI) if isinstance(uri, str) and uri.startswith(_TYPE_URI) else ""


Fault = Literal["job", "place", "machine"]
"""The cause if a job cannot go on: the job itself; its place, a worker that lacks what another worker may have; or the
worker's machine, on which every other job would fail, too."""


class OnboardError(Exception):
    """Base class of all errors that Onboard raises.

    The class determines the handling (exit code, HTTP status, `code`); `type` identifies the exact error.

    Args:
        what: a type in `onboard.messages.MESSAGES`, such as `unknown-task`; its entry has the message and the remedy.
            Other programs may pass a sentence instead. The type is then that of the class, such as `not-found`.
        remedy: what to do about it, if the entry does not say so itself.
        data: facts (row, field, limit …) that are filled into the message. They are kept as JSON-compatible values.
    """

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False
    fault: ClassVar[Fault] = "job"

    def __init_subclass__(
        cls, *, code: str = "", exit_code: int = 0, http_status: int = 0, retryable: bool = False, fault: Fault = "job"
    ) -> None:
        """Set the class attributes that differ from those of the parent class; the others are inherited."""
        super().__init_subclass__()
        cls.code = code or cls.code
        cls.exit_code = exit_code or cls.exit_code
        cls.http_status = http_status or cls.http_status
        cls.retryable = retryable or cls.retryable
        cls.fault = fault if fault != "job" else cls.fault

    def __init__(self, what: str, /, remedy: str = "", **data: Any) -> None:
        # imported with the first error: clients without an error do not need the table
        from onboard.messages import MESSAGES

        entry = MESSAGES.get(what)
        self.type = what if entry else self.code.replace("_", "-")
        self.message, self.remedy = entry.render({**data, "remedy": remedy}) if entry else (what, remedy)
        super().__init__(self.message)
        self.data = {name: _plain(value) for name, value in data.items()}
        self._outside: OnboardError | None = None

    @classmethod
    def reported(cls, type_: str, message: str, remedy: str, data: Mapping[str, Any]) -> Self:
        """The error that a service or another process raised and reported."""
        error = cls(message, remedy)
        error.type = type_ or error.type
        error.message = message  # also if it is one word, which could be a type
        error.data = dict(data)
        return error

    @classmethod
    def like(cls, error: OnboardError, remedy: str = "", **data: Any) -> Self:
        """Return this error as an instance of this class. Type, message and data stay; the remedy may differ."""
        return cls.reported(error.type, error.message, remedy or error.remedy, {**error.data, **data})

    @property
    def outside(self) -> OnboardError:
        """The message for remote clients; the original is for the operator of the service."""
        return self._outside or self

    def hide(self, outside: OnboardError) -> Self:
        """Show `outside` to remote clients instead of the message."""
        self._outside = outside
        return self

    def to_json(self) -> dict[str, Any]:
        """The error as a JSON-compatible document: code, type, message, remedy and data."""
        return {"code": self.code, "type": self.type, "message": self.message, "remedy": self.remedy, **self.data}


def _plain(value: Any) -> Any:
    """Return a fact as a JSON-compatible value. Values of other types become text."""
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, str | int | float | list | dict) else str(value)


class InternalError(OnboardError, code="internal"):
    """A bug in the service. See its log."""


class InputError(OnboardError, code="input", exit_code=2, http_status=422):
    """Invalid input: an option, a name, a file."""


class DatasetError(InputError, code="dataset"):
    """Rows of a dataset are invalid. `data["problems"]` lists all of them with row, field and remedy."""


class PreconditionRequiredError(InputError, code="precondition_required", http_status=428):
    """A change over HTTP without If-Match."""


class HostError(InputError, code="host", http_status=421):
    """A request was sent to an unknown host name."""


class MethodNotAllowedError(InputError, code="method_not_allowed", http_status=405):
    """The path does not support the request's method."""


class TooLargeError(InputError, code="too_large", http_status=413):
    """A request or an upload exceeds a limit of bytes, rows or characters, `data["limit"]`."""


class HeadTooLargeError(TooLargeError, http_status=431):
    """The URL and headers of a request are too long."""


class NotFoundError(OnboardError, code="not_found", exit_code=3, http_status=404):
    """A task, version, job, base or file does not exist."""


class BaseMissingError(NotFoundError, fault="place"):
    """A base is not on this machine."""


class ConflictError(OnboardError, code="conflict", exit_code=4, http_status=409):
    """Not possible in the current state (different labels, a finished job, a name in use)."""


class PinMismatchError(ConflictError, code="pin_mismatch"):
    """An embedding is pinned to another backbone or hypernetwork than the available one."""


class OtherBaseError(PinMismatchError, fault="place"):
    """The base with this name on this machine differs from the one that the job was submitted for."""


class NotBetterError(ConflictError, code="not_better"):
    """The version is significantly worse than the one it would replace, or not better.

    `data["comparison"]` says how; it is None where there is no other version, only the commonest answer.
    """


class PreconditionFailedError(ConflictError, code="precondition_failed", http_status=412):
    """The resource has changed since it was read."""


class QuotaError(ConflictError, code="quota", http_status=429):
    """The owner has as many open jobs or stored bytes as it may have. `data` says how many are left.

    Repeating the request does not help before a job ends, something is deleted, or the quota is raised.
    """


class FencedError(ConflictError, code="fenced"):
    """A later attempt owns the job, or the job has ended. This worker must discard its work."""


class UnavailableError(OnboardError, code="unavailable", exit_code=5, http_status=503, retryable=True):
    """A service (database, broker, artifact store, hub) cannot be reached."""


class DeadlockError(UnavailableError, code="deadlock"):
    """The database cancelled one of two transactions that waited for each other. Repeat the request."""


class SlotTakenError(UnavailableError, code="slot_taken"):
    """Another job holds something that only one job may hold at a time. `data["holder"]` is that job."""


class StorageError(UnavailableError, code="storage"):
    """An artifact cannot be written, for example because the disk is full or the folder is read-only."""


class AnswerError(UnavailableError, code="answer"):
    """The client cannot read the service's response. Repeating the request does not help.

    `data["missing"]` or `data["wrong"]` is the key.
    """

    retryable = False


class RateLimitError(UnavailableError, code="rate_limit", http_status=429):
    """Too many requests. Wait `data["retry_after_seconds"]`."""


class DeadlineError(UnavailableError, code="deadline", http_status=504):
    """A prediction exceeded the client's time limit."""


class NotAllowedError(OnboardError, code="not_allowed", exit_code=6, http_status=403):
    """Not allowed by permissions."""


class BaseForbiddenError(NotAllowedError, fault="machine"):
    """This process is not allowed to read the files of a base."""


class SignInError(NotAllowedError, code="sign_in", http_status=401):
    """The token is missing, unknown, expired or revoked."""


class ScopeError(NotAllowedError, code="scope"):
    """The token is valid but lacks a scope."""


class JobFailedError(OnboardError, code="job_failed"):
    """The job failed."""


class CancelledError(JobFailedError, code="cancelled"):
    """The job was cancelled while it was running."""


class OutOfMemoryError(JobFailedError, code="out_of_memory"):
    """The memory of the GPU is too small, even for one row at a time."""


class DamagedError(OnboardError, code="damaged"):
    """Stored bytes are missing, or do not match their digest."""


class BaseDamagedError(DamagedError, fault="machine"):
    """The files of a base on this machine are damaged."""
