"""Predictions for any mix of tasks from one loaded base: one encoder pass and one decoder pass a batch.

Of versions with a readout the bare encoder reads the texts, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.data.regression import Buckets
from onboard.domain.names import Reference
from onboard.domain.prediction import Prediction
from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion, Task
from onboard.errors import DamagedError, InputError, NotFoundError, PinMismatchError
from onboard.hypernetworks.engines import frozen_hypernetwork, hypernetwork_at
from onboard.hypernetworks.register import register_base
from onboard.model.batched import mixed_log_probabilities
from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork
from onboard.model.readout import bare_features
from onboard.model.scoring import LabelTrie
from onboard.registry.versions import VersionRepository
from onboard.services import Services, open_services
from onboard.serving.requests import PredictionRequest, parse_requests, require_forms
from onboard.settings import Settings
from onboard.statistics.readout import Readout
from onboard.storage.artifacts import digest_of
from onboard.storage.cache import Cache
from onboard.storage.embedding import embedding_digest, read_facts, unpack_embedding
from onboard.storage.readout import READOUT, unpack_readout
from onboard.versions.fetch import BASE, HYPERNETWORK
from onboard.versions.readouts import readout_of

KEPT_VERSIONS: Final = 512  # stay ready to answer; the one that was not asked for longest goes first


@dataclass(frozen=True)
class _Served:
    """A version, ready to answer."""

    task: Task
    version: int
    z: np.ndarray
    hypernetwork: int
    trie: LabelTrie
    weak: bool
    pairs: bool | None
    readout: Readout | None = None


class Predictor:
    """Answers for every task of a home, or for the source tasks of a base.

    Args:
        base_or_home: a `Base`, a base's name or folder, a bundle of `onboard fetch --bundle`, the home folder of a
            service, its opened services, or None for the service that the environment names.

    Raises:
        NotFoundError: neither a base nor a home.
    """

    def __init__(self, base_or_home: Base | Services | str | Path | None = None, device: str = "auto") -> None:
        self._services = _services_of(base_or_home)
        self._base = base_or_home if isinstance(base_or_home, Base) else None
        if self._services is not None:
            self._base = find_base(self._services.settings.base)
            register_base(self._services, self._base)
            device = self._services.device
        bundle = None if self._base or self._services else _bundle(Path(str(base_or_home)))
        self._base = self._base or find_base(str(bundle / BASE if bundle else base_or_home))
        self._engine = load_engine(self._base, device)
        self._served = Cache[str, _Served](KEPT_VERSIONS)
        self._bundled: Hypernetwork | None = None
        if bundle:
            self._unbundle(bundle)

    def predict(self, inputs: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        """Answers in input order; tasks may be mixed freely.

        Args:
            inputs: `{"task", "ref"?, "text" | "text_a", "text_b"}` each.

        Raises:
            InputError: an input is wrong, or has one text where its task takes two (or the reverse); none is answered.
            NotFoundError: no such task or version.
            PinMismatchError: the version belongs to another backbone, or its hypernetwork is not at hand.
            DamagedError: stored bytes are gone, or are not what they were.
        """
        requests = parse_requests(inputs)
        return self.answer(requests)

    def answer(
        self, requests: Sequence[PredictionRequest], before_batch: Callable[[], None] = lambda: None
    ) -> list[Prediction]:
        """The same for parsed requests; `before_batch` is called before every batch and may raise to stop."""
        if not requests:
            return []
        references = {str(request.reference): request.reference for request in requests}
        resolved = {text: self._resolve(reference) for text, reference in references.items()}
        served = list({(version.task.name, version.version): version for version in resolved.values()}.values())
        position = {(version.task.name, version.version): index for index, version in enumerate(served)}
        mine = [resolved[str(request.reference)] for request in requests]
        require_forms(requests, {text: version.pairs for text, version in resolved.items()})
        tasks = np.array([position[version.task.name, version.version] for version in mine])
        ids = self._engine.encoder.encode([(request.text_a, request.text_b) for request in requests])
        generated, tries = self._generated(served), [version.trie for version in served]
        scores = mixed_log_probabilities(self._engine, ids, generated, tries, tasks, before_batch)
        probabilities = np.exp(scores.astype(np.float64))
        self._read_out(probabilities, ids, tasks, served, before_batch)
        return [_answer(version, row) for version, row in zip(mine, probabilities, strict=True)]

    def _read_out(
        self,
        probabilities: np.ndarray,
        ids: Sequence[Sequence[int]],
        tasks: np.ndarray,
        served: Sequence[_Served],
        before_batch: Callable[[], None],
    ) -> None:
        """Let readouts answer beside the embeddings, whose probabilities (n, K) are overwritten.

        Only the rows of versions that have one take the pass of the bare encoder, a text of several tasks once.
        """
        rows = [np.flatnonzero(tasks == place) for place, version in enumerate(served) if version.readout is not None]
        if not rows:
            return
        readers = [version for version in served if version.readout is not None]
        every = np.concatenate(rows)
        features = np.split(
            bare_features(self._engine, [ids[row] for row in every], before_batch),
            np.cumsum([len(part) for part in rows])[:-1],
        )
        for version, part, of_part in zip(readers, rows, features, strict=True):
            assert version.readout is not None
            labels = slice(0, version.trie.labels)  # a task of the same batch may have more
            probabilities[part, labels] = version.readout.beside(probabilities[part, labels], of_part)

    @torch.inference_mode()
    def _generated(self, served: Sequence[_Served]) -> GeneratedAdapters:
        """Their adapters in this order, each made by the hypernetwork that the version is pinned to."""
        pinned: dict[int, list[int]] = {}
        for place, answering in enumerate(served):
            pinned.setdefault(answering.hypernetwork, []).append(place)
        parts: list[GeneratedAdapters] = []
        for version, places in pinned.items():
            z = torch.from_numpy(np.stack([served[place].z for place in places])).to(self._engine.device)
            parts.append(self._hypernetwork(version)(z))
        if len(parts) == 1:
            return parts[0]
        return GeneratedAdapters.joined(parts, np.argsort(np.concatenate([*pinned.values()])).tolist())

    def _hypernetwork(self, version: int) -> Hypernetwork:
        if version == FIRST_HYPERNETWORK:
            return self._engine.hypernetwork
        if self._bundled is not None:
            return self._bundled
        assert self._services is not None
        assert self._base is not None
        return hypernetwork_at(self._services, self._base, version, self._engine.device)

    def _resolve(self, reference: Reference) -> _Served:
        if self._services is None:
            return self._served.get(str(reference), lambda: self._source(reference))
        with self._services.database.read() as session:
            version = VersionRepository(session).resolve(reference)
        services = self._services
        return self._served.get(version.reference, lambda: self._load(services, version))

    def _load(self, services: Services, version: EmbeddingVersion) -> _Served:
        assert self._base is not None
        require_pins(version, self._base)
        task = Task(version.task, version.task_kind, version.labels, version.words, version.low, version.high)
        z = unpack_embedding(services.read(version.artifact))
        served = self._serve(task, version.version, z, version.hypernetwork_version, version.weak, version.pairs)
        return replace(served, readout=readout_of(services, version))

    def _unbundle(self, folder: Path) -> None:
        assert self._base is not None
        content = (folder / "embedding.safetensors").read_bytes()
        facts, z = read_facts(content), unpack_embedding(content)
        if facts.get("embedding") not in (None, embedding_digest(z)):  # those of an earlier release do not say it
            raise DamagedError(f"The embedding of the bundle {folder} does not match its digest.", "fetch again")
        if facts["base"] != self._base.digest:
            raise PinMismatchError(
                f"The bundle {folder} holds another base than its embedding is pinned to.", "fetch again"
            )
        hypernetwork = facts["hypernetwork_version"]
        if hypernetwork != FIRST_HYPERNETWORK:
            self._bundled = frozen_hypernetwork(_bundled_weights(folder, facts), self._engine.device)
        labels, words = tuple(facts["labels"]), tuple(facts["words"])
        task = Task(facts["task"], facts["kind"], labels, words, facts["low"], facts["high"])
        served = self._serve(task, facts["version"], z, hypernetwork, facts["weak"], facts.get("pairs"))
        served = replace(served, readout=_bundled_readout(folder, facts))
        for reference in (Reference(task.name), Reference(task.name, alias=None, version=served.version)):
            self._served.keep(str(reference), served)

    def _source(self, reference: Reference) -> _Served:
        assert self._base is not None
        source = next((shipped for shipped in self._base.sources if shipped.name == reference.task), None)
        if source is None or reference not in (Reference(source.name), Reference(source.name, None, 1)):
            raise NotFoundError(f"Base {self._base.name} has no {reference}.", f"onboard base show {self._base.name}")
        task = Task(source.name, source.kind, source.labels, source.words, source.low, source.high, source=True)
        z = self._base.embeddings[source.name]
        return self._serve(task, 1, z, FIRST_HYPERNETWORK, weak=False, pairs=source.pairs)

    def _serve(
        self, task: Task, version: int, z: np.ndarray, hypernetwork: int, weak: bool, pairs: bool | None
    ) -> _Served:
        size = self._engine.hypernetwork.sizes["task_embedding_size"]
        if z.shape != (size,):
            raise PinMismatchError(
                f"{task.name}@v{version} has {z.shape} numbers, this hypernetwork takes {size}.",
                "onboard base show",
                task=task.name,
            )
        return _Served(task, version, z, hypernetwork, self._engine.trie(task.words), weak, pairs)


def require_pins(version: EmbeddingVersion, base: Base) -> None:
    """Raise PinMismatchError unless the version belongs to this base and its backbone."""
    if version.backbone_digest != base.backbone_digest or version.base_digest != base.digest:
        raise PinMismatchError(
            f"{version.reference} is pinned to backbone {version.backbone_digest[:19]}…, "
            f"base {base.name} has {base.backbone_digest[:19]}….",
            "set ONBOARD_BASE to the base that it was trained on, or submit the task again",
            version=version.reference,
            pinned=version.backbone_digest,
            present=base.backbone_digest,
        )


def _answer(served: _Served, probabilities: np.ndarray) -> Prediction:
    probabilities = probabilities[: served.trie.labels]  # a task of the same batch may have more
    best = int(probabilities.argmax())
    shown, task = tuple(float(value) for value in probabilities), served.task
    if task.low is None or task.high is None:
        labels, answer = task.labels, task.labels[best]
    else:
        buckets = Buckets(task.low, task.high)
        labels, answer = buckets.values, buckets.expectation(shown)
    return Prediction(answer, shown[best], task.name, served.version, shown, served.weak, labels)


def _bundle(folder: Path) -> Path | None:
    """The folder when `onboard fetch --bundle` made it."""
    made = (folder / "embedding.safetensors").is_file() and (folder / BASE / "base.json").is_file()
    return folder if made else None


def _bundled_weights(folder: Path, facts: Mapping[str, Any]) -> bytes:
    """The file of the hypernetwork that a bundle's embedding is pinned to. Raises PinMismatchError: it is another."""
    path = folder / HYPERNETWORK
    content = path.read_bytes() if path.is_file() else b""
    if digest_of(content) != facts["hypernetwork"]:
        raise PinMismatchError(
            f"The bundle {folder} does not hold hypernetwork version {facts['hypernetwork_version']}, "
            "which its embedding is pinned to.",
            "fetch again",
        )
    return content


def _bundled_readout(folder: Path, facts: Mapping[str, Any]) -> Readout | None:
    """The readout that a bundle's embedding is published with, if any. Raises PinMismatchError: it is another."""
    if "readout" not in facts:
        return None
    path = folder / READOUT
    content = path.read_bytes() if path.is_file() else b""
    if digest_of(content) != facts["readout"]:
        raise PinMismatchError(f"The bundle {folder} does not hold the readout of its embedding.", "fetch again")
    return unpack_readout(content, facts["base"])


def _services_of(base_or_home: Base | Services | str | Path | None) -> Services | None:
    if isinstance(base_or_home, Services):
        return base_or_home
    if base_or_home is None:
        return open_services(Settings())
    if isinstance(base_or_home, Base):
        return None
    folder = Path(base_or_home).expanduser()
    if (folder / "onboard.db").is_file():
        # this home, whatever the environment names
        return open_services(Settings(home=folder, database_url="", broker_url="", artifact_url=""))
    known = any((folder / name).is_file() for name in ("base.json", "config.json", "base/base.json"))
    if folder.is_dir() and not known:
        raise InputError(f"{folder} is neither a base nor the home of a service.", "onboard base list")
    return None


def _buckets(low: float | None, high: float | None) -> Buckets | None:
    return Buckets(low, high) if low is not None and high is not None else None
