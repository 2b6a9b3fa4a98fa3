"""What came of a task: embeddings that started from its own, hypernetworks that it had a part in, what these led to.

A version descends from a task if it would have other numbers had the task never been there, as far as the registry can
tell. That a task was a candidate and was not chosen leaves no trace in the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onboard.domain.init import MEAN

Link = tuple[str, int]  # a hypernetwork version: digest of its base, number


@dataclass(frozen=True, slots=True)
class Embedded:
    """How an embedding version came about.

    Args:
        parents: what it was initialised from, by name.
        hypernetworks: versions that it was learned under or is served with.
        job: that published it.
        prior: form and number of the prior that its readout was drawn towards.
    """

    task: str
    version: int
    base_digest: str
    parents: tuple[str, ...]
    hypernetworks: frozenset[int]
    job: str | None
    created_at: float
    prior: tuple[str, int] | None = None

    @property
    def reference(self) -> str:
        """`task@vN`."""
        return f"{self.task}@v{self.version}"


@dataclass(frozen=True, slots=True)
class Tuned:
    """How a hypernetwork version came about.

    Args:
        parent: version that it was tuned from; None for the first.
        job, task: the job that tuned it, and whose it was.
    """

    base_digest: str
    version: int
    parent: int | None
    job: str | None
    task: str | None
    created_at: float

    @property
    def link(self) -> Link:
        """What names it among those of all bases."""
        return self.base_digest, self.version


@dataclass(frozen=True, slots=True)
class Root:
    """The task whose descent is asked for.

    Args:
        bases: on which it was learned.
        since, until: epoch seconds between which it had versions.
        priors: versions of priors that were fitted to its lesson: base, form, number.
    """

    task: str
    bases: frozenset[str]
    since: float = math.inf
    until: float = math.inf
    priors: frozenset[tuple[str, str, int]] = frozenset()

    def was_there(self, base_digest: str, at: float) -> bool:
        """Whether it was one of the base's tasks at that moment."""
        return base_digest in self.bases and self.since <= at <= self.until


@dataclass(frozen=True, slots=True)
class Descent:
    """What descends from a task, each with the reason in a few words.

    Args:
        versions: embedding versions of other tasks, by reference.
        hypernetworks: by base and number.
    """

    versions: dict[str, str] = field(default_factory=dict)
    hypernetworks: dict[Link, str] = field(default_factory=dict)


def descent(root: Root, embedded: Iterable[Embedded], tuned: Iterable[Tuned]) -> Descent:
    """Everything that descends from a task, whatever generation; its own versions are left out."""
    descendants = Descent()
    others = [version for version in embedded if version.task != root.task]
    published = {version.job: version.reference for version in others if version.job is not None}
    line = list(tuned)
    grown = True
    while grown:
        grown = False
        for link in line:
            if link.link not in descendants.hypernetworks and (why := _tuning(link, root, published, descendants)):
                descendants.hypernetworks[link.link], grown = why, True
        for version in others:
            if version.reference not in descendants.versions and (why := _learning(version, root, descendants)):
                descendants.versions[version.reference], grown = why, True
    return descendants


def _tuning(link: Tuned, root: Root, published: dict[str, str], so_far: Descent) -> str | None:
    """Why a hypernetwork version descends from the task, if it does."""
    together = published.get(link.job) if link.job is not None else None
    if link.task == root.task:
        return "tuned on it"
    if link.parent is not None and (link.base_digest, link.parent) in so_far.hypernetworks:
        return f"tuned from hypernetwork version {link.parent}"
    if together in so_far.versions:
        return f"tuned with {together}"
    if link.parent is not None and root.was_there(link.base_digest, link.created_at):
        return "held to its answers while it was tuned"
    return None


def _learning(version: Embedded, root: Root, so_far: Descent) -> str | None:
    """Why an embedding version descends from the task, if it does."""
    for parent in version.parents:
        if parent in so_far.versions or parent.partition("@")[0] == root.task:
            return f"started from {parent}"
        if parent == MEAN and root.was_there(version.base_digest, version.created_at):
            return "started from the mean of all embeddings"
    for number in sorted(version.hypernetworks):
        if (version.base_digest, number) in so_far.hypernetworks:
            return f"stands under hypernetwork version {number}"
    if version.prior is not None and (version.base_digest, *version.prior) in root.priors:
        return f"its readout was drawn towards version {version.prior[1]} of the prior, which it taught"
    return None


def descent_document(descendants: Descent, aliases: Mapping[str, Sequence[str]]) -> dict[str, object]:
    """The descent as a JSON-compatible document.

    Args:
        aliases: names of each version that has any, by reference.
    """
    return {
        "versions": [
            {"version": reference, "why": why, "aliases": list(aliases.get(reference, ()))}
            for reference, why in sorted(descendants.versions.items())
        ],
        "hypernetworks": [
            {"base_digest": base, "version": number, "why": why}
            for (base, number), why in sorted(descendants.hypernetworks.items())
        ],
    }
