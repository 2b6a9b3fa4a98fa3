"""Where a stream stands: the head, and the learned tasks of each task so far."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from bench.harness.generated import generated_digest
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.weights import hypernetwork_digest


@dataclass(frozen=True)
class Learned:
    """One task of the stream.

    Args:
        task: its name.
        z: (t,) float32, its embedding.
        words: label words that stand for its labels.
        origin: digest of the hypernetwork that it was learned under.
        generated: digest of the weights that were generated for it then.
    """

    task: str
    z: np.ndarray
    words: tuple[str, ...]
    origin: str
    generated: str


@dataclass(frozen=True)
class State:
    """The state of a stream.

    Args:
        head: digest of the hypernetwork that the next task learns under.
        heads: the head, and every hypernetwork that a task was learned under, by digest.
        learned: the tasks so far, in their order.
        known_rows: sorted hashes of the rows that the head was trained on, those of the base among them.
    """

    head: str
    heads: Mapping[str, Hypernetwork]
    learned: tuple[Learned, ...]
    known_rows: np.ndarray

    @classmethod
    def first(cls, head: Hypernetwork, known_rows: np.ndarray) -> State:
        """Before the first task."""
        digest = hypernetwork_digest(head)
        return cls(digest, {digest: head}, (), known_rows)

    @property
    def hypernetwork(self) -> Hypernetwork:
        """The head itself."""
        return self.heads[self.head]

    @property
    def digest(self) -> str:
        """Identity of all that the next task's start and embedding follow from."""
        identity = hashlib.sha256(self.head.encode())
        for task in self.learned:
            identity.update(f"{task.task} {task.words}".encode())
            identity.update(task.z.tobytes())
        return identity.hexdigest()[:16]

    @property
    def unchanged(self) -> int:
        """How many of the tasks get from the head, byte for byte, the weights that they got when they were learned."""
        return sum(generated_for(self.hypernetwork, task.z) == task.generated for task in self.learned)

    def advanced(
        self, task: str, z: np.ndarray, words: tuple[str, ...], head: Hypernetwork, tuned_on: np.ndarray
    ) -> State:
        """With a task more.

        Args:
            task, z, words: as of `Learned`.
            head: that it was learned under, and the next one will be.
            tuned_on: hashes of the rows that this head was tuned on and the last one was not.
        """
        digest = hypernetwork_digest(head)
        learned = Learned(task, z, words, digest, generated_for(head, z))
        known_rows = np.union1d(self.known_rows, tuned_on)
        return State(digest, {**self.heads, digest: head}, (*self.learned, learned), known_rows)


@torch.inference_mode()
def generated_for(head: Hypernetwork, z: np.ndarray) -> str:
    """Digest of the weights that a hypernetwork generates for an embedding (t,)."""
    return generated_digest(head(torch.from_numpy(z)[None]))
