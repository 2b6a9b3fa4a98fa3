"""What each stage of a job leaves, with its JSON form: that is stored, so that the next attempt goes on after it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from onboard.contract.document import Document
from onboard.contract.guard import GuardVerdict, Tuning
from onboard.contract.priors import PriorUse
from onboard.domain.calibration import CalibrationJson
from onboard.domain.label_next import LabelNextJson
from onboard.domain.report import (
    AliasMoveJson,
    BaselinesJson,
    ConfusionJson,
    InitJson,
    MetricsJson,
    MoreRowsJson,
    TrainingJson,
    ValidationKind,
    WarningJson,
)
from onboard.domain.tried import MethodsJson
from onboard.statistics.readout import Readout
from onboard.storage.readout import pack_readout, unpack_readout
from onboard.train.crossvalidation import IN_NONE, in_a_fold
from onboard.versions.protected import Identity


@dataclass(frozen=True)
class Folds:
    """Predictions of training rows by embeddings that were trained without them.

    Args:
        fold: of each training row (n,), or `IN_NONE`.
        probabilities: (m, K) float64 of the rows that are in a fold, in their order.
        z: (folds, t) float32, of each fold.
    """

    fold: np.ndarray
    probabilities: np.ndarray
    z: np.ndarray


def _written(value: object) -> object:
    """A field as JSON."""
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
    return [_written(part) for part in value] if isinstance(value, tuple) else value


# How fields are read that are not what JSON holds.
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


def _prior(document: Mapping[str, Any] | None) -> PriorUse | None:
    return None if document is None else PriorUse.model_validate(document)


def _numbers(rows: Iterable[Any] | None) -> np.ndarray | None:
    return None if rows is None else np.array([*rows])


def _by_share(document: Mapping[str, Any] | None) -> dict[str, np.ndarray] | None:
    return None if document is None else {share: np.array(numbers) for share, numbers in document.items()}


class StageOutput:
    """What a frozen dataclass needs to be left by a stage: its JSON form, and `numbers` for the log."""

    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {}

    def to_json(self) -> dict[str, Any]:
        """The output as a JSON-compatible document, the fields in their order."""
        return {name: _written(value) for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Read what `to_json` wrote, without what came later. Raises KeyError, TypeError, ValueError for all else."""
        later = {field.name for field in fields(cls) if field.default is not MISSING}  # type: ignore[arg-type]
        readers = {name: reader for name, reader in cls._readers.items() if name in document or name not in later}
        read = {name: reader(document[name]) for name, reader in readers.items()}
        return cls(**{**document, **read})


@dataclass(frozen=True)
class ProbeOutput(StageOutput):
    """Where the training starts.

    Args:
        z: (t,) float32; empty where no embedding is trained.
        words: that stand for the labels.
        fingerprint: of the dataset, packed; "" where no embedding is trained.
        init: what it is, and what it was chosen from.
        known: sorted hashes (k,) of the job's rows that trained what the training starts from, or the head.
    """

    z: np.ndarray
    words: tuple[str, ...]
    fingerprint: str
    init: InitJson
    known: np.ndarray
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {"z": _floats, "words": tuple, "known": _integers}


@dataclass(frozen=True)
class TrainOutput(StageOutput):
    """What a job has trained, and the readout beside it.

    Args:
        z: (t,) float32; empty without an embedding.
        training: how it went.
        folds: None without a cross-validation.
        more_rows: what more labelled rows would buy; None where that was not asked.
        label_next: of the unlabelled texts; None where there are none.
        warnings: of what was seen in the rows.
        readout: of the same rows; None where none is wanted, or none could be made.
        read_out: its probabilities (m, K) of the rows that are in a fold, each without its fold; None without folds.
        no_readout: why there is none, where one was wanted.
        weights: the file of the task's own weights, without the version's facts; None where the method has none.
        prior: what earlier tasks contributed to the readout; None without a prior.
    """

    z: np.ndarray
    training: TrainingJson
    folds: Folds | None
    more_rows: MoreRowsJson | None
    label_next: LabelNextJson | None
    warnings: list[WarningJson]
    numbers: dict[str, object]
    readout: Readout | None = None
    read_out: np.ndarray | None = None
    no_readout: str | None = None
    weights: bytes | None = None
    prior: PriorUse | None = None
    _readers: ClassVar[_Readers] = {
        "z": _floats, "folds": _folds, "readout": _readout, "read_out": _numbers, "weights": _bytes, "prior": _prior,
    }  # fmt: skip

    def in_first_folds(self, count: int) -> TrainOutput:
        """As if there were only the first so many of its folds."""
        folds = self.folds
        assert folds is not None
        own = folds.fold[in_a_fold(folds.fold)] < count
        first = Folds(np.where(folds.fold < count, folds.fold, IN_NONE), folds.probabilities[own], folds.z[:count])
        return replace(self, folds=first, read_out=None if self.read_out is None else self.read_out[own])

    @property
    def has_embedding(self) -> bool:
        """Whether a hypernetwork answers with it; else weights of its own do, or the readout alone."""
        return len(self.z) > 0

    @property
    def is_readout(self) -> bool:
        """Whether a readout is all that answers."""
        return not self.has_embedding and self.weights is None

    @property
    def method(self) -> str:
        """What it was trained with."""
        return self.training["method"] or ""


def _trained(document: Mapping[str, Any] | None) -> TrainOutput | None:
    return None if document is None else TrainOutput.from_json(document)


@dataclass(frozen=True)
class ChooseOutput(StageOutput):
    """What `--method auto` has chosen.

    Args:
        trained: of another method than the base's own; None where what the stages before have left is published.
        methods: all that were tried.
    """

    trained: TrainOutput | None
    methods: MethodsJson
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {"trained": _trained}


@dataclass(frozen=True)
class NoStep(StageOutput):
    """Nothing was tuned, or nothing of it is worth guarding; `diverged` where the tuning failed."""

    artifact: None
    diverged: bool
    tuning: Tuning
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {"tuning": Tuning.model_validate}


@dataclass(frozen=True)
class ProposedStep(StageOutput):
    """What tuning puts to the guard.

    Args:
        z: (t,) float32 after the whole proposed step.
        artifact: the hypernetwork after it.
        folds: probabilities (m, K) of the training rows without themselves, by what may be left of the step; None
            without folds.
        losses: the new task's by the same (0 is the embedding alone), as far as they were measured, nats.
        tuning: how it went.
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
    """What tuning left, from its JSON. Raises as `StageOutput.from_json`."""
    return ProposedStep.from_json(document) if document["artifact"] else NoStep.from_json(document)


@dataclass(frozen=True)
class GuardOutput(StageOutput):
    """What the guard let through.

    Args:
        guard: its verdict.
        share: of the proposed step; 0 where nothing was let through.
        considered: the embeddings in use that it knew of.
        tuning: how that went, and whether what was let through is kept.
        folds: after this share; None without folds, or where nothing was let through.
        label_next: the same after this share; None where nothing is kept.
    """

    guard: GuardVerdict
    share: float
    considered: tuple[Identity, ...]
    tuning: Tuning
    folds: Folds | None
    label_next: LabelNextJson | None
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {
        "guard": GuardVerdict.model_validate, "tuning": Tuning.model_validate, "folds": _folds,
        "considered": lambda identities: tuple(map(tuple, identities)),
    }  # fmt: skip


@dataclass(frozen=True)
class EvaluateOutput(StageOutput):
    """How good the version is, as its report says it (`JobReport`).

    Args:
        metric: that decides.
        metrics, baselines: by split; the second only of splits with rows.
        latest: whether the alias moves; `present` is the version that it names so far.
        calibration: how sure its answers sound; None of a regression.
    """

    metric: str
    metrics: dict[str, MetricsJson | None]
    validation_kind: ValidationKind | None
    validation_reason: str | None
    baselines: dict[str, BaselinesJson]
    weak: bool
    weak_reason: str
    confusion: ConfusionJson | None
    latest: AliasMoveJson
    numbers: dict[str, object]
    calibration: CalibrationJson | None = None


def _evaluated(document: Mapping[str, Any] | None) -> EvaluateOutput | None:
    return None if document is None else EvaluateOutput.from_json(document)


@dataclass(frozen=True)
class FirstOutput(StageOutput):
    """The readout alone, which is published before anything else is learned.

    Args:
        trained: it; None where the rows make none, and `numbers` say why.
        evaluated: how good it is, without the baselines that have to be trained; None likewise.
    """

    trained: TrainOutput | None
    evaluated: EvaluateOutput | None
    numbers: dict[str, object]
    _readers: ClassVar[_Readers] = {"trained": _trained, "evaluated": _evaluated}
