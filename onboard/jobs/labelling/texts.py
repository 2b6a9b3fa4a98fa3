"""Features of the texts that people label. Each text is read once, and the newest stay in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import numpy as np

from onboard.bases import Base
from onboard.data.splits import evenly_spaced
from onboard.domain.annotation import Text
from onboard.errors import DamagedError, NotFoundError, PinMismatchError, StorageError
from onboard.registry.services import Services
from onboard.registry.task_features import TaskFeatureRepository
from onboard.statistics.blocks import BLOCKS
from onboard.statistics.prior import NAME_BLOCKS
from onboard.statistics.zero_rows import FEWEST_TEXTS
from onboard.storage.features import unpack_features

MOST_KEPT: Final = 10_000  # texts whose features stay in memory
MOST_CENTRE: Final = 512  # number of texts that the center is computed from
GENERIC: Final = 64  # generic texts for the center of a task with too few texts

# Features (n, 6h) of texts; those that were read before, by `onboard.storage.features.features_key`, may be among them.
Read = Callable[[Sequence[Text], Mapping[bytes, np.ndarray]], np.ndarray]


class SeenTexts:
    """Features of the texts of one task and of its labels' words. Not thread-safe.

    Args:
        read: computes the features of texts.
        kept: features from earlier jobs of the task.
    """

    def __init__(self, read: Read, kept: Mapping[bytes, np.ndarray], *, pairs: bool) -> None:
        self.pairs = pairs
        self._read, self._kept = read, kept
        self._texts: OrderedDict[Text, np.ndarray] = OrderedDict()
        self._words: dict[str, np.ndarray] = {}
        self._generic: np.ndarray | None = None

    @property
    def blocks(self) -> int:
        """Number of blocks in the features of a text."""
        return BLOCKS if self.pairs else NAME_BLOCKS

    def features(self, texts: Sequence[Text]) -> np.ndarray:
        """Return the features (n, b·h) of texts of the task."""
        unread = [text for text in dict.fromkeys(texts) if text not in self._texts]
        if unread:
            self._texts.update(zip(unread, self._of_blocks(unread, self.blocks), strict=True))
        found = np.stack([self._texts[text] for text in texts])
        for text in dict.fromkeys(texts):
            self._texts.move_to_end(text)
        while len(self._texts) > MOST_KEPT:
            self._texts.popitem(last=False)
        return found

    def names(self, words: Sequence[str]) -> np.ndarray:
        """Return the features (K, 3h) of labels' words."""
        unread = [word for word in dict.fromkeys(words) if word not in self._words]
        if unread:
            read = self._of_blocks([(word, None) for word in unread], NAME_BLOCKS)
            self._words.update(zip(unread, read, strict=True))
        return np.stack([self._words[word] for word in words])

    def centre(self) -> np.ndarray:
        """Return features (m, b·h) for the center: those of the texts so far, or of generic ones if too few."""
        if len(self._texts) >= FEWEST_TEXTS:
            seen = list(self._texts.values())
            return np.stack([seen[place] for place in evenly_spaced(len(seen), MOST_CENTRE)])
        if self._generic is None:
            from onboard.guard.canaries import canaries_of

            texts = canaries_of(pairs=self.pairs)
            drawn = [texts[place] for place in evenly_spaced(len(texts), GENERIC)]
            self._generic = self._of_blocks(drawn, self.blocks)
        return self._generic

    def _of_blocks(self, texts: Sequence[Text], blocks: int) -> np.ndarray:
        features = self._read(texts, self._kept)
        return features[:, : features.shape[1] // BLOCKS * blocks]


def kept_features(services: Services, task: str, base: Base) -> Mapping[bytes, np.ndarray]:
    """The features that earlier jobs of the task stored; empty if they are missing, and then computed again."""
    with services.database.read() as session:
        artifact = TaskFeatureRepository(session).find(task, base.digest)
    if artifact is not None:
        with suppress(NotFoundError, DamagedError, PinMismatchError, StorageError):
            return unpack_features(services.read(artifact), base.digest)
    return {}
