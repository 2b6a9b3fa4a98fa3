"""What has been learned, as the client returns it: tasks, versions, and what a job has come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast, get_args

from onboard.client.document import Document
from onboard.domain.dataset import Kind
from onboard.domain.job import JobState

if TYPE_CHECKING:
    from onboard.domain.dataset import Label
    from onboard.domain.report import JobReport, Splits


@dataclass(frozen=True, slots=True)
class LearnedTask:
    """A task with its latest version.

    Args:
        labels: empty for a regression.
        version: what `latest` names; None without one.
        weak: whether that is no better than the commonest answer.
        pairs: whether it takes two texts, `text_a` and `text_b`; None where the service does not know.
        aliases: the version that each name means; only where one task was asked for.
        document: everything, as `onboard tasks show --json` prints it.
    """

    name: str
    kind: Kind
    labels: tuple[Label, ...]
    version: int | None
    weak: bool
    pairs: bool | None
    aliases: Mapping[str, int]
    document: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> LearnedTask:
        """Read a task's document. Raises AnswerError."""
        return cls(
            document.read("task", str), kind_of(document), document.labels("labels"),
            document.read_or_none("version", int), document.read("weak", bool), document.given("pairs", bool),
            document.mapped("aliases", int) if "aliases" in document else {}, document,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """A version of a task.

    Args:
        metrics: by split, `{"validation": {NAME: {"value", "low", "high", "n"}} | None, "test": …}`.
        pairs: as of a task.
        method: that made it; None where the service is of an earlier release.
        stored_bytes: of its files together; None likewise.
        unmeasured: whether no rows say how good it is.
        provisional: whether it is a readout that its job published before it had learned an embedding.
        init: what it started from: "sst2@v1", "random", "(own)" (without an embedding), …
        aliases: the names that mean it.
        created_at: ISO 8601 in UTC.
        document: everything, as `onboard versions --json` prints it.
    """

    task: str
    version: int
    labels: tuple[Label, ...]
    metrics: Splits
    weak: bool
    pairs: bool | None
    init: str
    hypernetwork_version: int
    aliases: tuple[str, ...]
    created_at: str
    method: str | None
    stored_bytes: int | None
    unmeasured: bool
    provisional: bool
    document: Mapping[str, Any] = field(repr=False)

    @property
    def reference(self) -> str:
        """The reference that always means this version: `task@vN`."""
        return f"{self.task}@v{self.version}"

    @classmethod
    def of(cls, document: Document, aliases: Mapping[str, int]) -> PublishedVersion:
        """Read a version's document.

        Args:
            aliases: of its task.

        Raises:
            AnswerError: a part is missing or wrong.
        """
        named = tuple(sorted(alias for alias, version in aliases.items() if version == document["version"]))
        return cls(
            document.read("task", str), document.read("version", int), document.labels("labels"),
            cast("Splits", document.part("metrics")), document.read("weak", bool), document.given("pairs", bool),
            document.read("parent", str), document.read("hypernetwork_version", int), named,
            document.read("created_at", str), document.given("method", str), document.given("stored_bytes", int),
            document.given("unmeasured", bool) or False, document.given("provisional", bool) or False, document,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Report:
    """What a job has come to; what is not known yet is None.

    Args:
        version: what it published.
        metrics: by split, as of a version.
        weak: whether the version is no better than the commonest answer; weak_reason says by which numbers.
        document: everything, as `onboard jobs show --json` prints it.
    """

    job: str
    task: str
    state: JobState
    version: int | None
    metrics: Splits | None
    weak: bool | None
    weak_reason: str | None
    document: JobReport = field(repr=False)

    @classmethod
    def of(cls, document: Document) -> Report:
        """Read a job's document. Raises AnswerError."""
        return cls(
            document.read("job", str), document.read("task", str), document.read("state", JobState),
            document.given("version", int), cast("Splits | None", document.given("metrics", Document)),
            document.given("weak", bool), document.given("weak_reason", str), cast("JobReport", document),
        )  # fmt: skip


def kind_of(document: Document) -> Kind:
    """Whether classes or numbers are answered. Raises AnswerError."""
    return cast("Kind", document.choice("kind", get_args(Kind)))
