"""Predictions for any mix of tasks from one loaded base: one encoder pass and one decoder pass a batch.

Of versions with a readout the bare encoder reads the texts, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.domain.names import Reference
from onboard.domain.prediction import Prediction
from onboard.domain.task import FIRST_HYPERNETWORK, EmbeddingVersion, Task
from onboard.errors import InputError, NotFoundError, PinMismatchError
from onboard.hypernetworks.engines import hypernetwork_at
from onboard.hypernetworks.register import register_base
from onboard.model.hypernetwork import GeneratedAdapters, Hypernetwork
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import TaskWeights, Weights
from onboard.registry.versions import VersionRepository
from onboard.services import Services, open_services
from onboard.serving.bundles import Bundle, bundle_in
from onboard.serving.requests import PredictionRequest, parse_requests, require_forms
from onboard.serving.served import Learned, MixedRows, Served
from onboard.settings import Settings
from onboard.storage.cache import Cache
from onboard.storage.embedding import unpack_embedding
from onboard.versions.answers import module_of
from onboard.versions.fetch import BASE
from onboard.versions.readouts import readout_of

KEPT_VERSIONS: Final = 512  # stay ready to answer; the one that was not asked for longest goes first


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
        bundle = None if self._base or self._services else bundle_in(Path(str(base_or_home)))
        self._base = self._base or find_base(str(bundle.parent / BASE if bundle else base_or_home))
        self._engine = load_engine(self._base, device)
        self._served = Cache[str, Served](KEPT_VERSIONS)
        self._bundled: Hypernetwork | None = None
        if bundle:
            self._unbundle(Bundle.read(bundle, self._base))

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
        rows = MixedRows(self._engine, ids, tasks, served, before_batch)
        probabilities = rows.probabilities(self._weights)
        return [version.answer(row) for version, row in zip(mine, probabilities, strict=True)]

    @torch.inference_mode()
    def _weights(self, served: Sequence[Served]) -> Weights:
        """Their weights in this order: of each its own, or made by the hypernetwork that its embedding is pinned to."""
        pinned: dict[int, list[tuple[int, np.ndarray]]] = {}
        own: list[tuple[int, TaskModule]] = []
        for place, version in enumerate(served):
            if isinstance(version.learned, TaskModule):
                own.append((place, version.learned))
            elif version.learned is not None:
                pinned.setdefault(version.hypernetwork, []).append((place, version.learned))
        generated = [
            self._hypernetwork(number)(torch.from_numpy(np.stack([z for _, z in of_it])).to(self._engine.device))
            for number, of_it in pinned.items()
        ]
        weights: list[Weights] = [*generated, *(module.weights() for _, module in own)]
        if len(weights) == 1:
            return weights[0]
        order = np.argsort([place for place, _ in [*itertools.chain(*pinned.values()), *own]]).tolist()
        return TaskWeights.joined(weights, order) if own else GeneratedAdapters.joined(generated, order)

    def _hypernetwork(self, version: int) -> Hypernetwork:
        if version == FIRST_HYPERNETWORK:
            return self._engine.hypernetwork
        if self._bundled is not None:
            return self._bundled
        assert self._services is not None
        assert self._base is not None
        return hypernetwork_at(self._services, self._base, version, self._engine.device)

    def _resolve(self, reference: Reference) -> Served:
        if self._services is None:
            return self._served.get(str(reference), lambda: self._source(reference))
        with self._services.database.read() as session:
            version = VersionRepository(session).resolve(reference)
        services = self._services
        return self._served.get(version.reference, lambda: self._load(services, version))

    def _load(self, services: Services, version: EmbeddingVersion) -> Served:
        assert self._base is not None
        require_pins(version, self._base)
        task = Task(version.task, version.task_kind, version.labels, version.words, version.low, version.high)
        learned, trie = self._learned(version, services.read(version.artifact)), self._engine.trie(task.words)
        return self._fitting(Served(
            task, version.version, learned, version.hypernetwork_version, trie, version.weak, version.pairs,
            readout_of(services, version),
        ))  # fmt: skip

    def _learned(self, version: EmbeddingVersion, content: bytes) -> Learned:
        """What a version's file holds, beside a readout. Raises InputError: of a method that is not known here."""
        kind = version.content
        if kind == "embedding":
            return unpack_embedding(content)
        return module_of(content, version, self._engine) if kind == "weights" else None

    def _unbundle(self, bundle: Bundle) -> None:
        self._bundled = bundle.hypernetwork(self._engine.device)
        served = self._fitting(bundle.served(self._engine))
        for reference in (Reference(served.task.name), Reference(served.task.name, alias=None, version=served.version)):
            self._served.keep(str(reference), served)

    def _source(self, reference: Reference) -> Served:
        assert self._base is not None
        source = next((shipped for shipped in self._base.sources if shipped.name == reference.task), None)
        if source is None or reference not in (Reference(source.name), Reference(source.name, None, 1)):
            raise NotFoundError(f"Base {self._base.name} has no {reference}.", f"onboard base show {self._base.name}")
        task = Task(source.name, source.kind, source.labels, source.words, source.low, source.high, source=True)
        z, trie = self._base.embeddings[source.name], self._engine.trie(task.words)
        return self._fitting(Served(task, 1, z, FIRST_HYPERNETWORK, trie, weak=False, pairs=source.pairs))

    def _fitting(self, served: Served) -> Served:
        """The same. Raises PinMismatchError: an embedding of another size than the base's hypernetworks take."""
        size, learned = self._engine.hypernetwork.sizes["task_embedding_size"], served.learned
        if isinstance(learned, np.ndarray) and learned.shape != (size,):
            raise PinMismatchError(
                f"{served.task.name}@v{served.version} has {learned.shape} numbers, this hypernetwork takes {size}.",
                "onboard base show",
                task=served.task.name,
            )
        return served


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
