"""Folders written by `onboard fetch`: a version with everything that it needs to answer, verified.

With `--bundle` the folder contains the base. Otherwise the base with that digest must be on this machine; `mini` ships
with the package.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from onboard.bases import Base, find_base, named_bases
from onboard.contract.version_files import BASE, EMBEDDING, HYPERNETWORK, READOUT, WEIGHTS
from onboard.domain.methods import Content, content_of
from onboard.domain.names import Reference
from onboard.domain.task import FIRST_HYPERNETWORK, Task
from onboard.errors import DamagedError, NotFoundError, PinMismatchError
from onboard.hypernetworks.engines import frozen_hypernetwork
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.on_demand import Learned
from onboard.serving.versions import Resolved, ServedVersion, SourceVersions, fitting
from onboard.settings import Settings
from onboard.statistics.readout import Readout
from onboard.storage.artifacts import digest_of
from onboard.storage.embedding import embedding_digest, read_facts, unpack_embedding
from onboard.storage.novelty import novelty_in
from onboard.storage.readout import unpack_readout
from onboard.storage.weights import Tensors, readout_alone, unpack_weights, weights_digest
from onboard.versions.answers import module_in


def bundle_at(folder: Path) -> Path | None:
    """Return the version's file if the folder was written by `onboard fetch`."""
    if (folder / "base.json").is_file():  # it is a base
        return None
    return next((folder / name for name in (EMBEDDING, WEIGHTS) if (folder / name).is_file()), None)


def base_of(file: Path) -> Base:
    """Return the base of a fetched version from the folder or from this machine.

    Args:
        file: file of the version, from `bundle_at`.

    Raises:
        NotFoundError: this machine does not have the base.
        DamagedError: the file does not name its base.
    """
    inside = file.parent / BASE
    if (inside / "base.json").is_file():
        return find_base(str(inside))
    digest = read_facts(file.read_bytes())["base"]
    chosen = [find_base(name) for name in (Settings().base,) if name]
    for base in (*chosen, *named_bases()):
        if base.digest == digest:
            return base
    raise NotFoundError("bundle-base-missing", base=digest, folder=file.parent)


class BundledVersions:
    """The version in a fetched folder, and the source tasks of its base.

    Args:
        file: `embedding.safetensors` or `weights.safetensors` of the folder.

    Raises:
        DamagedError: the file was changed.
        PinMismatchError: base, hypernetwork or readout differ from those that it is pinned to.
        InputError: this release does not support its method.
    """

    def __init__(self, file: Path, base: Base, engine: Engine) -> None:
        self._sources = SourceVersions(base, engine)
        content = file.read_bytes()
        facts, embedding = read_facts(content), file.name == EMBEDDING
        tensors: Tensors = {"z": unpack_embedding(content)} if embedding else unpack_weights(content)
        digest, what = (
            (embedding_digest(tensors["z"]), "embedding") if embedding else (weights_digest(tensors), "weights")
        )
        if facts.get("embedding") not in (None, digest):  # files of earlier releases do not contain it
            raise DamagedError("bundle-part-damaged", part=what, folder=file.parent)
        if facts["base"] != base.digest:
            raise PinMismatchError("bundle-of-other-base", folder=file.parent, part=what)
        version, self._bundled = facts["hypernetwork_version"], engine.hypernetwork
        if version != FIRST_HYPERNETWORK:
            self._bundled = frozen_hypernetwork(_bundled_hypernetwork(file.parent, facts), engine.device)
        kind: Content = "embedding" if embedding else content_of(facts.get("method", ""), str(file))
        learned = tensors["z"] if kind == "embedding" else _bundled_module(content, tensors, engine, kind)
        readout = readout_alone(tensors, facts) if kind == "readout" else _bundled_readout(file.parent, facts)
        labels, words = tuple(facts["labels"]), tuple(facts["words"])
        task = Task(facts["task"], facts["kind"], labels, words, facts["low"], facts["high"])
        temperature = facts.get("temperature", 1.0)
        served = ServedVersion(
            task,
            facts["version"],
            learned,
            version,
            facts["weak"],
            facts.get("pairs"),
            readout,
            temperature,
            novelty_in(content),
            unmeasured=bool(facts["init"]) and not any(facts["metrics"].values()),
        )
        self._served = fitting(served, engine)

    def resolve(self, references: Collection[Reference]) -> Resolved:
        """See `ServedVersions.resolve`."""
        name = self._served.task.name
        names = (str(Reference(name)), str(Reference(name, alias=None, version=self._served.version)))
        own = dict.fromkeys(names, self._served)
        return {**self._sources.resolve([other for other in references if str(other) not in own]), **own}

    def hypernetwork(self, version: int) -> Hypernetwork:
        """See `ServedVersions.hypernetwork`."""
        return self._sources.hypernetwork(version) if version == FIRST_HYPERNETWORK else self._bundled

    @property
    def kept_bytes(self) -> int:
        """Approximate memory of the version, in bytes."""
        return self._served.kept_bytes


def _bundled_module(content: bytes, tensors: Tensors, engine: Engine, kind: Content) -> Learned:
    """Load task-specific weights; None for a readout alone."""
    if kind == "readout":
        return None
    return module_in(content, tensors, engine)


def _bundled_hypernetwork(folder: Path, facts: Mapping[str, Any]) -> bytes:
    """Read the hypernetwork that the embedding is pinned to. Raises PinMismatchError: the file contains another."""
    path = folder / HYPERNETWORK
    content = path.read_bytes() if path.is_file() else b""
    if digest_of(content) != facts["hypernetwork"]:
        raise PinMismatchError(
            "bundle-hypernetwork-missing", folder=folder, hypernetwork_version=facts["hypernetwork_version"]
        )
    return content


def _bundled_readout(folder: Path, facts: Mapping[str, Any]) -> Readout | None:
    """Read the readout of the embedding, if any. Raises PinMismatchError: the file contains another."""
    if "readout" not in facts:
        return None
    path = folder / READOUT
    content = path.read_bytes() if path.is_file() else b""
    if digest_of(content) != facts["readout"]:
        raise PinMismatchError("bundle-readout-missing", folder=folder)
    return unpack_readout(content, facts["base"])
