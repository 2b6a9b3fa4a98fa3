"""Folders that `onboard fetch --bundle` made: a version with all that it answers with, verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from onboard.bases import Base
from onboard.domain.methods import Content, content_of
from onboard.domain.task import FIRST_HYPERNETWORK, Task
from onboard.errors import DamagedError, PinMismatchError
from onboard.hypernetworks.engines import frozen_hypernetwork
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.task_files import task_of
from onboard.serving.served import Learned, Served
from onboard.statistics.readout import Readout
from onboard.storage.artifacts import digest_of
from onboard.storage.embedding import embedding_digest, read_facts, read_metadata, unpack_embedding
from onboard.storage.readout import READOUT, unpack_readout
from onboard.storage.weights import WEIGHTS, Tensors, readout_alone, unpack_weights, weights_digest
from onboard.versions.fetch import BASE, EMBEDDING, HYPERNETWORK


def bundle_in(folder: Path) -> Path | None:
    """The file of the version in a folder when `onboard fetch --bundle` made it."""
    if not (folder / BASE / "base.json").is_file():
        return None
    return next((folder / name for name in (EMBEDDING, WEIGHTS) if (folder / name).is_file()), None)


@dataclass(frozen=True)
class Bundle:
    """What a bundle's file holds.

    Args:
        file: `embedding.safetensors` or `weights.safetensors`.
        facts: of the version.
        tensors: by name; of an embedding `z`.
    """

    file: Path
    facts: Mapping[str, Any]
    tensors: Tensors

    @classmethod
    def read(cls, file: Path, base: Base) -> Bundle:
        """A bundle for a base.

        Raises:
            DamagedError: the file is not what it was.
            PinMismatchError: it is pinned to another base.
        """
        content = file.read_bytes()
        facts, embedding = read_facts(content), file.name == EMBEDDING
        tensors: Tensors = {"z": unpack_embedding(content)} if embedding else unpack_weights(content)
        digest = embedding_digest(tensors["z"]) if embedding else weights_digest(tensors)
        what = "embedding" if embedding else "weights"
        if facts.get("embedding") not in (None, digest):  # those of an earlier release do not say it
            raise DamagedError(f"The {what} of the bundle {file.parent} does not match its digest.", "fetch again")
        if facts["base"] != base.digest:
            raise PinMismatchError(
                f"The bundle {file.parent} holds another base than its {what} is pinned to.", "fetch again"
            )
        return cls(file, facts, tensors)

    @property
    def content(self) -> Content:
        """What the version is made of. Raises InputError: this release does not know its method."""
        return "embedding" if self.file.name == EMBEDDING else content_of(self.facts.get("method", ""), str(self.file))

    @property
    def task(self) -> Task:
        """Its task, as far as predictions need it."""
        facts = self.facts
        labels, words = tuple(facts["labels"]), tuple(facts["words"])
        return Task(facts["task"], facts["kind"], labels, words, facts["low"], facts["high"])

    def served(self, engine: Engine) -> Served:
        """The version, ready to answer.

        Raises:
            InputError: of a method that this release does not know.
            DamagedError, PinMismatchError: as `read`, of the readout.
        """
        facts, task, readout = self.facts, self.task, self._readout()
        trie, pinned = engine.trie(task.words), facts["hypernetwork_version"]
        learned = self._learned(engine)
        return Served(task, facts["version"], learned, pinned, trie, facts["weak"], facts.get("pairs"), readout)

    def hypernetwork(self, device: torch.device) -> Hypernetwork | None:
        """The later one that its embedding is pinned to; None where that is the base's. Raises PinMismatchError."""
        if self.facts["hypernetwork_version"] == FIRST_HYPERNETWORK:
            return None
        folder = self.file.parent
        path = folder / HYPERNETWORK
        content = path.read_bytes() if path.is_file() else b""
        if digest_of(content) != self.facts["hypernetwork"]:
            raise PinMismatchError(
                f"The bundle {folder} does not hold hypernetwork version {self.facts['hypernetwork_version']}, "
                "which its embedding is pinned to.",
                "fetch again",
            )
        return frozen_hypernetwork(content, device)

    def _learned(self, engine: Engine) -> Learned:
        kind = self.content
        if kind == "embedding":
            return self.tensors["z"]
        if kind == "readout":
            return None
        tensors = {name: torch.from_numpy(tensor) for name, tensor in self.tensors.items()}
        return task_of(tensors, read_metadata(self.file.read_bytes()), engine.backbone).requires_grad_(False)

    def _readout(self) -> Readout | None:
        """The readout that it is published with, or is. Raises PinMismatchError: the folder holds another."""
        if self.content == "readout":
            return readout_alone(self.tensors, self.facts)
        if "readout" not in self.facts:
            return None
        path = self.file.parent / READOUT
        content = path.read_bytes() if path.is_file() else b""
        if digest_of(content) != self.facts["readout"]:
            raise PinMismatchError(
                f"The bundle {self.file.parent} does not hold the readout of its embedding.", "fetch again"
            )
        return unpack_readout(content, self.facts["base"])
