"""Decide whether the job or the worker's machine is at fault when a job cannot continue."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from onboard.domain.worker import Trouble
from onboard.errors import ConflictError, OnboardError, UnavailableError
from onboard.registry.compatibility import require_fitting

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

# for a while: another attempt, here or elsewhere, may do
_PASSING: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EIO: "the disk reports an error",
    errno.EROFS: "the disk is read-only",
    errno.EMFILE: "too many files are open",
    errno.ENFILE: "too many files are open",
    errno.ENOMEM: "the memory is full",
}
_DEVICE: Final = ("CUDA error", "cuDNN error", "CUBLAS_STATUS", "NCCL error", "HIP error")


class TroubleError(Exception):
    """The worker cannot go on like this; its job has been handed back."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def require_own_release(session: Session) -> None:
    """Raise TroubleError if a later release has changed the schema so that this worker must not claim anything."""
    try:
        require_fitting(session)
    except ConflictError as error:
        raise TroubleError(Trouble(error.message, error.remedy, stops=True)) from error


def trouble_of(error: OnboardError) -> Trouble:
    """The error that this worker reports if the job is not at fault."""
    return Trouble(error.message, error.remedy, stops=error.fault == "machine")


def broken_machine(error: Exception) -> Trouble | None:
    """The trouble behind an error that is none of ours, if no other job would do better in this process.

    A GPU that failed once fails everything after that; an installation that lacks a module may lack it for every job.
    """
    if isinstance(error, ImportError):
        return Trouble(
            f"The installation of this worker is incomplete: {error}.",
            "Install onboard again there: pip install --force-reinstall onboard",
            stops=True,
        )
    if type(error).__name__ == "AcceleratorError" or any(words in str(error) for words in _DEVICE):
        first = str(error).strip().partition("\n")[0]
        return Trouble(
            f"The device of this worker fails: {first}.", "Check nvidia-smi and dmesg on that machine.", stops=True
        )
    return None


def passing_trouble(error: Exception) -> UnavailableError | None:
    """Errors that another attempt may not meet: a full disk, too little memory."""
    reason = _PASSING.get(error.errno or 0) if isinstance(error, OSError) else None
    if isinstance(error, MemoryError):
        reason = _PASSING[errno.ENOMEM]
    if reason is None:
        return None
    return UnavailableError("worker-machine-full", reason=reason, error=error).hide(
        UnavailableError("worker-machine-fails", reason=reason)
    )
