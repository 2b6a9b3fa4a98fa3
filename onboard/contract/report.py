"""The result of a job: `submit --wait --json`, `GET /v1/jobs/{id}` and the reports read it.

The fields of `JobResult` down to `seconds` are stable for users; the rest only explains them. Every field may be absent
or null: a queued job has hardly any, and earlier releases stored fewer.
"""

from __future__ import annotations

from typing import Any, Literal

from onboard.contract.changes import TaskChange
from onboard.contract.checks import DatasetWarning
from onboard.contract.document import Document, Label, Partial
from onboard.contract.evaluations import PairedComparison
from onboard.contract.guard import GuardVerdict, Tuning
from onboard.contract.measured import BaselinesDocument, MetricsDocument
from onboard.contract.priors import PriorUse
from onboard.domain.dataset import Kind

ValidationKind = Literal["held-out", "cross-validated"]


class CandidateScore(Partial):
    """How a candidate for the start of the training performed in the probe.

    embedding: its reference ("sst2@v1", "mean", "random").
    loss: mean loss on the probe's rows in nats, at the candidate's best temperature of at least 1; low, high: its 95%
        interval.
    rows: rows that it was measured on; overlap: rows that it had been trained on, left out unless none would remain.
    words: the candidate's word for each label of the new task, in the task's order.
    accuracy: share of rows answered right before any training; null for a regression.
    round: the last round of the race that it took part in, from 1; later rounds have more rows.
    tuned: held-out loss after a few steps of training, in nats; null if it was not tuned.
    """

    embedding: str
    loss: float
    low: float
    high: float
    rows: int
    overlap: int
    words: tuple[str, ...]
    accuracy: float | None = None
    round: int = 1
    tuned: float | None = None


class TrainingStart(Partial):
    """The start of the training, and the candidates that it was chosen from.

    rows: rows that the chosen one was scored on; overlap: rows that some candidate had been trained on.
    reason: why nothing was probed, if so ("asked for"). strategy: how it was chosen ("race", "exhaustive").
    prefilter: number of embeddings (`considered`), and how many of them were worth measuring (`kept`).
    ties: candidates that the rows cannot distinguish from the chosen one.
    alarm: why nothing learned before is worth starting from; null if something is.
    weights: weights of the chosen mixture, by embedding.
    most_like: descriptions of the nearest of the base's own tasks, by embedding, the chosen one first; at most three.
    generated_by: the version of a task whose adapters the task-specific weights start at; absent for all others.
    known_too: whether the candidates were measured on rows that trained them, because nearly all rows did.
    """

    chosen: str | None = None
    candidates: tuple[CandidateScore, ...] | None = None
    rows: int | None = None
    overlap: int | None = None
    reason: str | None = None
    strategy: str | None = None
    prefilter: dict[str, int] | None = None
    ties: tuple[str, ...] | None = None
    alarm: str | None = None
    weights: dict[str, float] | None = None
    most_like: dict[str, str] | None = None
    known_too: bool | None = None
    generated_by: str | None = None


class LabelCount(Partial):
    """A label as submitted, its word, and its rows in the training split."""

    label: Label
    word: str | None = None
    count: int = 0


class DatasetFacts(Partial):
    """The dataset. rows: by split ("train", "validation", "test"); pairs: whether its texts come in pairs."""

    name: str | None = None
    kind: Kind | None = None
    pairs: bool | None = None
    rows: dict[str, int] | None = None
    labels: tuple[LabelCount, ...] | None = None
    digest: str | None = None
    warnings: tuple[DatasetWarning, ...] | None = None


class Confusion(Document):
    """True (rows) and predicted labels (columns) of held-out rows or out-of-fold training rows."""

    labels: tuple[Label, ...]
    matrix: tuple[tuple[int, ...], ...]
    split: Literal["validation", "test"]


class WithoutRows(Document):
    """The inputs of a version without labeled rows.

    labels: number of labels; described: how many of them have a description.
    texts: number of texts that define the center; unlabelled: whether they were submitted or ship with Onboard.
    """

    labels: int
    described: int
    texts: int
    unlabelled: bool


class TrainingFacts(Partial):
    """Facts of the training. loss and z_norm: one number per step; padding_share: share of padding among the tokens.

    settings: of the method; trained: number of parameters.
    share: share of the way from the start that was kept, by rows outside the training.
    chosen_on: number of held-out rows that chose it; null if none did.
    without_rows: only for a version without labeled rows.
    """

    method: str | None = None
    settings: dict[str, Any] | None = None
    trained: int | None = None
    steps: int | None = None
    learning_rate: float | None = None
    loss: tuple[float, ...] | None = None
    z_norm: tuple[float, ...] | None = None
    padding_share: float | None = None
    share: float | None = None
    chosen_on: int | None = None
    without_rows: WithoutRows | None = None


class CurvePoint(Document):
    """Share of rows predicted right out of fold, by mean number of training rows."""

    rows: float
    accuracy: float


class ExpectedGain(Partial):
    """The learning curve, and the expected gain from `more` additional labeled rows.

    points: the learning curve.
    gain: change of accuracy (a share); low, high: its 95% interval. Null if unknown, for the `reason`.
    of_readout: whether it is the curve of the readout alone, because training on fewer rows would have taken too long.
    """

    points: tuple[CurvePoint, ...]
    more: int
    gain: float | None
    low: float | None
    high: float | None
    reason: str | None
    of_readout: bool = False

    def without_gain(self, reason: str) -> ExpectedGain:
        """Return the same without curve and gain, which do not apply to the published version, for this reason."""
        return self.model_copy(update={"points": (), "gain": None, "low": None, "high": None, "reason": reason})


class LatestMove(Partial):
    """Whether `alias` (`latest`) moved to this version, and why; `present` is the version that it named before."""

    alias: str
    moved: bool
    reason: str
    comparison: PairedComparison | None = None
    present: str | None = None


class LikelyLabel(Document):
    """A label and its probability."""

    label: Label
    probability: float


class NextRow(Partial):
    """A text to label next (its first 1,000 characters), or a pair of them.

    uncertainty: entropy of the probabilities as a share of the maximum.
    unlike: true for a text that is unlike the task's data; such texts come last.
    answers: the two most likely labels; or, for a regression, `value` with its standard deviation `spread`.
    """

    text: str | None = None
    text_a: str | None = None
    text_b: str | None = None
    uncertainty: float
    answers: tuple[LikelyLabel, ...] | None = None
    value: float | None = None
    spread: float | None = None
    unlike: bool = False


class AnsweredShare(Document):
    """The share of unlabeled texts for which a label is the most likely, and its mean probability."""

    label: Label
    share: float
    mean_probability: float


class LabelNext(Partial):
    """The texts of `--unlabelled FILE` to label next, most uncertain first.

    read: rows of the file; known: rows that the dataset already contains with labels; repeated: duplicates of other
        rows; considered: texts that were examined.
    shares: current answers to these texts, by label; absent for a regression.
    """

    read: int
    known: int
    repeated: int
    considered: int
    rows: tuple[NextRow, ...]
    shares: tuple[AnsweredShare, ...] | None = None


class HalvedBatch(Partial):
    """A GPU ran out of memory with `rows` rows at once; from then on, batches of the stage had `rows_at_once` rows."""

    stage: str | None = None
    rows: int
    rows_at_once: int


class ReadoutFacts(Partial):
    """Whether a closed-form readout of the frozen encoder is part of the answer, and its benefit.

    asked: "never" or "auto"; share: share of the answer that is the readout's; 0 if it is left out, for the `reason`.
    before, after: mean loss in nats of the training alone and with the readout, on so many `rows` of the `evidence`
        ("held-out rows" or "cross-validated rows"); absent if there are none.
    """

    asked: str
    share: float
    reason: str
    before: float | None = None
    after: float | None = None
    evidence: str | None = None
    rows: int | None = None


class ProvisionalFacts(Partial):
    """The provisional version of a job, a readout alone, and whether the job confirmed or replaced it.

    version: its number; null for a job that rebuilds versions, which publishes only the final one. confirmed: whether
        it is the job's final version, for the `reason`.
    start: the embedding from which the unsuccessful training started; null for all others.
    before, after: mean loss in nats of the readout alone and of the version with an embedding, on so many left-out
        `rows`; low, high: 95% interval of the paired difference (negative is better). Absent without such rows.
    """

    version: int | None = None
    start: str | None = None
    confirmed: bool = False
    reason: str | None = None
    before: float | None = None
    after: float | None = None
    low: float | None = None
    high: float | None = None
    rows: int | None = None


class Calibration(Document):
    """The temperature of a version's probabilities, and their calibration error with and without it.

    temperature: probabilities are raised to the power of 1/T; no label changes.
    evidence, rows: the rows that chose it ("held-out rows" or "cross-validated rows") and their
        number; 0 if there are none, and it is the default.
    before, after: expected calibration error by split, 0…1, at temperature 1 and at this one.
    """

    temperature: float
    evidence: str
    rows: int
    before: dict[str, float]
    after: dict[str, float]


class UnknownTexts(Document):
    """When a version treats texts as unlike its data.

    limit: squared distance, in the frozen encoder's features, to the nearest label's mean.
    false_alarms: share of `rows` rows of the task, outside the means, that exceed it.
    misses: share of `texts` texts of other kinds within it. digest: of the means.
    """

    limit: float
    false_alarms: float
    rows: int
    misses: float
    texts: int
    digest: str


class TriedMethod(Partial):
    """One method that `--method auto` tried.

    method: its name; the base's own is the embedding with its readout, and the tuned hypernetwork if that is kept.
    loss: mean in nats on the rows of the evidence, with its 95% interval; null if the method failed.
    behind: mean loss above that of the best, on the same rows; error: its standard error; 0 for the best.
    bytes: size of its version's tensors. trained: number of trained parameters.
    seconds: duration; null for a readout alone, which the default makes anyway.
    reason: why the method failed.
    """

    method: str
    loss: float | None = None
    low: float | None = None
    high: float | None = None
    behind: float | None = None
    error: float | None = None
    bytes: int | None = None
    trained: int | None = None
    seconds: float | None = None
    reason: str | None = None


class MethodChoice(Partial):
    """Which method was published, and what it was chosen from.

    reason: why this one; stopped: why no further one was tried.
    evidence: "held-out rows" or "cross-validated rows", so many `rows`; null if none are left to
        compare on.
    tried: the cheapest first.
    """

    chosen: str
    reason: str
    stopped: str
    evidence: str | None = None
    rows: int = 0
    tried: tuple[TriedMethod, ...] = ()


class JobResult(Partial):
    """The result of a succeeded job.

    metrics: by split. `validation` may have chosen the start or the step; `test` chose nothing.
    metric: name of the deciding metric (default: accuracy, spearman).
    seconds: by stage.
    weak: not better than the most frequent label; weak_reason gives the numbers.
    validation_kind: how the validation metrics were computed; null with `validation_reason` if there are none.
    baselines: trained and scored on the same rows as the version, by split.
    memory_bytes: peak memory of the last attempt, including the base: of the GPU by PyTorch, on a CPU by the process;
        null if the system does not report it.
    pins: digests and versions that this version depends on, by name.
    """

    job: str | None = None
    state: str | None = None
    task: str | None = None
    version: int | None = None
    change: TaskChange | None = None
    embedding_digest: str | None = None
    hypernetwork_version: int | None = None
    init: TrainingStart | None = None
    metrics: dict[str, MetricsDocument | None] | None = None
    guard: GuardVerdict | None = None
    seconds: dict[str, float] | None = None

    metric: str | None = None
    validation_kind: ValidationKind | None = None
    validation_reason: str | None = None
    baselines: dict[str, BaselinesDocument | None] | None = None
    weak: bool | None = None
    weak_reason: str | None = None
    latest: LatestMove | None = None
    confusion: Confusion | None = None
    dataset: DatasetFacts | None = None
    training: TrainingFacts | None = None
    tuning: Tuning | None = None
    more_rows: ExpectedGain | None = None
    label_next: LabelNext | None = None
    halved: tuple[HalvedBatch, ...] | None = None
    pins: dict[str, Any] | None = None
    calibration: Calibration | None = None
    unknown: UnknownTexts | None = None
    methods: MethodChoice | None = None
    provisional: ProvisionalFacts | None = None
    prior: PriorUse | None = None
    memory_bytes: int | None = None
    readout: ReadoutFacts | None = None
