"""The client's results: plain, frozen, typed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onboard.client.json_object import JsonObject
from onboard.client.problems import error_of
from onboard.contract.document import read
from onboard.contract.embedding_file import embedding_digest, read_facts, unpack_embedding
from onboard.contract.predictions import PredictionDocument
from onboard.domain.dataset import Label
from onboard.domain.methods import LINEAR, WEIGHTS_FORMAT
from onboard.domain.names import Reference
from onboard.domain.prediction import Outcome, Prediction, Unanswered
from onboard.errors import ConflictError, DamagedError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Pins:
    """The backbone, hypernetwork and dataset that an embedding belongs to. It only works with them.

    Args:
        parent: what it was initialized from: "sst2@v1", "random", "mixture", …
        mixed_from: weight of each embedding of the mixture by name; empty without a mixture.
    """

    backbone_digest: str
    base_digest: str
    hypernetwork_version: int
    hypernetwork_digest: str
    dataset_digest: str
    parent: str
    seeds: tuple[int, ...]
    code_version: str
    mixed_from: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Embedding:
    """A version of a task's embedding, verified.

    Args:
        vector: (t,) float32, read-only.
        digest: "sha256:…" over the numbers of the vector.
        file_digest: "sha256:…" over `content`.
        content: the bytes of `embedding.safetensors`.
        labels, words: the task's labels and their label words.
        metrics: of the version, by split.
        weak: whether it is no better than the most frequent label.
        pairs: whether it takes two texts, `text_a` and `text_b`; None if the service does not know.
        stale: whether it is from the cache because the service was unavailable. An alias may point to a newer version
            by now. `age_seconds` is the age of the response.
        confirmed_at: epoch seconds at which the service last confirmed it.
    """

    task: str
    version: int
    vector: np.ndarray
    digest: str
    file_digest: str
    pins: Pins
    labels: tuple[Label, ...]
    words: tuple[str, ...]
    metrics: Mapping[str, Any]
    weak: bool
    content: bytes = field(repr=False)
    pairs: bool | None = None
    stale: bool = False
    confirmed_at: float = field(default_factory=time.time, repr=False)

    @property
    def age_seconds(self) -> float:
        """Seconds since the service last confirmed this version."""
        return max(0.0, time.time() - self.confirmed_at)

    @property
    def reference(self) -> str:
        """The reference of this version: `task@vN`."""
        return f"{self.task}@v{self.version}"


def digest_of_file(content: bytes) -> str:
    """Return `sha256:…` over the bytes."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def read_embedding(content: bytes, asked: Reference) -> Embedding:
    """Return the embedding in the bytes of `embedding.safetensors`.

    Raises:
        ConflictError: the version has task-specific weights or only a readout.
        DamagedError: the bytes contain no embedding, or that of another task or version.
    """
    facts = read_facts(content)
    if facts.get("format") == WEIGHTS_FORMAT and facts.get("method") == LINEAR:
        raise ConflictError("readout-without-embedding", asked=str(asked))
    if facts.get("format") == WEIGHTS_FORMAT:
        raise ConflictError("weights-without-embedding", asked=str(asked), method=facts.get("method"))
    vector = unpack_embedding(content)
    vector.flags.writeable = False
    try:
        embedding = _embedding(content, vector, facts)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise DamagedError("embedding-fact-missing", asked=str(asked), reason=error) from error
    if embedding.task != asked.task or asked.version not in (None, embedding.version):
        raise DamagedError("embedding-of-other-version", asked=str(asked), version=embedding.reference)
    return embedding


def _embedding(content: bytes, vector: np.ndarray, facts: Mapping[str, Any]) -> Embedding:
    return Embedding(
        task=facts["task"],
        version=int(facts["version"]),
        vector=vector,
        digest=embedding_digest(vector),
        file_digest=digest_of_file(content),
        pins=Pins(
            backbone_digest=facts["backbone"],
            base_digest=facts["base"],
            hypernetwork_version=int(facts["hypernetwork_version"]),
            hypernetwork_digest=facts["hypernetwork"],
            dataset_digest=facts["dataset"],
            parent=facts["init"],
            seeds=tuple(facts["seeds"]),
            code_version=facts["onboard"],
            mixed_from=dict(facts.get("mixed_from", {})),  # only for a mixture
        ),
        labels=tuple(facts["labels"]),
        words=tuple(facts["words"]),
        metrics=facts["metrics"],
        weak=bool(facts["weak"]),
        pairs=facts.get("pairs"),  # missing in files of earlier releases
        content=content,
    )


def prediction_of(document: JsonObject) -> Prediction:
    """Read a prediction. Services of earlier releases omit `weak` and probabilities. Raises AnswerError."""
    parsed = read(PredictionDocument, {"weak": False, **document}, document.place)
    shares = parsed.probabilities or ()
    return Prediction(
        parsed.label, parsed.probability, parsed.task, parsed.version, tuple(share.probability for share in shares),
        parsed.weak, tuple(share.label for share in shares), parsed.unknown, parsed.labels, bool(parsed.unmeasured),
    )  # fmt: skip


def outcome_of(document: JsonObject) -> Outcome:
    """Read a prediction, or the error in its place. Raises AnswerError."""
    if document.get("error") is None:
        return prediction_of(document)
    return Unanswered(document.read("task", str), document.read("ref", str), error_of(document.part("error")))
