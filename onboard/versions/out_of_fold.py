"""Compare versions by out-of-fold answers to training rows, if too few rows were held out.

A version with at most 64 rows stores answers from models that were trained without the row. If two versions share rows,
these answers are paired by row. They belong to the models of the folds, not to the published versions, and the models
share most of their rows. So they are weaker evidence than rows that neither version was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onboard.data.hashes import row_hashes
from onboard.domain.dataset import Dataset, Example, Label, label_key
from onboard.domain.task import EmbeddingVersion, label_order
from onboard.storage.out_of_fold import unpack_out_of_fold

if TYPE_CHECKING:
    import numpy as np

FEWEST_SHARED: Final = 6  # minimum for a verdict: with fewer rows, any result may be chance
PredictRows = Callable[[EmbeddingVersion, Sequence[Example]], "np.ndarray"]
Trained = Callable[[EmbeddingVersion], "np.ndarray"]


@dataclass(frozen=True)
class Paired:
    """Rows that both versions answered without training on them.

    Args:
        rows: with their label in the later version's dataset, or else the earlier's.
        labels_before: label of each row in the earlier version's dataset if it differs; else None.
        before, after: the answers (n, K) or (n,).
    """

    rows: Sequence[Example]
    labels_before: Sequence[Label | None]
    before: np.ndarray
    after: np.ndarray

    @property
    def settled(self) -> list[int]:
        """Indices of the rows with the same label in both datasets."""
        return [place for place, label in enumerate(self.labels_before) if label is None]


def all_rows(dataset: Dataset | None) -> dict[int, Example]:
    """Return all rows of a dataset by the hash of their text."""
    if dataset is None:
        return {}
    rows = (*dataset.train, *dataset.validation, *dataset.test)
    return dict(zip(row_hashes(rows), rows, strict=True))


def answered_out_of_fold(version: EmbeddingVersion, labels: Sequence[Label]) -> dict[int, np.ndarray]:
    """Return a version's out-of-fold answers by the hash of the row, in the order of `labels`.

    Raises:
        DamagedError: the stored answers are damaged.
    """
    if version.out_of_fold is None:
        return {}
    stored = unpack_out_of_fold(version.out_of_fold, len(version.labels) or 1)
    if not version.labels:
        return {hashed: answer[0] for hashed, answer in stored.items()}
    order = label_order(version, labels)
    return {hashed: answer[order] for hashed, answer in stored.items()}


def shared_rows(
    versions: tuple[EmbeddingVersion, EmbeddingVersion],
    datasets: tuple[Mapping[int, Example], Mapping[int, Example]],
    answer: PredictRows,
    trained: Trained,
) -> Paired | None:
    """Return the rows of either dataset that both versions answered without training on them; None without any.

    Rows that both versions were trained on come first: their answers are stored, so no model is loaded. If there are
    too few, a version also answers rows that only the other one was trained on.

    Args:
        versions: the earlier and the later one.
        datasets: their rows, from `all_rows`.
        answer: returns a version's answers to rows.
        trained: returns sorted hashes of a version's training rows.
    """
    import numpy as np

    stored = [answered_out_of_fold(version, versions[1].labels) for version in versions]
    if not any(stored):
        return None
    rows = {**datasets[0], **datasets[1]}  # labels of the later one
    candidates = [hashed for hashed in rows if hashed in stored[0] or hashed in stored[1]]
    both = [hashed for hashed in candidates if hashed in stored[0] and hashed in stored[1]]
    for of_version, version in zip(stored, versions, strict=True) if len(both) < FEWEST_SHARED else ():
        missing = [hashed for hashed in candidates if hashed not in of_version]
        fresh = sorted(set(missing) - set(trained(version).tolist())) if missing else []
        if fresh:
            of_version.update(zip(fresh, answer(version, [rows[hashed] for hashed in fresh]), strict=True))
    both = [hashed for hashed in candidates if hashed in stored[0] and hashed in stored[1]]
    if not both:
        return None
    before, after = (np.array([of_version[hashed] for hashed in both]) for of_version in stored)
    return Paired(
        [rows[hashed] for hashed in both], [_label_before(hashed, datasets) for hashed in both], before, after
    )


def _label_before(hashed: int, datasets: tuple[Mapping[int, Example], Mapping[int, Example]]) -> Label | None:
    earlier, later = (of_version.get(hashed) for of_version in datasets)
    if earlier is None or later is None or label_key(earlier.label) == label_key(later.label):
        return None
    return earlier.label
