"""The error tree of the package. Errors carry data, are rendered once, and name the command that mends them.

OnboardError                     exit  HTTP  retryable
├── InputError                     2    422   no     what was handed in is wrong
│   └── DatasetError               2    422   no     rows of a dataset are wrong (all problems together)
├── NotFoundError                  3    404   no     a task, version, job, base or file does not exist
├── ConflictError                  4    409   no     the present state forbids it
│   ├── PinMismatchError           4    409   no     an embedding does not belong to this backbone or hypernetwork
│   └── FencedError                4    409   no     another attempt owns the job now
├── UnavailableError               5    503   yes    database, broker, artifact store or hub cannot be reached
│   └── StorageError               5    503   yes    an artifact cannot be written (full disk, read-only folder)
├── NotAllowedError                6    403   no     the file system or a token forbids it
├── JobFailedError                 1    500   no     the job itself failed
│   ├── CancelledError             1    500   no     the job was cancelled while it ran
│   └── OutOfMemoryError           1    500   no     a GPU's memory is too small, even for one row
└── DamagedError                   1    500   no     stored bytes do not match their digest
"""

from __future__ import annotations

from typing import Any, ClassVar


class OnboardError(Exception):
    """Base of every error that Onboard raises on purpose.

    Args:
        message: one sentence that says what is wrong, naming the row, field or limit.
        remedy: what to do about it, ideally a command.
        data: machine-readable facts (row, field, limit …), JSON-compatible.
    """

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500
    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, remedy: str = "", **data: Any) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.data = data

    def to_json(self) -> dict[str, Any]:
        """The error as a JSON-compatible document: code, message, remedy and data."""
        return {"code": self.code, "message": self.message, "remedy": self.remedy, **self.data}


class InputError(OnboardError):
    """What was handed in is wrong: usage, a name, a file."""

    exit_code = 2
    http_status = 422
    code = "input"


class DatasetError(InputError):
    """Rows of a dataset are wrong. `data["problems"]` lists all of them with row, field and remedy."""

    code = "dataset"


class NotFoundError(OnboardError):
    """A task, version, job, base or file does not exist."""

    exit_code = 3
    http_status = 404
    code = "not_found"


class ConflictError(OnboardError):
    """The present state forbids it (another label set, a finished job, a name in use)."""

    exit_code = 4
    http_status = 409
    code = "conflict"


class PinMismatchError(ConflictError):
    """An embedding is pinned to another backbone or hypernetwork version than the one at hand."""

    code = "pin_mismatch"


class FencedError(ConflictError):
    """The job is owned by a later attempt (or was ended): this worker must drop its work."""

    code = "fenced"


class UnavailableError(OnboardError):
    """A service (database, broker, artifact store, hub) cannot be reached."""

    exit_code = 5
    http_status = 503
    code = "unavailable"
    retryable = True


class StorageError(UnavailableError):
    """An artifact cannot be written: full disk, read-only folder."""

    code = "storage"


class NotAllowedError(OnboardError):
    """Permissions forbid it."""

    exit_code = 6
    http_status = 403
    code = "not_allowed"


class JobFailedError(OnboardError):
    """The job itself failed."""

    code = "job_failed"


class CancelledError(JobFailedError):
    """The job was cancelled while it ran."""

    code = "cancelled"


class OutOfMemoryError(JobFailedError):
    """A GPU's memory is too small, even for one row at a time."""

    code = "out_of_memory"


class DamagedError(OnboardError):
    """Stored bytes do not match their digest."""

    code = "damaged"
