"""The outputs of the stages with their JSON form, which is stored so that the next attempt can continue."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from onboard.contract.checks import DatasetWarning
from onboard.contract.document import Document, Metrics
from onboard.contract.guard import GuardVerdict, Tuning
from onboard.contract.priors import PriorUse
from onboard.contract.report import (
    Calibration,
    Confusion,
    ExpectedGain,
    LabelNext,
    LatestMove,
    MethodChoice,
    TrainingFacts,
    TrainingStart,
    ValidationKind,
)
from onboard.statistics.readout import Readout
from onboard.storage.readout import pack_readout, unpack_readout
from onboard.train.crossvalidation import IN_NONE, in_a_fold
from onboard.versions.protected import Identity


@dataclass(frozen=True)
class Folds:
    """Predictions of training rows by embeddings that were trained without them.

    Args:
        fold: fold of each training row (n,), or `IN_NONE`.
        probabilities: (m, K) float64 of the rows that are in a fold, in their order.
        z: (folds, t) float32, one embedding per fold.
    """

    fold: np.ndarray
    probabilities: np.ndarray
    z: np.ndarray


def _written(value: object) -> object:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Readout):
        value = pack_readout(value, "")
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, StageOutput | Document):
        return value.to_json()
    if isinstance(value, Folds):
        return _written(vars(value))
    if isinstance(value, dict):
        return {name: _written(part) for name, part in value.items()}
    return [_written(part) for part in value] if isinstance(value, tuple | list) else value


# Readers of fields that are stored as something else than plain JSON.
_Readers = dict[str, Callable[[Any], object]]


def _floats(numbers: Iterable[Any]) -> np.ndarray:
    return np.array([*numbers], dtype=np.float32)


def _integers(numbers: Iterable[Any]) -> np.ndarray:
    return np.array([*numbers], dtype=np.int64)


def _folds(document: Mapping[str, Any] | None) -> Folds | None:
    if document is None:
        return None
    return Folds(_integers(document["fold"]), np.array(document["probabilities"]), _floats(document["z"]))


def _readout(packed: str | None) -> Readout | None:
    return None if packed is None else unpack_readout(base64.b64decode(packed), "")


def _bytes(packed: str | None) -> bytes | None:
    return None if packed is None else base64.b64decode(packed)


def _document(kind: type[Document]) -> Callable[[Any], Document | None]:
    """Return a reader of an optional document of the contract."""
    return lambda document: None if document is None else kind.model_validate(document)


def _warnings(documents: Iterable[Any]) -> list[DatasetWarning]:
    return [DatasetWarning.model_validate(document) for document in documents]


def _numbers(rows: Iterable[Any] | None) -> np.ndarray | None:
    return None if rows is None else np.array([*rows])


def _by_share(document: Mapping[str, Any] | None) -> dict[str, np.ndarray] | None:
    return None if document is None else {share: np.array(numbers) for share, numbers in document.items()}


class StageOutput:
    """Mixin for frozen dataclasses that are stage outputs: their JSON form, and `numbers` for the log."""

    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {}

    def to_json(self) -> dict[str, Any]:
        """Return the output as a JSON-compatible document, fields in order."""
        return {name: _written(value) for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read the output of `to_json`; ignores newer fields. Raises KeyError, TypeError or ValueError if it is
        invalid.
        """
        later = {field.name for field in fields(cls) if field.default is not MISSING}  # type: ignore[arg-type]
        readers = {name: reader for name, reader in cls._readers.items() if name in document or name not in later}
        read = {name: reader(document[name]) for name, reader in readers.items()}
        return cls(**{**document, **read})


@dataclass(frozen=True)
class ProbeOutput(StageOutput):
    """The start of the training.

    Args:
        z: (t,) float32; empty if no embedding is trained.
        words: words that represent the labels.
        fingerprint: of the dataset, packed; "" if no embedding is trained.
        init: the start, and the candidates that it was chosen from.
        known: sorted hashes (k,) of the job's rows on which the start or the head was trained.
    """

    z: np.ndarray
    words: tuple[str, ...]
    fingerprint: str
    init: TrainingStart
    known: np.ndarray
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {
        "z": _floats, "words": tuple, "known": _integers, "init": TrainingStart.model_validate,
    }  # fmt: skip


@dataclass(frozen=True)
class TrainOutput(StageOutput):
    """A trained task with its readout.

    Args:
        z: (t,) float32; empty without an embedding.
        training: facts of the training.
        folds: out-of-fold predictions; None without a cross-validation.
        more_rows: expected gain from more labeled rows; None if not requested.
        label_next: report on unlabeled texts; None without any.
        warnings: warnings about the rows.
        readout: readout of the same rows; None if it is disabled or the rows allow none.
        read_out: its out-of-fold probabilities (m, K) of the rows that are in a fold; None without folds.
        no_readout: why there is no readout, if one was requested.
        weights: file of the task-specific weights, without the version's facts; None if the method has none.
        prior: what earlier tasks contributed to the readout; None without a prior.
    """

    z: np.ndarray
    training: TrainingFacts
    folds: Folds | None
    more_rows: ExpectedGain | None
    label_next: LabelNext | None
    warnings: list[DatasetWarning]
    numbers: dict[str, object]
    readout: Readout | None = None
    read_out: np.ndarray | None = None
    no_readout: str | None = None
    weights: bytes | None = None
    prior: PriorUse | None = None
    _readers: ClassVar[_Readers] = {
        "z": _floats, "folds": _folds, "readout": _readout, "read_out": _numbers, "weights": _bytes,
        "prior": _document(PriorUse), "training": TrainingFacts.model_validate, "more_rows": _document(ExpectedGain),
        "label_next": _document(LabelNext), "warnings": _warnings,
    }  # fmt: skip

    def in_first_folds(self, count: int) -> TrainOutput:
        """Return the output as if only the first `count` folds existed."""
        folds = self.folds
        assert folds is not None
        own = folds.fold[in_a_fold(folds.fold)] < count
        first = Folds(np.where(folds.fold < count, folds.fold, IN_NONE), folds.probabilities[own], folds.z[:count])
        return replace(self, folds=first, read_out=None if self.read_out is None else self.read_out[own])

    @property
    def has_embedding(self) -> bool:
        """Whether an embedding answers; otherwise task-specific weights or the readout alone do."""
        return len(self.z) > 0

    @property
    def is_readout(self) -> bool:
        """Whether the readout alone answers."""
        return not self.has_embedding and self.weights is None

    @property
    def method(self) -> str:
        """Name of the training method."""
        return self.training.method or ""


def _trained(document: Mapping[str, Any] | None) -> TrainOutput | None:
    return None if document is None else TrainOutput.from_json(document)


@dataclass(frozen=True)
class ChooseOutput(StageOutput):
    """The choice of `--method auto`.

    Args:
        trained: training of a method other than the default; None to publish the output of the earlier stages.
        methods: all methods that were tried.
    """

    trained: TrainOutput | None
    methods: MethodChoice
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {"trained": _trained, "methods": MethodChoice.model_validate}


@dataclass(frozen=True)
class NoStep(StageOutput):
    """No step: nothing was tuned, or the step is not worth guarding; `diverged` if the tuning failed."""

    artifact: None
    diverged: bool
    tuning: Tuning
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {"tuning": Tuning.model_validate}


@dataclass(frozen=True)
class ProposedStep(StageOutput):
    """The tuning step that is proposed to the guard.

    Args:
        z: (t,) float32 after the whole step.
        artifact: the hypernetwork after the step.
        folds: by share of the step, out-of-fold probabilities (m, K) of the training rows; None without folds.
        losses: by share (0 is the embedding alone), loss of the new task in nats, as far as measured.
        tuning: facts of the tuning.
    """

    z: np.ndarray
    artifact: str
    folds: dict[str, np.ndarray] | None
    losses: dict[str, float]
    tuning: Tuning
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {"z": _floats, "folds": _by_share, "tuning": Tuning.model_validate}


TuneOutput = NoStep | ProposedStep


def tune_output(document: Mapping[str, Any]) -> TuneOutput:
    """Read the tune stage's output from JSON. Raises like `StageOutput.from_json`."""
    return ProposedStep.from_json(document) if document["artifact"] else NoStep.from_json(document)


@dataclass(frozen=True)
class GuardOutput(StageOutput):
    """The guard's decision.

    Args:
        guard: its verdict.
        share: accepted share of the proposed step; 0 if refused.
        considered: the embeddings in use that the guard checked.
        tuning: facts of the tuning, and whether the accepted share is kept.
        folds: after this share; None without folds, or if the step was refused.
        label_next: after this share; None if nothing is kept.
    """

    guard: GuardVerdict
    share: float
    considered: tuple[Identity, ...]
    tuning: Tuning
    folds: Folds | None
    label_next: LabelNext | None
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {
        "guard": GuardVerdict.model_validate, "tuning": Tuning.model_validate, "folds": _folds,
        "label_next": _document(LabelNext),
        "considered": lambda identities: tuple(map(tuple, identities)),
    }  # fmt: skip


@dataclass(frozen=True)
class EvaluateOutput(StageOutput):
    """How good the version is, as in its report (`JobResult`).

    Args:
        metric: the deciding metric.
        metrics, baselines: by split; `baselines` only for splits with rows.
        latest: whether the alias moves; `present` is the version that it names now.
        calibration: calibration of the answers; None for a regression.
    """

    metric: str
    metrics: dict[str, Metrics | None]
    validation_kind: ValidationKind | None
    validation_reason: str | None
    baselines: dict[str, dict[str, Metrics]]
    weak: bool
    weak_reason: str
    confusion: Confusion | None
    latest: LatestMove
    numbers: dict[str, object]
    calibration: Calibration | None = None
    _readers: ClassVar[_Readers] = {
        "confusion": _document(Confusion), "latest": LatestMove.model_validate, "calibration": _document(Calibration),
    }  # fmt: skip


def _evaluated(document: Mapping[str, Any] | None) -> EvaluateOutput | None:
    return None if document is None else EvaluateOutput.from_json(document)


@dataclass(frozen=True)
class FirstOutput(StageOutput):
    """The readout alone, which is published before anything else is learned.

    Args:
        trained: the readout; None if the rows allow none, for the reason in `numbers`.
        evaluated: its evaluation, without baselines that need training; None likewise.
    """

    trained: TrainOutput | None
    evaluated: EvaluateOutput | None
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {"trained": _trained, "evaluated": _evaluated}
