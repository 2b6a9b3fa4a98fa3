"""Use case: compare two versions of a task on rows that neither was trained on.

These are rows that both held out, or those of a file. If there are too few, rows that both were trained on are compared
by out-of-fold answers: see `out_of_fold`.

Each process makes one comparison at a time, with limits on the datasets and rows: it may load a model, and everybody
with read access may request it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Final

from onboard.contract.evaluations import Evidence
from onboard.data.hashes import merged, unseen
from onboard.domain.counting import counted
from onboard.domain.dataset import Dataset, Example, Label
from onboard.domain.names import Reference
from onboard.domain.task import EmbeddingVersion, SnapshotRecord, label_keys, words_in_order
from onboard.errors import NotFoundError, PinMismatchError, UnavailableError
from onboard.hypernetworks.files import Manifests, require_base
from onboard.registry.services import Services
from onboard.registry.snapshots import SnapshotRepository
from onboard.registry.versions import VersionRepository
from onboard.versions.out_of_fold import Paired, all_rows, shared_rows
from onboard.versions.side_by_side import ChangedAnswers, Measured, SideBySide, changed_answers, measured_on

if TYPE_CHECKING:
    import numpy as np

    from onboard.bases import Base
    from onboard.data.labelled import CheckedRows
    from onboard.model.engine import Engine

MOST_ROWS: Final = 2000  # number of rows to answer; if there are more, those with the smallest hashes, a fixed sample
MOST_ROWS_READ: Final = 250_000  # rows of a version's dataset, which is read for its held-out rows
MOST_BYTES_READ: Final = 64 * 2**20  # stored size of the same
RETRY_SECONDS: Final = 5
OUT_OF_FOLD_WORTH: Final = (
    "Each row was answered by models that were trained without it, not by the published versions. This compares what "
    "the two sets of rows teach. Rows that neither version has seen are better evidence."
)
TRAINED_WORTH: Final = (
    "Both versions were trained on the rows they share, so these answers do not show which version is better."
)
TURN: Final = threading.Lock()  # held while comparing in this process


def compare(services: Services, earlier: str, later: str) -> SideBySide:
    """Compare both versions on rows that neither was trained on.

    Args:
        earlier, later: references of one task; the verdict is about `later`.

    Raises:
        InputError: the references are invalid or of two tasks.
        NotFoundError: a version does not exist.
        DamagedError: stored files are missing or do not match their digest.
        UnavailableError: this process is comparing other versions.
    """
    return compare_versions(services, *both_versions(services, earlier, later))


def both_versions(services: Services, earlier: str, later: str) -> tuple[EmbeddingVersion, EmbeddingVersion]:
    """Return the versions of two references of one task. Raises InputError, NotFoundError."""
    a, b = Reference.parse_pair(earlier, later)
    with services.database.read() as session:
        versions = VersionRepository(session)
        return versions.resolve(a), versions.resolve(b)


def compare_versions(
    services: Services,
    earlier: EmbeddingVersion,
    later: EmbeddingVersion,
    manifests: Manifests | None = None,
    file: CheckedRows | None = None,
) -> SideBySide:
    """Compare two versions that were already looked up.

    Args:
        manifests: manifests of bases that were already read; without them the whole base is read.
        file: rows to compare on, without those that either was trained on; None uses the versions' own.
    """
    reason = why_incomparable(earlier, later)
    if reason is None and file is None:
        reason = too_large(services, earlier) or too_large(services, later)
    if reason is not None:
        return SideBySide(earlier, later, None, reason)
    pair = _Pair(services, earlier, later, manifests)
    try:
        with one_at_a_time(TURN, UnavailableError("comparison-busy", retry_after_seconds=RETRY_SECONDS)):
            return _on_own_rows(pair) if file is None else _on_file(pair, file)
    except PinMismatchError as error:
        return SideBySide(earlier, later, None, error.message)


@contextmanager
def one_at_a_time(turn: threading.Lock, busy: UnavailableError) -> Iterator[None]:
    """Raise `busy` if another caller holds the lock."""
    if not turn.acquire(blocking=False):
        raise busy
    try:
        yield
    finally:
        turn.release()


def why_incomparable(earlier: EmbeddingVersion, later: EmbeddingVersion) -> str | None:
    """Return why two versions cannot be compared on the same rows, in one sentence; None if they can."""
    if earlier.version == later.version:
        return "Both are the same version."
    if earlier.task_kind != later.task_kind or label_keys(earlier.labels) != label_keys(later.labels):
        return "Their labels differ."
    if earlier.base_digest != later.base_digest:
        return "They belong to different bases."
    return None


def too_large(services: Services, version: EmbeddingVersion) -> str | None:
    """Return why a version's dataset is too large for a comparison; None if it is not, or was never stored here."""
    record = _snapshot(services, version)
    if record is None:
        return None
    if (
        sum(record.rows.values()) <= MOST_ROWS_READ
        and (services.artifacts.size_bytes(record.artifact) or 0) <= MOST_BYTES_READ
    ):
        return None
    return f"The dataset of {version.reference} is too large for a comparison."


class _Pair:
    """Two versions with the data of their comparison, which is read on demand.

    Args:
        manifests: see `compare_versions`.
    """

    def __init__(
        self, services: Services, earlier: EmbeddingVersion, later: EmbeddingVersion, manifests: Manifests | None
    ) -> None:
        self.services, self.earlier, self.later, self._manifests = services, earlier, later, manifests
        self._rows: dict[int, dict[int, Example]] = {}

    @cached_property
    def base(self) -> Base:
        """The base of both. Raises PinMismatchError."""
        return require_base(self.services, self.later, self._manifests)

    def trained(self, version: EmbeddingVersion) -> np.ndarray:
        """Return sorted hashes of the rows that a version was trained on."""
        return known_to(self.services, self.base, [version])

    def unseen(self, rows: Sequence[Example]) -> list[Example]:
        """Return the rows that neither was trained on, without repeated texts."""
        return unseen_by(self.services, self.base, [self.earlier, self.later], rows) if rows else []

    def rows(self, version: EmbeddingVersion) -> Mapping[int, Example]:
        """Return all rows of a version's dataset by hash; empty if it was never stored here."""
        if version.version not in self._rows:
            self._rows[version.version] = all_rows(_stored_dataset(self.services, version))
        return self._rows[version.version]

    def held_out_rows(self) -> list[Example]:
        """Return held-out rows of both datasets that neither was trained on, those of the later one first."""
        splits = [held_out(self.services, version) for version in (self.later, self.earlier)]
        return self.unseen(
            [row for of_version in splits for split in ("test", "validation") for row in of_version[split]]
        )

    def answer(self, version: EmbeddingVersion, rows: Sequence[Example]) -> np.ndarray:
        """Return a version's answers to rows, see `answers`, in the order of the later one's labels."""
        from onboard.hypernetworks.engines import engine_at

        engine = engine_at(self.services, self.base, version.hypernetwork_version)
        return answered_by(self.services, engine, version, self.later.labels, rows)


def _on_file(pair: _Pair, file: CheckedRows) -> SideBySide:
    rows = pair.unseen(file.rows)
    if not rows:
        reason = f"One of the versions was trained on every row of {file.source}."
        return SideBySide(pair.earlier, pair.later, None, reason, "file")
    return _verdict(pair, rows, "file", f"rows of {file.source} that neither was trained on")


def _on_own_rows(pair: _Pair) -> SideBySide:
    from onboard.evaluate.paired import FEWEST_ROWS_ANSWERS

    rows = pair.held_out_rows()
    if len(rows) < FEWEST_ROWS_ANSWERS:
        versions = pair.earlier, pair.later
        datasets = pair.rows(pair.earlier), pair.rows(pair.later)
        paired = shared_rows(versions, datasets, pair.answer, pair.trained)
        if paired is not None and len(paired.settled) > len(rows):
            return _cross_validated(pair, paired)
    return (
        _verdict(pair, rows, "held-out", "held-out rows that neither was trained on") if rows else _only_changed(pair)
    )


def _verdict(pair: _Pair, shared: Sequence[Example], evidence: Evidence, named: str) -> SideBySide:
    """Compare both on rows that neither was trained on.

    Args:
        named: description of the rows.
    """
    rows, labels = drawn(shared), pair.later.labels
    before, after = (pair.answer(version, rows) for version in (pair.earlier, pair.later))
    kind = pair.later.task_kind
    measured = measured_on(rows, labels, before, after, len(shared) - len(rows), kind)
    named += f", drawn from {len(shared)}" if measured.left_out else ""
    changed = changed_answers(rows, labels, before, after, kind=kind)
    return SideBySide(pair.earlier, pair.later, measured, _sentence(measured, named), evidence, None, changed)


def _cross_validated(pair: _Pair, paired: Paired) -> SideBySide:
    labels, settled = pair.later.labels, paired.settled
    rows = [paired.rows[place] for place in settled]
    kind = pair.later.task_kind
    measured = measured_on(rows, labels, paired.before[settled], paired.after[settled], kind=kind)
    changed = changed_answers(paired.rows, labels, paired.before, paired.after, paired.labels_before, kind)
    reason = _sentence(measured, "cross-validated rows")
    return SideBySide(pair.earlier, pair.later, measured, reason, "cross-validated", OUT_OF_FOLD_WORTH, changed)


def _only_changed(pair: _Pair) -> SideBySide:
    """Return no verdict, but compare answers to rows that both were trained on, if there are any."""
    from onboard.versions.trained_rows import made_of_rows

    earlier, later = pair.rows(pair.earlier), pair.rows(pair.later)
    shared = drawn([row for hashed, row in later.items() if hashed in earlier])
    reason = "There are no rows that neither of them was trained on"
    bare = [
        version_of_pair.reference
        for version_of_pair in (pair.earlier, pair.later)
        if not made_of_rows(pair.services, version_of_pair)
    ]
    if bare:
        were = "were" if len(bare) > 1 else "was"
        reason += f": {' and '.join(bare)} {were} made from the labels alone, without any rows"
    if not shared or bare:
        return SideBySide(pair.earlier, pair.later, None, f"{reason}.")
    without = [
        f"v{version_of_pair.version}"
        for version_of_pair in (pair.earlier, pair.later)
        if version_of_pair.out_of_fold is None
    ]
    reason += f", and no cross-validated answers of {' and '.join(without)}." if without else "."
    before, after = (pair.answer(version, shared) for version in (pair.earlier, pair.later))
    changed: ChangedAnswers = changed_answers(shared, pair.later.labels, before, after, kind=pair.later.task_kind)
    flipped = sum(flip.count for flip in changed.flips)
    worth = f"{TRAINED_WORTH} {flipped:,} of {counted(len(shared), 'shared row')} changed."
    return SideBySide(pair.earlier, pair.later, None, reason, "training", worth, changed)


def known_to(services: Services, base: Base, versions: Sequence[EmbeddingVersion]) -> np.ndarray:
    """Return sorted hashes of the rows that any of these versions was trained on."""
    from onboard.versions.trained_rows import TrainedRows

    trained = TrainedRows(services, base)
    return merged(trained.of(version, exactly=True) for version in versions)


def unseen_by(
    services: Services, base: Base, versions: Sequence[EmbeddingVersion], rows: Sequence[Example]
) -> list[Example]:
    """Return the rows that none of these versions was trained on, without repeated texts."""
    return unseen(rows, known_to(services, base, versions))


def drawn(rows: Sequence[Example]) -> Sequence[Example]:
    """Return at most MOST_ROWS of them, in order; the sample is fixed."""
    from onboard.data.hashes import row_hashes

    if len(rows) <= MOST_ROWS:
        return rows
    hashes = row_hashes(rows)
    indices = sorted(range(len(rows)), key=hashes.__getitem__)[:MOST_ROWS]
    return [rows[index] for index in sorted(indices)]


def held_out(services: Services, version: EmbeddingVersion) -> dict[str, Sequence[Example]]:
    """Return a version's validation and test rows by split; empty for a shipped source without a stored dataset."""
    dataset = _stored_dataset(services, version)
    return {
        "validation": () if dataset is None else dataset.validation, "test": () if dataset is None else dataset.test,
    }  # fmt: skip


def _stored_dataset(services: Services, version: EmbeddingVersion) -> Dataset | None:
    from onboard.versions.trained_rows import dataset_of

    if not version.seeds or not version.dataset_digest:
        return None
    try:
        return dataset_of(services, version)
    except NotFoundError:
        return None


def _snapshot(services: Services, version: EmbeddingVersion) -> SnapshotRecord | None:
    """Return its dataset's row; None for a shipped source, which has no stored dataset."""
    try:
        with services.database.read() as session:
            return SnapshotRepository(session).get(version.dataset_digest)
    except NotFoundError:
        return None


def answered_by(
    services: Services, engine: Engine, version: EmbeddingVersion, labels: Sequence[Label], rows: Sequence[Example]
) -> np.ndarray:
    """Return probabilities (n, K) in the order of `labels`; for a regression the expected numbers (n,).

    Args:
        engine: engine with the hypernetwork that the version is pinned to.
    """
    from onboard.versions.answers import answers, task_of_version

    task, readout = task_of_version(services, engine, version, labels)
    return answers(engine, version, task, words_in_order(version, labels), rows, readout)


def _sentence(measured: Measured, rows: str) -> str:
    return measured.comparison.sentence("The later version", "the earlier one", rows)
