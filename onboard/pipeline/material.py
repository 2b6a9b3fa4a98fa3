"""The material that the stages of a job share: rows as token ids and targets, label words, the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from onboard.bases import Base
from onboard.data.hashes import row_hashes, rows_without
from onboard.data.limits import PROBE_ROWS, PROBE_TOKENS
from onboard.data.regression import Buckets
from onboard.data.splits import fair_order
from onboard.data.targets import buckets_of, label_weights, targets_of
from onboard.data.verbaliser import words_of
from onboard.domain.dataset import Dataset, Example, label_key
from onboard.domain.task import FIRST_HYPERNETWORK
from onboard.hypernetworks.prior.fitting import PinnedPrior
from onboard.model.batch import Batch, LabelledRows
from onboard.model.batched import BATCH, log_probabilities
from onboard.model.engine import Engine
from onboard.model.execution import Execution
from onboard.model.fingerprint import raw_fingerprint
from onboard.model.memory import RowsAtOnce
from onboard.model.projections import Projections
from onboard.model.readout import bare_features
from onboard.model.readout_features import blocks_of
from onboard.model.side_by_side import AT_ONCE
from onboard.probe.evaluator import Evaluator, ProbedTask
from onboard.storage.features import features_key
from onboard.train.crossvalidation import mean_loss


@dataclass(frozen=True)
class Workbench:
    """The material of one job.

    Args:
        base: the base that the task is learned on.
        engine: its model, under the head.
        dataset: the rows, after the hold-out.
        words: the verbalizer's word per label, or per bucket.
        unlabelled: texts from which the report selects those to label next; their labels are ignored.
        descriptions: descriptions of labels by `label_key`.
        head: version of the hypernetwork that the task is learned under.
        known_rows: sorted hashes of the rows that trained the head; None for the first, whose rows the base lists.
        held_out: indices of the held-out training rows in the stored dataset.
        left_out: rows per split that are not used to judge, because the start of the training was trained on them.
        trained_at_once, scored_at_once: batch sizes that fit the GPU's memory.
        read: features of the rows read so far, by their token ids.
        tokens: token ids of the texts tokenized so far.
        answered: answers of earlier tasks under the hypernetworks that they were learned under, see `guard`.
        kept: features of rows that earlier jobs of the task have read, by `features_key`.
        prior: prior of the readout from earlier tasks; None without one.
    """

    base: Base
    engine: Engine
    dataset: Dataset
    words: tuple[str, ...]
    unlabelled: tuple[Example, ...] = ()
    head: int = FIRST_HYPERNETWORK
    known_rows: np.ndarray | None = None
    held_out: tuple[int, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    trained_at_once: RowsAtOnce = field(default_factory=partial(RowsAtOnce, AT_ONCE))
    scored_at_once: RowsAtOnce = field(default_factory=lambda: RowsAtOnce(BATCH))
    read: dict[tuple[int, ...], np.ndarray] = field(default_factory=dict)
    tokens: dict[tuple[str, str | None], list[int]] = field(default_factory=dict)
    answered: dict[bytes, np.ndarray] = field(default_factory=dict)
    kept: Mapping[bytes, np.ndarray] = field(default_factory=dict)
    prior: PinnedPrior | None = None
    descriptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def pairs(self) -> bool:
        """Whether the texts come in pairs; without labeled rows, the unlabeled texts decide."""
        return self.dataset.pairs or any(row.text_b is not None for row in self.unlabelled[:1])

    @cached_property
    def buckets(self) -> Buckets | None:
        """The buckets of a regression; None for classification."""
        return buckets_of(self.dataset)

    @cached_property
    def label_weights(self) -> np.ndarray:
        """Weight of a row of each label (K,) in training and choices; 1 for every bucket."""
        return np.ones(1, dtype=np.float32) if self.buckets is not None else label_weights(self.dataset)

    def encode(self, rows: Sequence[Example], max_tokens: int | None = None) -> list[list[int]]:
        """Return token ids of rows, truncated to `max_tokens` if given. Every text is tokenized once."""
        texts = [(row.text_a, row.text_b) for row in rows]
        if max_tokens is not None:
            return self.engine.encoder.encode(texts, max_tokens)
        unread = [text for text in dict.fromkeys(texts) if text not in self.tokens]
        self.tokens.update(zip(unread, self.engine.encoder.encode(unread), strict=True))
        return [self.tokens[text] for text in texts]

    def targets(self, rows: Sequence[Example]) -> np.ndarray:
        """Return the target distribution over labels or buckets of each row (n, K), float32."""
        return targets_of(self.dataset, rows)

    def weighted(self, rows: Sequence[Example]) -> np.ndarray:
        """Return targets (n, K) times the weight of each row's label."""
        weighted: np.ndarray = self.targets(rows) * self.label_weights
        return weighted

    def labelled(self, rows: Sequence[Example]) -> LabelledRows:
        """Return rows in the form that trainings take."""
        return LabelledRows(self.encode(rows), self.weighted(rows))

    def scores(
        self, rows: Sequence[Example], words: Sequence[str], z: np.ndarray, checkpoint: Callable[[], None]
    ) -> np.ndarray:
        """Return log-probabilities (n, K) of rows under an embedding (t,); `words` represent its labels."""
        ids, trie = self.encode(rows), self.engine.trie(words)
        return log_probabilities(self.engine, ids, z, trie, checkpoint, self.scored_at_once)

    def loss(
        self, rows: Sequence[Example], words: Sequence[str], z: np.ndarray, checkpoint: Callable[[], None]
    ) -> float:
        """Return the mean loss of an embedding on rows, in nats; `words` represent its labels."""
        return mean_loss(self.scores(rows, words, z, checkpoint), self.targets(rows))

    def features(self, rows: Sequence[Example], checkpoint: Callable[[], None]) -> np.ndarray:
        """Return the features (n, 6h) that a readout predicts from, all blocks (`onboard.model.readout_features`).

        Each row is read once per job, independent of the hypernetwork, and not at all if an earlier job of the task
        read it.
        """
        ids = [tuple(row) for row in self.encode(rows)]
        if self.kept:
            known = {row: self.kept.get(features_key(row)) for row in ids if row not in self.read}
            self.read.update({row: features for row, features in known.items() if features is not None})
        unread = [row for row in dict.fromkeys(ids) if row not in self.read]
        features = bare_features(self.engine, unread, checkpoint, self.scored_at_once)
        self.read.update(zip(unread, features, strict=True))
        return np.stack([self.read[row] for row in ids]) if ids else features

    def own_features(self, rows: Sequence[Example], checkpoint: Callable[[], None]) -> np.ndarray:
        """Return the features that a readout is fitted on: (n, 3h) of single texts, (n, 6h) of pairs."""
        blocks = blocks_of(pairs=any(row.text_b is not None for row in rows))
        return self.features(rows, checkpoint)[:, : blocks * self.width]

    def names(self, checkpoint: Callable[[], None]) -> np.ndarray:
        """Return features (K, 3h) of the words of each label, such as "cancelled flight" for `cancelled_flight`.

        A label with a description gets the mean of both.
        """
        labels = self.dataset.labels
        words = self.own_features([Example(words_of(label), None, label) for label in labels], checkpoint)
        described = [place for place, label in enumerate(labels) if label_key(label) in self.descriptions]
        if not described:
            return words
        texts = [Example(self.descriptions[label_key(labels[place])], None, labels[place]) for place in described]
        features = words.copy()
        features[described] = (words[described] + self.own_features(texts, checkpoint)) / 2
        return features

    @property
    def width(self) -> int:
        """Width of the encoder's states and of each block of `features`."""
        width: int = self.engine.backbone.config.d_model
        return width

    def fingerprint(self, ids: Sequence[Sequence[int]], targets: np.ndarray) -> np.ndarray:
        """Return the fingerprint of encoded rows in the bare backbone.

        Returns:
            (t,), scaled like the base's; for a base without fingerprints, 64 unscaled numbers that are not an
            embedding.
        """
        known = self.base.fingerprints
        projections = Projections.fixed(self.engine.backbone.config.d_model) if known is None else known.projections
        trie = self.engine.trie(self.words)
        order = np.argsort([len(row) for row in ids], kind="stable")

        def measure() -> np.ndarray:
            parts = [order[part] for part in self.scored_at_once.parts(len(order))]
            batches = [Batch([ids[row] for row in part], trie, targets[part]) for part in parts]
            return raw_fingerprint(self.engine, batches, projections)

        raw = self.scored_at_once.fitting(len(order), measure)
        return raw if known is None else known.scaled(raw)

    def hashes(self, rows: Sequence[Example]) -> np.ndarray:
        """Return 64-bit hashes of rows (n,)."""
        return np.array(row_hashes(rows), dtype=np.int64)

    def without_witnesses(self, known: np.ndarray) -> Workbench:
        """Return the material without validation and test rows with these hashes (k,): they would judge too well."""
        if not len(known):
            return self
        dataset, hashes = self.dataset, known.tolist()
        validation, test = (rows_without(rows, hashes) for rows in (dataset.validation, dataset.test))
        fair = replace(dataset, validation=validation, test=test)
        left_out = {
            "validation": len(dataset.validation) - len(validation), "test": len(dataset.test) - len(test),
        }  # fmt: skip
        return replace(self, dataset=fair, left_out=left_out)

    def probed(self, seed: int) -> list[Example]:
        """Return the training rows that choose the initialization, without held-out rows; any prefix is a
        fair sample.
        """
        return [self.dataset.train[row] for row in fair_order(self.dataset, seed)[:PROBE_ROWS]]

    def evaluator(self, rows: Sequence[Example], checkpoint: Callable[[], None] = lambda: None) -> Evaluator:
        """Return an evaluator of candidates on the beginnings of these rows; rows of the head count as known to all."""
        known = self.base.known_rows if self.known_rows is None else self.known_rows
        task = ProbedTask(
            self.encode(rows, PROBE_TOKENS), self.targets(rows), self.words, self.hashes(rows),
            mapped=self.buckets is None, known_to_all=known,
        )  # fmt: skip
        return Evaluator(self.engine.rounded(), task, self.execution(checkpoint))

    def execution(
        self,
        checkpoint: Callable[[], None] = lambda: None,
        on_step: Callable[[int, float], None] = lambda *_: None,
    ) -> Execution:
        """Return the execution settings, with the batch sizes that fit."""
        return Execution(on_step, checkpoint, self.trained_at_once, self.scored_at_once)
