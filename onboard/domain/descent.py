"""The descendants of a task: embeddings and hypernetworks that it influenced, directly or indirectly.

A version descends from a task if it would have other numbers without the task, as far as the registry shows. A task
that was only a candidate and was not chosen leaves no trace in the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from onboard.domain.init import MEAN

Link = tuple[str, int]  # a hypernetwork version: digest of its base, number


@dataclass(frozen=True, slots=True)
class Embedded:
    """The origin of an embedding version.

    Args:
        parents: names of what it was initialized from.
        hypernetworks: versions that it was learned under or is served with.
        prior: form and number of its readout's prior.
        prior_without: tasks that this prior was fitted without.
    """

    task: str
    version: int
    base_digest: str
    parents: tuple[str, ...]
    hypernetworks: frozenset[int]
    job: str | None
    created_at: float
    prior: tuple[str, int] | None = None
    prior_without: frozenset[str] = frozenset()

    @property
    def reference(self) -> str:
        """`task@vN`."""
        return f"{self.task}@v{self.version}"


@dataclass(frozen=True, slots=True)
class TunedVersion:
    """The origin of a hypernetwork version.

    Args:
        parent: version that it was tuned from; None for the first.
    """

    base_digest: str
    version: int
    parent: int | None
    job: str | None
    task: str | None
    created_at: float

    @property
    def link(self) -> Link:
        """Its identity among those of all bases."""
        return self.base_digest, self.version


@dataclass(frozen=True, slots=True)
class Root:
    """The task at the root of the descent.

    Args:
        bases: bases that it had versions or jobs on.
        embedded: epoch seconds from which it had an embedding, by base.
        until: epoch seconds at which it was deleted.
        priors: versions of priors that were fitted to its lesson: base, form, number.
    """

    task: str
    bases: frozenset[str]
    embedded: Mapping[str, float] = field(default_factory=dict)
    until: float = math.inf
    priors: frozenset[tuple[str, str, int]] = frozenset()

    def had_embedding(self, base_digest: str, at: float) -> bool:
        """Return whether it had an embedding on the base at that time."""
        return self.embedded.get(base_digest, math.inf) <= at <= self.until


@dataclass(frozen=True, slots=True)
class Descent:
    """The descendants of a task, each with a short reason.

    Args:
        versions: embedding versions of other tasks, by reference.
        hypernetworks: by base and number.
    """

    versions: dict[str, str] = field(default_factory=dict)
    hypernetworks: dict[Link, str] = field(default_factory=dict)


def descent(root: Root, embedded: Iterable[Embedded], tuned: Iterable[TunedVersion]) -> Descent:
    """Find all descendants of a task, of any generation, without its own versions."""
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


def _tuning(link: TunedVersion, root: Root, published: dict[str, str], so_far: Descent) -> str | None:
    """Return why a hypernetwork version descends from the task, if it does."""
    together = published.get(link.job) if link.job is not None else None
    if link.task == root.task:
        return "tuned on it"
    if link.parent is not None and (link.base_digest, link.parent) in so_far.hypernetworks:
        return f"tuned from hypernetwork version {link.parent}"
    if together in so_far.versions:
        return f"tuned with {together}"
    if link.parent is not None and root.had_embedding(link.base_digest, link.created_at):
        return "protected its answers while it was tuned"
    return None


def _learning(version: Embedded, root: Root, so_far: Descent) -> str | None:
    """Return why an embedding version descends from the task, if it does."""
    for parent in version.parents:
        if parent in so_far.versions or parent.partition("@")[0] == root.task:
            return f"started from {parent}"
        if parent == MEAN and root.had_embedding(version.base_digest, version.created_at):
            return "started from the mean of all embeddings"
    for number in sorted(version.hypernetworks):
        if (version.base_digest, number) in so_far.hypernetworks:
            return f"was learned under hypernetwork version {number}"
    if version.prior is None or root.task in version.prior_without:
        return None
    if (version.base_digest, *version.prior) in root.priors:
        return f"its readout was drawn towards version {version.prior[1]} of the prior, which it taught"
    return None
