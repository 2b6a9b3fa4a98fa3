"""The versions that can answer, of a service's registry or of a base alone, with their hypernetworks.

The cache holds a version's embedding and words (a few hundred bytes), its readout and its novelty detector, but nothing
that is generated per batch. Task-specific weights are cached as they are, which may take megabytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from onboard.bases import Base
from onboard.domain.canary import Canary
from onboard.domain.dataset import Label
from onboard.domain.names import Reference
from onboard.domain.task import FIRST_HYPERNETWORK, AliasNames, EmbeddingVersion, Task, fitting_names, labels_called
from onboard.errors import DamagedError, InputError, NotFoundError, OnboardError, PinMismatchError
from onboard.hypernetworks.engines import hypernetwork_at
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.on_demand import Learned
from onboard.model.task_module import TaskModule
from onboard.registry.search import Current, SearchRepository
from onboard.registry.services import Services
from onboard.registry.versions import VersionRepository
from onboard.statistics.drift import Training
from onboard.statistics.novelty import Novelty
from onboard.statistics.readout import Readout
from onboard.storage.cache import Cache
from onboard.storage.drift import training_in
from onboard.storage.embedding import verified_embedding
from onboard.storage.novelty import novelty_in
from onboard.versions.answers import module_of
from onboard.versions.describe import resolve_known
from onboard.versions.readouts import readout_of

KEPT_BYTES: Final = 256 << 20  # of cached versions; the least recently used ones are evicted
# errors that concern one version only; InputError: this release does not support its method
OF_A_ROW: Final = (NotFoundError, PinMismatchError, DamagedError, InputError)
_AT_ONCE: Final = 8  # files that are read concurrently
_AROUND_BYTES: Final = 2_048  # of a version without labels, including Python's overhead
_LABEL_BYTES: Final = 192  # of a label and its word, without their characters


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """A version that is ready to answer.

    Args:
        learned: its embedding (t,) float32, or task-specific weights; None for a readout alone.
        hypernetwork: version of the hypernetwork that it is pinned to; the first for versions without an embedding.
        pairs: whether it takes two texts; None if unknown.
        temperature: divides its log-probabilities.
        novelty: novelty detector; None for older versions, few rows, and shipped tasks.
        training: statistics of its training rows, to compare predicted texts with; None for older versions.
        whole: whether it has all labels of its task.
        unmeasured: whether no rows show how good it is.
    """

    task: Task
    version: int
    learned: Learned
    hypernetwork: int
    weak: bool
    pairs: bool | None
    readout: Readout | None = None
    temperature: float = 1.0
    novelty: Novelty | None = None
    training: Training | None = None
    whole: bool = True
    unmeasured: bool = False

    @property
    def labels(self) -> tuple[Label, ...]:
        """Its labels; empty for a regression."""
        return self.task.labels

    @property
    def mixes(self) -> bool:
        """Whether its rows go through the model in a shared batch."""
        return self.learned is not None and (not isinstance(self.learned, TaskModule) or self.learned.MIXES)

    def called(self, names: AliasNames) -> ServedVersion:
        """Return the version with the label names of the alias that requested it."""
        return replace(self, task=replace(self.task, labels=labels_called(self.task.labels, names)))

    def among(self, places: Sequence[int]) -> ServedVersion:
        """Return the version restricted to the labels at these indices."""
        labels = tuple(self.task.labels[place] for place in places)
        words = tuple(self.task.words[place] for place in places)
        readout = None if self.readout is None else self.readout.of_labels(places)
        return replace(self, task=replace(self.task, labels=labels, words=words), readout=readout, whole=False)

    @property
    def kept_bytes(self) -> int:
        """Approximate memory, in bytes."""
        letters = sum(4 * len(str(text)) for text in (*self.task.labels, *self.task.words))
        readout = 0 if self.readout is None else self.readout.weights.nbytes + self.readout.bias.nbytes
        known = 0 if self.novelty is None else self.novelty.means.nbytes
        around = _AROUND_BYTES + letters + _LABEL_BYTES * len(self.task.words)
        compared = 0 if self.training is None else self.training.sums.products.nbytes
        return around + _bytes_of(self.learned) + readout + known + compared


@dataclass(frozen=True, slots=True)
class SharedAlias:
    """An alias with a canary, which answers a share of the texts.

    Args:
        main, second: the alias's version, and the canary; or the error of one that cannot answer.
    """

    reference: Reference
    main: ServedVersion | OnboardError
    second: ServedVersion | OnboardError
    canary: Canary

    def chosen(self, text_a: str, text_b: str | None) -> ServedVersion | OnboardError:
        """Return the one that answers a text or a pair."""
        by_canary = self.canary.answers(self.reference.task, str(self.reference.alias), text_a, text_b)
        return self.second if by_canary else self.main


Resolved = dict[str, ServedVersion | OnboardError | SharedAlias]


class ServedVersions(Protocol):
    """Source of versions."""

    def resolve(self, references: Collection[Reference]) -> Resolved:
        """Resolve references, by their text; an error (one of `OF_A_ROW`) replaces a version that cannot answer."""

    def hypernetwork(self, version: int) -> Hypernetwork:
        """Return this version of the base's hypernetwork. Raises PinMismatchError, DamagedError."""

    @property
    def kept_bytes(self) -> int:
        """Approximate memory of the cached versions, in bytes."""


class SourceVersions:
    """The source tasks of a base."""

    def __init__(self, base: Base, engine: Engine) -> None:
        self._base, self._engine = base, engine
        self._sources = {source.name: source for source in base.sources}
        self._ready: dict[str, ServedVersion] = {}

    def resolve(self, references: Collection[Reference]) -> Resolved:
        """See `ServedVersions.resolve`."""
        return {str(reference): self._source(reference) for reference in references}

    def hypernetwork(self, version: int) -> Hypernetwork:
        """See `ServedVersions.hypernetwork`."""
        assert version == FIRST_HYPERNETWORK
        return self._engine.hypernetwork

    @property
    def kept_bytes(self) -> int:
        """Always 0: the base holds them."""
        return 0

    def _source(self, reference: Reference) -> ServedVersion | OnboardError:
        source = self._sources.get(reference.task)
        if source is None or reference not in (Reference(source.name), Reference(source.name, None, 1)):
            return NotFoundError("version-not-in-base", base=self._base.name, reference=reference)
        if source.name not in self._ready:
            task = Task(source.name, source.kind, source.labels, source.words, source.low, source.high, source=True)
            z = self._base.embeddings[source.name]
            served = ServedVersion(task, 1, z, FIRST_HYPERNETWORK, weak=False, pairs=source.pairs)
            self._ready[source.name] = fitting(served, self._engine)
        return self._ready[source.name]


class RegistryVersions:
    """The versions of a service, cached up to a memory limit and read on demand.

    Args:
        kept_bytes: memory limit of the cache.
    """

    def __init__(self, services: Services, base: Base, engine: Engine, kept_bytes: int) -> None:
        self._services, self._base, self._engine = services, base, engine
        self._kept = Cache[tuple[str, int], ServedVersion](kept_bytes, weigh=lambda served: served.kept_bytes)

    def resolve(self, references: Collection[Reference]) -> Resolved:
        """See `ServedVersions.resolve`; needs few queries for any number of references."""
        with self._services.database.read() as session:
            currents = SearchRepository(session).currents(references)
            numbers = {number for current in currents.values() for number in _numbers(current)}
            at_hand = {number: self._kept.find(number) for number in numbers}
            absent = [number for number, served in at_hand.items() if served is None]
            versions = VersionRepository(session).published(absent) if absent else ()
        served = {**at_hand, **{(version.task, version.version): one for version, one in self._loaded(versions)}}
        resolved: Resolved = {}
        missing: list[Reference] = []
        for reference in references:
            current = currents.get(reference)
            ready = [] if current is None else [served[number] for number in _numbers(current)]
            whole = [_called(one, current.names) for one in ready if one is not None and current is not None]
            if current is None or len(whole) < len(ready):
                missing.append(reference)
            elif current.canary is None:
                (resolved[str(reference)],) = whole
            else:
                main, second = whole
                resolved[str(reference)] = SharedAlias(reference, main, second, current.canary)
        if missing:  # find the reason; a version may also have been published just now
            for text, known in resolve_known(self._services.database, missing).items():
                resolved[text] = known if isinstance(known, NotFoundError) else self._load(known)
        return resolved

    def hypernetwork(self, version: int) -> Hypernetwork:
        """See `ServedVersions.hypernetwork`."""
        if version == FIRST_HYPERNETWORK:
            return self._engine.hypernetwork
        return hypernetwork_at(self._services, self._base, version, self._engine.device)

    @property
    def kept_bytes(self) -> int:
        """See `ServedVersions.kept_bytes`."""
        return self._kept.weight

    def _loaded(
        self, versions: Collection[EmbeddingVersion]
    ) -> list[tuple[EmbeddingVersion, ServedVersion | OnboardError]]:
        if len(versions) < _AT_ONCE:
            return [(version, self._load(version)) for version in versions]
        with ThreadPoolExecutor(_AT_ONCE) as readers:  # a remote store has latency
            return list(zip(versions, readers.map(self._load, versions), strict=True))

    def _load(self, version: EmbeddingVersion) -> ServedVersion | OnboardError:
        try:
            require_pins(version, self._base)
            task = Task(version.task, version.task_kind, version.labels, version.words, version.low, version.high)
            content = self._services.read(version.artifact)
            learned, readout = self._learned(version, content), readout_of(self._services, version, content=content)
            pinned, pairs = version.hypernetwork_version, version.pairs
            served = ServedVersion(
                task,
                version.version,
                learned,
                pinned,
                version.weak,
                pairs,
                readout,
                version.temperature,
                novelty_in(content),
                training_in(content),
                unmeasured=version.unmeasured,
            )
            served = fitting(served, self._engine)
        except OF_A_ROW as error:
            return error
        self._kept.keep((version.task, version.version), served)
        return served

    def _learned(self, version: EmbeddingVersion, content: bytes) -> Learned:
        """Read a version's embedding or weights. Raises InputError: this release does not support its method."""
        kind = version.content
        if kind == "readout":
            return None  # `readout_of` reads it
        if kind == "weights":
            return module_of(content, version, self._engine)
        return verified_embedding(content, version)


def require_pins(version: EmbeddingVersion, base: Base) -> None:
    """Raise PinMismatchError unless the version belongs to this base and its backbone."""
    if version.backbone_digest != base.backbone_digest or version.base_digest != base.digest:
        raise PinMismatchError(
            "version-of-other-backbone",
            version=version.reference,
            pinned=version.backbone_digest,
            present=base.backbone_digest,
            base=base.name,
        )


def fitting(served: ServedVersion, engine: Engine) -> ServedVersion:
    """Return the version with a copy of its embedding.

    Raises:
        PinMismatchError: the embedding does not have the size that the hypernetwork takes.
    """
    if not isinstance(served.learned, np.ndarray):
        return served
    size = engine.hypernetwork.sizes["task_embedding_size"]
    if served.learned.shape != (size,):
        raise PinMismatchError(
            "embedding-width-differs",
            task=served.task.name,
            version=served.version,
            shape=served.learned.shape,
            size=size,
        )
    return replace(served, learned=np.array(served.learned, dtype=np.float32))


def _bytes_of(learned: Learned) -> int:
    if learned is None:
        return 0
    return learned.kept_bytes if isinstance(learned, TaskModule) else learned.nbytes


def _numbers(current: Current) -> list[tuple[str, int]]:
    """Return task and number of its version and, if any, of its canary."""
    canary = [] if current.canary is None else [current.canary.version]
    return [(current.task, version) for version in (current.version, *canary)]


def _called(served: ServedVersion | OnboardError, names: AliasNames | None) -> ServedVersion | OnboardError:
    """Return the version with the label names of the alias, if it has the renamed labels; a canary may lack some."""
    if isinstance(served, OnboardError):
        return served
    fitting_now = fitting_names(served.labels, names)
    return served.called(fitting_now) if fitting_now else served
