"""The start of a training: the parsed value of `--init`, and the version that it named at submission."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

INIT_VERSION: Final = "init_version"  # the option of a job that stores the version it starts from


class InitKind(StrEnum):
    """How the start of a training is found."""

    AUTO = "auto"  # chosen by the probe
    RANDOM = "random"
    MEAN = "mean"  # mean of all embeddings
    FINGERPRINT = "fingerprint"  # fingerprint of the new task's rows
    NAMED = "named"  # an anchor of the base, or a version of a task


RANDOM: Final = InitKind.RANDOM.value
MEAN: Final = InitKind.MEAN.value
FINGERPRINT: Final = InitKind.FINGERPRINT.value


@dataclass(frozen=True, slots=True)
class Init:
    """A start.

    Args:
        name: the text of `--init`.
        version: `task@vN` that the name meant at submission; None except for versions of tasks, and for jobs that were
            queued before it was stored.
    """

    kind: InitKind
    name: str
    version: str | None = None

    @classmethod
    def parse(cls, text: str, version: str | None = None) -> Init:
        """Parse the value of `--init`. Whether a name exists depends on the base and the registry."""
        kind = InitKind(text) if text in _WORDS else InitKind.NAMED
        return cls(kind, text, version if kind is InitKind.NAMED else None)

    @property
    def reference(self) -> str:
        """The reference to look up for a named start: the pinned version, or else the name."""
        return self.version or self.name

    @property
    def is_given(self) -> bool:
        """Whether the submitter named an embedding to start from."""
        return self.kind not in (InitKind.AUTO, InitKind.RANDOM)

    def __str__(self) -> str:
        return self.name


_WORDS: Final = frozenset(kind.value for kind in InitKind) - {InitKind.NAMED.value}
