"""The document of a job: what `submit --wait --json`, `GET /v1/jobs/{id}/report` and the HTML report are made from.

JSON throughout. The keys of `JobReport` down to `seconds` are a promise to those outside; the rest only explains them.
Every key may be absent or null: a queued job has hardly any, and a reader shows what there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NotRequired, TypedDict

from onboard.domain.calibration import CalibrationJson, UnknownJson
from onboard.domain.label_next import LabelNextJson
from onboard.domain.label_scores import LabelScoreJson
from onboard.domain.memory_used import HalvedJson
from onboard.domain.names import did_you_mean
from onboard.domain.readout import ProvisionalJson, ReadoutJson
from onboard.domain.tried import MethodsJson
from onboard.errors import InputError

JsonLabel = str | int | bool | float
Estimate = Literal["cross-validated"]
ValidationKind = Literal["held-out", "cross-validated"]

# The metrics of each kind of task; the first decides where a job does not name one.
METRICS: Final[Mapping[str, Sequence[str]]] = {
    "classification": ("accuracy", "macro_f1", "mcc", "log_loss"),
    "regression": ("spearman", "pearson", "mse"),
    "multilabel": ("micro_f1", "macro_f1", "lrap", "exact_match"),
}
CALIBRATION_ERROR: Final = "calibration_error"  # measured of classes beside these; it decides nothing
LOWER_IS_BETTER: Final = frozenset({"log_loss", "mse", CALIBRATION_ERROR})
SHARE_METRICS: Final = frozenset({"accuracy", "macro_f1", "micro_f1", "lrap", "exact_match"})  # shown as per cent


def plain_number(value: float, decimals: int = 3) -> str:
    """A metric's value with so many decimals; with two digits where it is so small that these would say nothing."""
    return f"{value:.2g}" if 0 < abs(value) < 10**-decimals * 5 else f"{value:.{decimals}f}"


def decimals_of(value: float, digits: int) -> int:
    """Decimals that so many digits of a number other than 0 need."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def require_metric(metric: str, kind: str) -> None:
    """Raise InputError unless a task of this kind has the metric; an empty one leaves the choice."""
    if metric and metric not in METRICS[kind]:
        raise InputError(
            "unknown-metric-of-kind",
            metric=metric,
            kind=kind,
            guess=did_you_mean(metric, METRICS[kind]),
            allowed=list(METRICS[kind]),
        )


class MetricJson(TypedDict):
    """A metric with its 95% interval.

    value: accuracy, exact_match, lrap and F1 are shares (0…1), mcc and correlations −1…1, log_loss nats, mse squared
        label units;
        calibration_error 0…1: how far the probability of an answer is from the share that is right.
    low, high: ends of the interval; null where the rows are too few to have one.
    n: rows it was measured on.
    estimate: "cross-validated" where every row was predicted by a model that had not seen it, though the published
        version has seen them all; absent where no part of the training has seen the rows.
    note: why the value is not what one would expect (undefined and given as 0, …).
    labels: with macro_f1 of a version: precision, recall, F1 and rows of each label, whose mean F1 it is.
    """

    value: float
    low: float | None
    high: float | None
    n: int
    estimate: NotRequired[Estimate]
    note: NotRequired[str]
    labels: NotRequired[list[LabelScoreJson]]


MetricsJson = dict[str, MetricJson]  # by metric name
# by baseline: "majority" and "tfidf_logistic_regression", or "mean" and "tfidf_ridge"
BaselinesJson = dict[str, MetricsJson]


class Splits(TypedDict, total=False):
    """Metrics by split. `validation` may have chosen the init or the step; `test` never chose anything."""

    validation: MetricsJson | None
    test: MetricsJson | None


class BaselineSplits(TypedDict, total=False):
    """The baselines, trained on the same rows and scored on the same rows as the version, by split."""

    validation: BaselinesJson | None
    test: BaselinesJson | None


class CandidateJson(TypedDict, total=False):
    """One init that the probe looked at.

    embedding: its reference ("sst2@v1", "mean", "random").
    loss: mean loss on the probe's rows, in nats; low and high are its 95% interval.
    rows: rows it was scored on; overlap: rows that it had been trained on.
    words: which word of the candidate stood for each label, in the order of the task's labels.
    accuracy: share of the rows answered right before any training.
    round: the last round of the race that it took part in, from 1; later rounds have more rows.
    tuned: held-out loss after a few steps of training, in nats; null for those that left before.
    """

    embedding: str
    loss: float
    low: float | None
    high: float | None
    rows: int | None
    overlap: int | None
    words: list[str] | None
    accuracy: float | None
    round: int | None
    tuned: float | None


class InitJson(TypedDict, total=False):
    """Where training started, and what it was chosen from.

    rows: rows that the chosen one was scored on; overlap: rows that some candidate had been trained on.
    reason: why, where nothing was probed ("asked for").
    strategy: how it was chosen ("race", "exhaustive").
    prefilter: how many embeddings there are (`considered`), and how many of them were worth a measurement (`kept`).
    ties: those that the rows cannot tell from the chosen one.
    alarm: why nothing that was learned before is worth starting from; null where something is.
    weights: what the chosen mixture is made of, by embedding.
    most_like: what the nearest of the base's own tasks ask, by embedding, the chosen one first; at most three.
    generated_by: whose adapters weights of the task's own start at: a version of a task; left out of all others.
    known_too: whether the candidates were measured on rows that they had been trained on, because nearly all are such.
    """

    chosen: str | None
    candidates: list[CandidateJson] | None
    rows: int | None
    overlap: int | None
    reason: str | None
    strategy: str | None
    prefilter: dict[str, int] | None
    ties: list[str] | None
    alarm: str | None
    weights: dict[str, float] | None
    most_like: dict[str, str] | None
    known_too: bool | None
    generated_by: str | None


class WarningJson(TypedDict, total=False):
    """Something about the dataset that may explain a bad result, and what to do about it.

    count: how many rows or labels it is about; examples: a few of them.
    """

    code: str
    type: str
    message: str
    remedy: str | None
    count: int | None
    examples: list[dict[str, Any]] | None


class LabelCountJson(TypedDict, total=False):
    """A label as it was submitted, the word that stands for it, and its rows in the training split."""

    label: JsonLabel
    word: str | None
    count: int


class DatasetJson(TypedDict, total=False):
    """What was learned from. rows: by split ("train", "validation", "test"); pairs: whether its texts come in pairs."""

    name: str | None
    kind: Literal["classification", "regression", "multilabel"]
    pairs: bool | None
    rows: dict[str, int] | None
    labels: list[LabelCountJson] | None
    digest: str | None
    warnings: list[WarningJson] | None


class ConfusionJson(TypedDict, total=False):
    """True labels (rows) and predicted (columns) of held-out rows, or training rows each predicted without itself."""

    labels: list[JsonLabel]
    matrix: list[list[int]]
    split: Literal["validation", "test"]


class WithoutRowsJson(TypedDict):
    """What a version without labeled rows was made of.

    labels: whose words it was; described: how many of them have a description.
    texts: that say where the middle is; unlabelled: whether they are the submitted ones, else they ship with Onboard.
    """

    labels: int
    described: int
    texts: int
    unlabelled: bool


class TrainingJson(TypedDict, total=False):
    """How training went. loss and z_norm: one number per step; padding_share: share of padding among the tokens.

    share: of the way from the start to where training went that was taken, by rows that were not trained on.
    chosen_on: held-out rows that chose that; null where none did. trained: how many numbers; settings: of the method.
    without_rows: of a version without labeled rows alone.
    """

    method: str | None
    settings: dict[str, Any] | None
    trained: int | None
    steps: int | None
    learning_rate: float | None
    loss: list[float] | None
    z_norm: list[float] | None
    padding_share: float | None
    share: float | None
    chosen_on: int | None
    without_rows: NotRequired[WithoutRowsJson]


class CurvePointJson(TypedDict, total=False):
    """Share of rows predicted right out of fold, by how many rows were trained on (on average)."""

    rows: float
    accuracy: float


class MoreRowsJson(TypedDict, total=False):
    """What `more` labelled rows more would buy: change of accuracy (a share) with its 95% interval.

    gain, low, high: null where it cannot be told; then `reason` says why.
    points: the learning curve that it was extrapolated from.
    of_readout: whether that is the readout's alone, as training on fewer rows would have taken too long.
    """

    points: list[CurvePointJson]
    more: int
    gain: float | None
    low: float | None
    high: float | None
    reason: str | None
    of_readout: bool


class AliasMoveJson(TypedDict, total=False):
    """Whether an alias (`latest`) moved to this version, and why or why not; `present` is what it named before."""

    alias: str
    moved: bool
    reason: str
    comparison: dict[str, Any] | None
    present: str


class ErrorJson(TypedDict, total=False):
    """What ended a job that did not succeed."""

    code: str
    message: str
    remedy: str | None


class JobReport(TypedDict, total=False):
    """The whole document of a job.

    metric: name of the metric that decides (default: accuracy, spearman).
    seconds: by stage. events: the job's log, as `JobEvent.to_json` writes it.
    weak: no better than always giving the commonest label; weak_reason says by which numbers.
    validation_kind: how the validation metrics came about; null with `validation_reason` where there are none.
    memory_bytes: the most that the last attempt held, with the base: of the GPU by PyTorch, on a CPU by its process;
        null where the system does not tell.
    pins: digests and versions that this version depends on, by name.
    """

    job: str
    state: str
    task: str
    version: int | None
    embedding_digest: str | None
    hypernetwork_version: int | None
    init: InitJson | None
    metrics: Splits | None
    guard: dict[str, Any] | None
    seconds: dict[str, float] | None

    metric: str | None
    stage: str | None
    validation_kind: ValidationKind | None
    validation_reason: str | None
    baselines: BaselineSplits | None
    weak: bool | None
    weak_reason: str | None
    latest: AliasMoveJson | None
    confusion: ConfusionJson | None
    dataset: DatasetJson | None
    training: TrainingJson | None
    tuning: dict[str, Any] | None
    readout: ReadoutJson | None
    provisional: ProvisionalJson | None
    prior: dict[str, Any] | None
    calibration: CalibrationJson | None
    unknown: UnknownJson | None
    methods: MethodsJson | None
    memory_bytes: int | None
    more_rows: MoreRowsJson | None
    label_next: LabelNextJson | None
    halved: list[HalvedJson] | None
    error: ErrorJson | None
    pins: dict[str, Any] | None
    created_at: str | None
    finished_at: str | None
    events: list[dict[str, Any]] | None
