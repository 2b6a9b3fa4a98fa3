"""A readout of the current annotations, updated within a second after each annotation.

Annotations are stored in the database, so all processes of a service give the same answers. A process keeps features of
texts and the newest readout in memory.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from onboard.bases import find_base
from onboard.data.splits import evenly_spaced
from onboard.data.verbaliser import words_of
from onboard.domain.annotation import Text, as_sets, labels_of_texts, without_sets
from onboard.domain.dataset import label_text
from onboard.domain.label_set import ANSWERED_FROM, labels_in
from onboard.domain.prior import form_of
from onboard.hypernetworks.prior.fitting import fitted, usual_scale
from onboard.hypernetworks.prior.head import prior_head
from onboard.jobs.labelling.publishing import require_labelable, standing_of
from onboard.jobs.labelling.texts import Read, SeenTexts, kept_features
from onboard.jobs.standing import Standing
from onboard.registry.annotations import AnnotationRepository
from onboard.registry.services import Services
from onboard.statistics.label_order import margin, margin_of_sets
from onboard.statistics.label_sets import fit_sets_so_far
from onboard.statistics.prior import Prior
from onboard.statistics.readout import Readout, fit_so_far
from onboard.statistics.zero_rows import readout_of_names

MOST_ROWS: Final = 512  # labeled rows of the readout while people label; a published version uses more

Row = tuple[Text, str]


@dataclass(frozen=True)
class LabelingAnswers:
    """The answers to some texts.

    Args:
        chosen: indices of the answered labels among the requested ones; several only if a text may have several.
        certainties: (n,) probability of the answer; with several labels, of the least certain decision.
        scores: (n,); the texts with the lowest scores are best labeled first.
    """

    chosen: Sequence[Sequence[int]]
    certainties: np.ndarray
    scores: np.ndarray
    revision: int


@dataclass(frozen=True)
class _Fit:
    """A readout and its inputs: a revision of the annotations, a dataset, and the project's labels."""

    made_of: tuple[int, str, tuple[str, ...]]
    labels: tuple[str, ...]
    readout: Readout


class Learner:
    """Answers texts of one task while people label it. Thread-safe.

    Args:
        task: its name; it may not exist yet.
        read: reads features of texts.
    """

    def __init__(self, services: Services, task: str, read: Read, *, pairs: bool, several: bool) -> None:
        self._services, self._task, self._several = services, task, several
        self._base = find_base(services.settings.base)
        self._texts = SeenTexts(read, kept_features(services, task, self._base), pairs=pairs)
        self._lock = threading.Lock()
        self._stored: tuple[str, tuple[Row, ...]] = "", ()
        self._fit: _Fit | None = None
        self.refit_seconds = 0.0  # of the newest readout

    def answer(self, labels: Sequence[str], texts: Sequence[Text]) -> LabelingAnswers:
        """Answer texts (n ≥ 1) now, with the labels of the project.

        Raises:
            ConflictError: the task cannot be labeled here, as of `require_labelable`.
        """
        with self._lock:
            features = self._texts.features(texts)
            fit = self._newest(tuple(labels))
        places = [fit.labels.index(label) for label in labels]
        probabilities = fit.readout.of_labels(places).probabilities(features)
        if fit.readout.independent:
            chosen = [np.flatnonzero(row >= ANSWERED_FROM).tolist() for row in probabilities]
            certainties = np.maximum(probabilities, 1 - probabilities).min(1)
            return LabelingAnswers(chosen, certainties, margin_of_sets(probabilities), fit.made_of[0])
        chosen = [[best] for best in probabilities.argmax(1).tolist()]
        return LabelingAnswers(chosen, probabilities.max(1), margin(probabilities), fit.made_of[0])

    def refit(self, labels: Sequence[str]) -> None:
        """Update the readout to the newest annotations, so that the next answer does not wait for it."""
        with self._lock:
            self._newest(tuple(labels))

    def _newest(self, labels: tuple[str, ...]) -> _Fit:
        with self._services.database.read() as session:
            revision = AnnotationRepository(session).revision(self._task)
        stands = standing_of(self._services, self._task)
        made_of = revision, "" if stands is None else stands.digest, labels
        if self._fit is None or self._fit.made_of != made_of:
            started = time.monotonic()
            rows = self._rows(stands)
            row_labels = (label for _, row in rows for label in self._members(row))
            all_labels = tuple(dict.fromkeys([*labels, *row_labels]))
            self._fit = _Fit(made_of, all_labels, self._readout(all_labels, rows))
            self.refit_seconds = time.monotonic() - started
        return self._fit

    def _readout(self, labels: Sequence[str], rows: Sequence[Row]) -> Readout:
        seen_texts, prior = self._texts, self._prior()
        words = [words_of(label) for label in labels]
        names = seen_texts.names(words)
        if not rows:
            return readout_of_names(names, seen_texts.centre(), seen_texts.blocks, prior)
        features = seen_texts.features([text for text, _ in rows])
        places = {label: place for place, label in enumerate(labels)}
        targets = np.zeros((len(rows), len(labels)))
        for number, (_, row) in enumerate(rows):
            targets[number, [places[label] for label in self._members(row)]] = 1
        fit = fit_sets_so_far if self._several else fit_so_far
        usual = usual_scale(labels, words)
        return fit(features, targets, names, seen_texts.centre(), seen_texts.blocks, prior, usual).readout

    def _members(self, label: str) -> Sequence[str]:
        """Return the labels of a row as texts."""
        return [label_text(member) for member in labels_in(label)] if self._several else [label]

    def _rows(self, stands: Standing | None) -> list[Row]:
        """The annotated texts, and as many of the task's other rows as fit."""
        with self._services.database.read() as session:
            label_sets = labels_of_texts(AnnotationRepository(session).list(self._task))
        labeled = as_sets(label_sets) if self._several else without_sets(label_sets)
        pairs = self._texts.pairs
        annotated = [row for row in labeled.items() if (row[0][1] is not None) == pairs][-MOST_ROWS:]
        if stands is None or len(annotated) == MOST_ROWS:
            return annotated
        if self._stored[0] != stands.digest:
            dataset = stands.dataset(self._services)
            has_pairs = dataset.pairs if dataset.train else None
            require_labelable(self._task, dataset.kind, has_pairs, pairs=pairs, several=self._several)
            rows = tuple(((row.text_a, row.text_b), label_text(row.label)) for row in dataset.train)
            self._stored = stands.digest, rows
        others = [row for row in self._stored[1] if row[0] not in labeled]
        return [*(others[place] for place in evenly_spaced(len(others), MOST_ROWS - len(annotated))), *annotated]

    def _prior(self) -> Prior | None:
        form = form_of(pairs=self._texts.pairs)
        head, taught = prior_head(self._services, self._base, form)
        left_out = [self._task] if any(lesson.task == self._task for lesson in taught) else []
        return None if head is None else fitted(self._services, self._base, form, taught, left_out)
