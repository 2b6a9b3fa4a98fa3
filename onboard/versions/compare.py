"""Use case: two versions of a task side by side, on held-out rows that neither of them was trained on.

One comparison at a time is made in a process, of bounded datasets and on a bounded number of rows: it loads a model,
and whoever may read may ask for it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from onboard.data.hashes import unseen
from onboard.domain.dataset import Example, Label, class_indices
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion, SnapshotRecord, label_keys, words_in_order
from onboard.errors import NotFoundError, PinMismatchError, UnavailableError
from onboard.hypernetworks.files import Manifests, require_base
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository

if TYPE_CHECKING:
    import numpy as np

    from onboard.bases import Base
    from onboard.evaluate.intervals import Metric
    from onboard.evaluate.paired import Comparison
    from onboard.model.engine import Engine

MOST_ROWS: Final = 2000  # that both answer; of more, those with the smallest hashes: always the same draw
MOST_ROWS_READ: Final = 250_000  # of a version's dataset, which has to be read for its held-out rows
MOST_BYTES_READ: Final = 64 * 2**20  # of the same, as it is stored
_RETRY_SECONDS: Final = 5
TURN: Final = threading.Lock()  # of the one who compares in this process


@dataclass(frozen=True)
class Flip:
    """Rows of one label whose answer changed: what the earlier and the later version say, and how many rows."""

    label: Label
    earlier: Label
    later: Label
    count: int

    def to_json(self) -> dict[str, Any]:
        """label, a, b, count."""
        return {"label": self.label, "a": self.earlier, "b": self.later, "count": self.count}


@dataclass(frozen=True)
class Measured:
    """What was found on the shared rows.

    Args:
        comparison: the verdict about the later version, with its paired interval.
        metrics: of the earlier and of the later version, on these rows.
        confusion: matrices (true × predicted), in the order of `labels`; None for a regression.
        flips: changed answers, the most frequent first; empty for a regression.
        left_out: how many more shared rows there are.
    """

    comparison: Comparison
    metrics: tuple[dict[str, Metric], dict[str, Metric]]
    labels: tuple[Label, ...] = ()
    confusion: tuple[list[list[int]], list[list[int]]] | None = None
    flips: tuple[Flip, ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class SideBySide:
    """Two versions of one task.

    Args:
        earlier, later: what is compared; the verdict is about the later one.
        measured: on shared held-out rows; None where they cannot be compared.
        reason: the verdict, or why there is none, in one sentence.
    """

    earlier: EmbeddingVersion
    later: EmbeddingVersion
    measured: Measured | None
    reason: str

    @property
    def better(self) -> bool:
        """Whether the later version is significantly better. Without evidence it is not."""
        return self.measured is not None and self.measured.comparison.verdict == "better"

    @property
    def worse(self) -> bool:
        """Whether the later version is significantly worse."""
        return self.measured is not None and self.measured.comparison.verdict == "worse"

    def to_json(self) -> dict[str, Any]:
        """The document of `compare --json` and of GET /v1/tasks/{task}/compare."""
        measured = self.measured
        return {
            "task": self.later.task,
            "a": _side(self.earlier, measured, 0),
            "b": _side(self.later, measured, 1),
            "better": self.better,
            "reason": self.reason,
            "comparison": measured.comparison.to_json() if measured else None,
            "labels": list(measured.labels) if measured else [],
            "flipped": [flip.to_json() for flip in measured.flips] if measured else [],
            "rows_left_out": measured.left_out if measured else 0,
        }


def _side(version: EmbeddingVersion, measured: Measured | None, side: int) -> dict[str, Any]:
    shared = {name: metric.to_json() for name, metric in measured.metrics[side].items()} if measured else None
    return {
        "version": version.version,
        "method": version.method,
        "stored_bytes": version.stored_bytes,
        "embedding_digest": version.embedding_digest,
        "dataset_digest": version.dataset_digest,
        "parent": version.parent,
        "weak": version.weak,
        "metrics": version.metrics,
        "shared": shared,
        "confusion": measured.confusion[side] if measured and measured.confusion else None,
    }


def compare(services: Services, earlier: str, later: str) -> SideBySide:
    """Let both versions answer the held-out rows that neither knows.

    Args:
        services: where the versions lie.
        earlier, later: references of one task; the verdict is about `later`.

    Raises:
        InputError: no references, or of two tasks.
        NotFoundError: no such version.
        DamagedError: stored bytes are gone, or do not match their digest.
        UnavailableError: this process is comparing others.
    """
    a, b = Reference.parse_pair(earlier, later)
    with services.database.read() as session:
        versions = VersionRepository(session)
        both = versions.resolve(a), versions.resolve(b)
    return compare_versions(services, *both)


def compare_versions(
    services: Services, earlier: EmbeddingVersion, later: EmbeddingVersion, manifests: Manifests | None = None
) -> SideBySide:
    """The same for versions that were looked up before.

    Args:
        manifests: of the bases that were read already; without them the whole base is read.
    """
    reason = why_incomparable(earlier, later) or too_large(services, earlier) or too_large(services, later)
    if reason is not None:
        return SideBySide(earlier, later, None, reason)
    try:
        with one_at_a_time(TURN, "Other versions are being compared."):
            measured = _measure(services, require_base(services, later, manifests), earlier, later)
    except PinMismatchError as error:
        return SideBySide(earlier, later, None, error.message)
    if measured is None:
        return SideBySide(earlier, later, None, _no_shared_rows(services, earlier, later))
    return SideBySide(earlier, later, measured, _sentence(measured))


@contextmanager
def one_at_a_time(turn: threading.Lock, busy: str) -> Iterator[None]:
    """Raise UnavailableError, which says what this process is `busy` with, where somebody has the turn."""
    if not turn.acquire(blocking=False):
        raise UnavailableError(busy, "Try again in a moment.", retry_after_seconds=_RETRY_SECONDS)
    try:
        yield
    finally:
        turn.release()


def why_incomparable(earlier: EmbeddingVersion, later: EmbeddingVersion) -> str | None:
    """Why two versions cannot answer the same rows side by side, in one sentence; None where they can."""
    if earlier.version == later.version:
        return "It is the same version."
    if earlier.task_kind != later.task_kind or label_keys(earlier.labels) != label_keys(later.labels):
        return "Their labels are not the same."
    if earlier.base_digest != later.base_digest:
        return "They belong to two bases."
    return None


def too_large(services: Services, version: EmbeddingVersion) -> str | None:
    """Why a version's dataset is not read for a comparison; None where it is, or was never stored here."""
    record = _snapshot(services, version)
    if record is None:
        return None
    if (
        sum(record.rows.values()) <= MOST_ROWS_READ
        and (services.artifacts.size_bytes(record.artifact) or 0) <= MOST_BYTES_READ
    ):
        return None
    return f"The dataset of {version.reference} is too large to be read for a comparison."


def _measure(services: Services, base: Base, earlier: EmbeddingVersion, later: EmbeddingVersion) -> Measured | None:
    from onboard.hypernetworks.engines import engine_at

    shared = _shared_rows(services, base, earlier, later)
    if not shared:
        return None
    rows, labels = drawn(shared), later.labels
    before, after = (
        _answers(services, engine_at(services, base, version.hypernetwork_version), version, labels, rows)
        for version in (earlier, later)
    )
    true = truth(rows, labels)
    measured = _classification(true, labels, before, after) if labels else _regression(true, before, after)
    return replace(measured, left_out=len(shared) - len(rows))


def _no_shared_rows(services: Services, earlier: EmbeddingVersion, later: EmbeddingVersion) -> str:
    """Why there are no rows to compare on, in one sentence."""
    from onboard.versions.trained_rows import made_of_rows

    bare = [version.reference for version in (earlier, later) if not made_of_rows(services, version)]
    reason = "There are no held-out rows that neither of them was trained on"
    if not bare:
        return f"{reason}."
    was = "were" if len(bare) > 1 else "was"
    return f"{reason}: {' and '.join(bare)} {was} made from the labels alone, without any rows."


def truth(rows: Sequence[Example], labels: Sequence[Label]) -> np.ndarray:
    """Class of each row by its place in `labels` (n,); without labels, its number (n,)."""
    import numpy as np

    if not labels:
        return np.array([float(row.label) for row in rows])
    return np.array(class_indices(labels, rows), dtype=np.int64)


def drawn(rows: Sequence[Example]) -> Sequence[Example]:
    """At most MOST_ROWS of them, in their order; the same ones every time, whatever else is among them."""
    from onboard.data.hashes import row_hashes

    if len(rows) <= MOST_ROWS:
        return rows
    hashes = row_hashes(rows)
    chosen = sorted(range(len(rows)), key=hashes.__getitem__)[:MOST_ROWS]
    return [rows[index] for index in sorted(chosen)]


def _shared_rows(services: Services, base: Base, earlier: EmbeddingVersion, later: EmbeddingVersion) -> list[Example]:
    """Held-out rows of both datasets, those of the later one first, that trained neither."""
    import numpy as np

    from onboard.versions.trained_rows import TrainedRows

    splits = [held_out(services, version) for version in (later, earlier)]
    rows = [row for of_version in splits for split in ("test", "validation") for row in of_version[split]]
    if not rows:
        return []
    trained = TrainedRows(services, base)
    return unseen(rows, np.union1d(trained.of(earlier, exactly=True), trained.of(later, exactly=True)))


def held_out(services: Services, version: EmbeddingVersion) -> dict[str, Sequence[Example]]:
    """A version's validation and test rows by split; none of a shipped source, whose dataset was never stored here."""
    from onboard.versions.trained_rows import dataset_of

    if not version.seeds or not version.dataset_digest:
        return {"validation": (), "test": ()}
    try:
        dataset = dataset_of(services, version)
    except NotFoundError:
        return {"validation": (), "test": ()}
    return {"validation": dataset.validation, "test": dataset.test}


def _snapshot(services: Services, version: EmbeddingVersion) -> SnapshotRecord | None:
    """Its dataset's row; None where there is none: a shipped source names one that was never stored here."""
    try:
        with services.database.read() as session:
            return SnapshotRepository(session).get(version.dataset_digest)
    except NotFoundError:
        return None


def _answers(
    services: Services, engine: Engine, version: EmbeddingVersion, labels: Sequence[Label], rows: Sequence[Example]
) -> np.ndarray:
    """Probabilities (n, K) in the order of `labels`; of a regression the expected numbers (n,).

    Args:
        engine: under the hypernetwork that the version is pinned to.
    """
    from onboard.versions.answers import answers, task_of_version

    task, readout = task_of_version(services, engine, version, labels)
    return answers(engine, version, task, words_in_order(version, labels), rows, readout)


def _regression(true: np.ndarray, before: np.ndarray, after: np.ndarray) -> Measured:
    from onboard.evaluate.evaluation import evaluate_regression
    from onboard.evaluate.paired import compare_regression

    metrics = evaluate_regression(true, before), evaluate_regression(true, after)
    return Measured(compare_regression(true, before, after), metrics)


def _classification(true: np.ndarray, labels: tuple[Label, ...], before: np.ndarray, after: np.ndarray) -> Measured:
    from onboard.evaluate.evaluation import evaluate_classification
    from onboard.evaluate.metrics import confusion
    from onboard.evaluate.paired import compare_classification

    matrices = [confusion(true, probabilities.argmax(1), len(labels)).tolist() for probabilities in (before, after)]
    answers = zip(true.tolist(), before.argmax(1).tolist(), after.argmax(1).tolist(), strict=True)
    changed = Counter(answer for answer in answers if answer[1] != answer[2])
    return Measured(
        compare_classification(true, before, after),
        (evaluate_classification(true, before, labels=labels), evaluate_classification(true, after, labels=labels)),
        labels,
        (matrices[0], matrices[1]),
        tuple(Flip(labels[t], labels[x], labels[y], count) for (t, x, y), count in changed.most_common()),
    )


def _sentence(measured: Measured) -> str:
    drawn_from = f", drawn from {measured.comparison.rows + measured.left_out}" if measured.left_out else ""
    rows = f"held-out rows that trained neither{drawn_from}"
    return measured.comparison.sentence("The later version", "the earlier one", rows)
