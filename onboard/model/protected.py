"""A task that a changed hypernetwork must not harm, with its reference and the rows to check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onboard.model.batch import LabelledRows
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.scoring import LabelTrie


@dataclass(frozen=True)
class ProtectedTask:
    """A task that was published earlier.

    Args:
        name: its name in the verdict, such as `reviews@v3`.
        z: (t,) its embedding.
        trie: of its K label words.
        reference: the hypernetwork that the embedding was learned under. Comparing with this one, and not with the last
            head, prevents small losses from accumulating over many tunings.
        rows: labeled rows that it was not trained on, or None.
        texts: token ids of its texts without labels, such as its training texts.
        trouble: why its snapshot cannot be read, if it should have one. Such a task never passes.
    """

    name: str
    z: np.ndarray
    trie: LabelTrie
    reference: Hypernetwork
    rows: LabelledRows | None = None
    texts: Sequence[Sequence[int]] = ()
    trouble: str | None = None


@dataclass(frozen=True)
class Protection:
    """The tasks to protect, and the texts to check them on.

    Args:
        canaries: token ids of texts that represent other inputs of the tasks. Texts that a hypernetwork is tuned on
            cannot be used to judge it.
    """

    tasks: Sequence[ProtectedTask] = ()
    canaries: Sequence[Sequence[int]] = ()
