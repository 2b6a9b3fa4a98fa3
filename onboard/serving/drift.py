"""Sums about answered texts: collected in memory, and written to the registry by a thread; texts are not stored.

An answer only puts its numbers on a list. The sums are made and written every few seconds, so an answer does not wait
for the database. Texts of the last seconds are lost where a process is killed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from onboard.domain.drift import day_of
from onboard.domain.label_set import MULTILABEL
from onboard.errors import OnboardError
from onboard.statistics.drift import Sums, answers_of, sums_of_answers, sums_of_features
from onboard.statistics.temperature import tempered
from onboard.versions.drift import Texts, add_texts

if TYPE_CHECKING:
    from onboard.registry.services import Services
    from onboard.serving.versions import ServedVersion

_logger = logging.getLogger(__name__)
FLUSH_SECONDS: Final = 5.0
_MOST_WAITING: Final = 2048  # texts whose features are in memory, until their sums are made
_MOST_REMEMBERED: Final = 1 << 18  # hashes of texts that were counted today
_VERSIONS_AT_ONCE: Final = 50  # in one transaction

_Key = tuple[int, str, int]  # day, task, version


@dataclass(frozen=True, slots=True)
class _Answered:
    """Texts that one version answered.

    Args:
        probabilities: (n, K) before any temperature.
        features: (n, h or more); None where they were not read.
    """

    day: int
    served: ServedVersion
    probabilities: np.ndarray
    features: np.ndarray | None


class DriftRecorder:
    """Keeps sums of what a process answers. A text that it answers again on the same day counts once.

    Args:
        width: h, of the features that are counted, the first ones.
        seconds: between two writings.
    """

    def __init__(self, services: Services, width: int, seconds: float = FLUSH_SECONDS) -> None:
        self._database, self._width, self._seconds = services.database, width, seconds
        self._guard, self._summing, self._writing = threading.Lock(), threading.Lock(), threading.Lock()
        self._waiting: list[_Answered] = []
        self._count = 0
        self._remembered: set[int] = set()
        self._today = 0
        self._sums: dict[_Key, tuple[Sums, Texts]] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def add(
        self, served: ServedVersion, texts: Sequence[int], probabilities: np.ndarray, features: np.ndarray | None
    ) -> None:
        """Count texts that a version has answered.

        Args:
            texts: a hash of each (n,).
            probabilities: (n, K), raw.
            features: (n, h or more), where they were read.
        """
        day = day_of(time.time())
        with self._guard:
            new = self._new(day, served, texts)
            if not new:
                return
            if len(new) < len(texts):
                probabilities = probabilities[new]
                features = None if features is None else features[new]
            self._waiting.append(_Answered(day, served, probabilities, features))
            self._count += len(new)
            full = self._count >= _MOST_WAITING
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._run, name="drift", daemon=True)
                self._thread.start()
        if full:
            self._sum_up()

    def _new(self, day: int, served: ServedVersion, texts: Sequence[int]) -> list[int]:
        """Places of the texts that were not counted today."""
        if day != self._today or len(self._remembered) >= _MOST_REMEMBERED:
            self._today = day
            self._remembered.clear()
        name, number, new = served.task.name, served.version, []
        for place, text in enumerate(texts):
            mark = hash((name, number, text))
            if mark not in self._remembered:
                self._remembered.add(mark)
                new.append(place)
        return new

    def _run(self) -> None:
        """Write every few seconds. Nothing that goes wrong ends this thread."""
        while not self._closed.wait(self._seconds):
            self.flush()

    def flush(self) -> None:
        """Write the collected sums. If that fails, they are written at the next flush."""
        try:
            self._sum_up()
            self._write()
        except OnboardError as error:
            _logger.info("Drift: nothing was recorded: %s", error.message)
        except Exception:  # the outermost edge: no answer depends on it
            _logger.exception("Drift could not be recorded")

    def close(self) -> None:
        """Write the remaining sums, and stop."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()

    def _sum_up(self) -> None:
        """Make sums of what waits. It never waits for the database."""
        with self._summing:
            with self._guard:
                waiting, self._waiting, self._count = self._waiting, [], 0
            groups: dict[_Key, list[_Answered]] = {}
            for one in waiting:
                groups.setdefault((one.day, one.served.task.name, one.served.version), []).append(one)
            for key, some in groups.items():
                served = some[0].served
                several = served.task.kind == MULTILABEL
                texts = Texts(served.task.name, served.version, served.training, several)
                self._keep(key, _sums(some, self._width), texts)

    def _keep(self, key: _Key, sums: Sums, texts: Texts) -> None:
        """Add sums to those that are to be written, by the holder of the lock."""
        before = self._sums.get(key)
        self._sums[key] = (sums if before is None else before[0] + sums), texts

    def _write(self) -> None:
        with self._writing:
            with self._summing:
                left, self._sums = self._sums, {}
            try:
                for day in sorted({key[0] for key in left}):
                    keys = sorted(key for key in left if key[0] == day)
                    for start in range(0, len(keys), _VERSIONS_AT_ONCE):
                        self._write_some(day, keys[start : start + _VERSIONS_AT_ONCE], left)
            finally:
                with self._summing:
                    for key, (sums, texts) in left.items():
                        self._keep(key, sums, texts)

    def _write_some(self, day: int, keys: Sequence[_Key], left: dict[_Key, tuple[Sums, Texts]]) -> None:
        """Write the sums of some versions in one transaction, and remove them from `left`."""
        sums = {(task, version): left[at, task, version][0] for at, task, version in keys}
        known = [left[key][1] for key in keys]
        self._database.write_again(lambda session: add_texts(session, day, sums, known))
        for key in keys:
            del left[key]


def _sums(some: Sequence[_Answered], width: int) -> Sums:
    """Of texts that one version answered on one day."""
    served = some[0].served
    labels = len(served.task.words)
    several = served.task.kind == MULTILABEL
    sums = Sums.empty(labels)
    for read in (True, False):
        parts = [one for one in some if (one.features is not None) == read]
        if not parts:
            continue
        probabilities = tempered(np.concatenate([one.probabilities for one in parts]), served.temperature)
        unknown = None
        if read:
            features = np.concatenate([one.features for one in parts if one.features is not None])[:, :width]
            unknown = None if served.novelty is None else served.novelty.unknown(features)
            sums += sums_of_features(features, labels)
        sums += sums_of_answers(*answers_of(probabilities, several=several), unknown)
    return sums
