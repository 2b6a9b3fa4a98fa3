"""A repository on the Hugging Face hub, and translation of the hub's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from onboard.data.hub import SCHEME
from onboard.data.hub_deadline import unreachable
from onboard.errors import InputError, NotAllowedError, NotFoundError, UnavailableError

_PLACE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95})(?:@([A-Za-z0-9._-]+))?")


@dataclass(frozen=True, slots=True)
class HubPlace:
    """A repository on the hub, with an optional revision."""

    repository: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubPlace:
        """Parse `hf://OWNER/NAME[@REVISION]`. Raises InputError."""
        named = _PLACE.fullmatch(text.removeprefix(SCHEME)) if text.startswith(SCHEME) else None
        if named is None or ".." in text:
            raise InputError("hub-place-invalid", place=text)
        return cls(named[1], named[2])

    def __str__(self) -> str:
        return f"{SCHEME}{self.repository}" + (f"@{self.revision}" if self.revision else "")


@contextmanager
def translated(place: HubPlace) -> Iterator[None]:
    """Convert errors of the hub's library.

    Raises:
        NotAllowedError: nobody is signed in, the repository is gated, or it cannot be written.
        NotFoundError: the repository, revision or file does not exist, or is private.
        UnavailableError: the hub cannot be reached.
    """
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        LocalTokenNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )  # fmt: skip

    sign_in = "Sign in at the hub with a token that may write: hf auth login"
    try:
        yield
    except LocalTokenNotFoundError as error:
        raise NotAllowedError("hub-not-signed-in", place=str(place), remedy=sign_in) from error
    except GatedRepoError as error:
        raise NotAllowedError("hub-version-gated", place=str(place)) from error
    except (RepositoryNotFoundError, RevisionNotFoundError, EntryNotFoundError) as error:
        raise NotFoundError("unknown-hub-version", place=place) from error
    except HfHubHTTPError as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status in (401, 403):
            raise NotAllowedError("hub-write-forbidden", place=str(place), remedy=sign_in) from error
        raise _unavailable(place, error) from error
    except unreachable() as error:
        if isinstance(error, OSError) and error.filename is not None:  # about local files
            raise
        raise _unavailable(place, error) from error


def _unavailable(place: HubPlace, error: Exception) -> UnavailableError:
    reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
    return UnavailableError("hub-unreachable-for-version", place=str(place), reason=reason)
