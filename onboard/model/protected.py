"""A task that a changed hypernetwork must not harm: what its answers were, and how to see whether they hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onboard.model.batch import LabelledRows
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.scoring import LabelTrie


@dataclass(frozen=True)
class ProtectedTask:
    """A task that was published before.

    Args:
        name: what the verdict calls it, such as `reviews@v3`.
        z: (t,) its embedding.
        trie: of its K label words.
        reference: the hypernetwork that the embedding was learned under. Comparing with this one, and not with the last
            head, keeps small losses from adding up over many tunings.
        rows: labelled ones that it was not trained on; None where there are none.
        texts: token ids of texts of its own whose labels are not used, such as those that it was trained on.
        trouble: why its snapshot cannot be read, where it should have one. Such a task never passes.
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
    """What must stay as it is, and on what that is looked at.

    Args:
        tasks: the protected ones.
        canaries: token ids of texts that stand for whatever else the tasks are asked. Those that a hypernetwork is
            tuned on are no judges of it.
    """

    tasks: Sequence[ProtectedTask] = ()
    canaries: Sequence[Sequence[int]] = ()
