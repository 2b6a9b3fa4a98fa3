"""The document of a job, used by `submit --wait --json`, `GET /v1/jobs/{id}/report` and the HTML report.

JSON throughout. The keys of `JobReport` down to `seconds` are stable for users; the rest only explains them. Every key
may be absent or null: a queued job has hardly any, and readers show what exists.
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

# The metrics of each kind of task; by default, the first one decides.
METRICS: Final[Mapping[str, Sequence[str]]] = {
    "classification": ("accuracy", "macro_f1", "mcc", "log_loss"),
    "regression": ("spearman", "pearson", "mse"),
    "multilabel": ("micro_f1", "macro_f1", "lrap", "exact_match"),
}
CALIBRATION_ERROR: Final = "calibration_error"  # additionally measured for classification; it decides nothing
LOWER_IS_BETTER: Final = frozenset({"log_loss", "mse", CALIBRATION_ERROR})
SHARE_METRICS: Final = frozenset({"accuracy", "macro_f1", "micro_f1", "lrap", "exact_match"})  # displayed as per cent


def plain_number(value: float, decimals: int = 3) -> str:
    """Format a metric's value with `decimals` decimals; with two significant digits if it would otherwise
    round to 0.
    """
    return f"{value:.2g}" if 0 < abs(value) < 10**-decimals * 5 else f"{value:.{decimals}f}"


def decimals_of(value: float, digits: int) -> int:
    """Return the number of decimals for `digits` significant digits of a number other than 0."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def require_metric(metric: str, kind: str) -> None:
    """Raise InputError unless tasks of this kind have the metric; empty means the default."""
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
        calibration_error 0…1: difference between the probability of an answer and the share that is right.
    low, high: ends of the interval; null if there are too few rows for one.
    n: rows it was measured on.
    estimate: "cross-validated" if every row was predicted by a model that had not seen it, although the published
    version
        has seen them all; absent if no part of the training has seen the rows.
    note: explains an unexpected value (undefined and set to 0, …).
    labels: with macro_f1 of a version: precision, recall, F1 and rows of each label; their mean F1 is the value.
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
    """Metrics by split. `validation` may have chosen the init or the step; `test` chose nothing."""

    validation: MetricsJson | None
    test: MetricsJson | None


class BaselineSplits(TypedDict, total=False):
    """The baselines, trained and scored on the same rows as the version, by split."""

    validation: BaselinesJson | None
    test: BaselinesJson | None


class CandidateJson(TypedDict, total=False):
    """A candidate init of the probe.

    embedding: its reference ("sst2@v1", "mean", "random"). loss: mean loss on the probe's rows, in nats; low and high
    are its 95% interval. rows: rows it was scored on; overlap: rows that it had been trained on. words: the candidate's
    word for each label, in the order of the task's labels. accuracy: share of the rows answered right before any
    training. round: its last round of the race, from 1; later rounds have more rows. tuned: held-out loss after a few
    steps of training, in nats; null for those that left before.
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
    """The start of the training, and the candidates that it was chosen from.

    rows: number of rows that the chosen one was scored on; overlap: rows that some candidate had been trained on.
    reason: why nothing was probed, if so ("asked for"). strategy: how it was chosen ("race", "exhaustive"). prefilter:
    number of embeddings (`considered`), and how many of them were worth measuring (`kept`). ties: candidates that the
    rows cannot distinguish from the chosen one. alarm: why nothing learned before is worth starting from; null if
    something is. weights: weights of the chosen mixture, by embedding. most_like: descriptions of the nearest of the
    base's own tasks, by embedding, the chosen one first; at most three. generated_by: the version of a task whose
    adapters the task-specific weights start at; absent for all others. known_too: whether the candidates were measured
    on rows that trained them, because nearly all rows did.
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
    """A property of the dataset that may explain a bad result, and a remedy.

    count: number of rows or labels concerned; examples: a few of them.
    """

    code: str
    type: str
    message: str
    remedy: str | None
    count: int | None
    examples: list[dict[str, Any]] | None


class LabelCountJson(TypedDict, total=False):
    """A label as submitted, its word, and its rows in the training split."""

    label: JsonLabel
    word: str | None
    count: int


class DatasetJson(TypedDict, total=False):
    """The dataset. rows: by split ("train", "validation", "test"); pairs: whether its texts come in pairs."""

    name: str | None
    kind: Literal["classification", "regression", "multilabel"]
    pairs: bool | None
    rows: dict[str, int] | None
    labels: list[LabelCountJson] | None
    digest: str | None
    warnings: list[WarningJson] | None


class ConfusionJson(TypedDict, total=False):
    """True (rows) and predicted labels (columns) of held-out rows or out-of-fold training rows."""

    labels: list[JsonLabel]
    matrix: list[list[int]]
    split: Literal["validation", "test"]


class WithoutRowsJson(TypedDict):
    """The inputs of a version without labeled rows.

    labels: number of labels; described: how many of them have a description. texts: number of texts that define the
    center; unlabelled: whether they were submitted or ship with Onboard.
    """

    labels: int
    described: int
    texts: int
    unlabelled: bool


class TrainingJson(TypedDict, total=False):
    """Facts of the training. loss and z_norm: one number per step; padding_share: share of padding among the tokens.

    share: share of the way from the start that was kept, by rows outside the training. chosen_on: number of held-out
    rows that chose it; null if none did. trained: number of parameters; settings: of the method. without_rows: only for
    a version without labeled rows.
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
    """Share of rows predicted right out of fold, by mean number of training rows."""

    rows: float
    accuracy: float


class MoreRowsJson(TypedDict, total=False):
    """Expected gain from `more` additional labeled rows: change of accuracy (a share) with its 95% interval.

    gain, low, high: null if unknown, for the `reason`. points: the learning curve that it was extrapolated from.
    of_readout: whether that is the readout's alone, because training on fewer rows would have taken too long.
    """

    points: list[CurvePointJson]
    more: int
    gain: float | None
    low: float | None
    high: float | None
    reason: str | None
    of_readout: bool


class AliasMoveJson(TypedDict, total=False):
    """Whether an alias (`latest`) moved to this version, and why; `present` is the version that it named before."""

    alias: str
    moved: bool
    reason: str
    comparison: dict[str, Any] | None
    present: str


class ErrorJson(TypedDict, total=False):
    """The error of a job without success."""

    code: str
    message: str
    remedy: str | None


class JobReport(TypedDict, total=False):
    """The whole document of a job.

    metric: name of the deciding metric (default: accuracy, spearman).
    seconds: by stage. events: the job's log, as from `JobEvent.to_json`.
    weak: not better than the most frequent label; weak_reason gives the numbers.
    validation_kind: how the validation metrics were computed; null with `validation_reason` if there are none.
    memory_bytes: peak memory of the last attempt, including the base: of the GPU by PyTorch, on a CPU by the process;
    null
        if the system does not report it.
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
