"""Predictions for any mix of tasks from one loaded base, with one encoder pass and one decoder pass per batch.

The adapters of a batch's tasks are generated together in one product, so a task costs the same the first time as later.
Versions with task-specific weights share the batch, except those that change the base's matrices, which run separately.

For versions with a readout, the bare encoder reads the texts as well; versions that are a readout need only that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from onboard.bases import Base, find_base
from onboard.bases.load import load_engine
from onboard.contract.requests import PredictionRequest, parse_requests, require_fitting
from onboard.data.regression import Buckets
from onboard.domain.label_set import MULTILABEL, chosen_set, set_text
from onboard.domain.prediction import Outcome, Prediction, Unanswered, all_answered
from onboard.errors import InputError, OnboardError
from onboard.hypernetworks.engines import KEPT_HYPERNETWORKS
from onboard.hypernetworks.register import register_base
from onboard.model.batched import mixed_log_probabilities
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.on_demand import OnDemand
from onboard.model.readout import bare_features
from onboard.model.task_module import TaskModule
from onboard.model.task_weights import Weights
from onboard.registry.services import Services, open_services
from onboard.serving.bundles import BundledVersions, base_of, bundle_at
from onboard.serving.drift import DriftRecorder
from onboard.serving.versions import (
    KEPT_BYTES,
    OF_A_ROW,
    RegistryVersions,
    ServedVersion,
    ServedVersions,
    SharedAlias,
    SourceVersions,
)
from onboard.settings import Settings
from onboard.statistics.temperature import tempered
from onboard.storage.features import features_key

_ANY_TEXT: Final = "Warm-up."


@dataclass(frozen=True)
class _Rows:
    """The rows of a request.

    Args:
        errors: error of rows that cannot be answered, by row.
    """

    versions: Mapping[int, ServedVersion]
    errors: Mapping[int, OnboardError]


class Predictor:
    """Predicts for all tasks of a home folder, or for the source tasks of a base.

    Args:
        base_or_home: a folder written by `onboard fetch`, a service's home folder or its opened services, a `Base`, the
            name or folder of a base, or None for the service that the environment names.
        record: whether to keep daily sums of the predicted texts for `onboard drift`; only for a service, and unless
            ONBOARD_DRIFT is false.
        kept_bytes: memory limit for cached versions: about 3 KB per embedding plus its readout and novelty detector, or
            the size of task-specific weights.

    Raises:
        NotFoundError: `base_or_home` is neither a base nor a home.
    """

    def __init__(
        self,
        base_or_home: Base | Services | str | Path | None = None,
        device: str = "auto",
        kept_bytes: int = KEPT_BYTES,
        *,
        record: bool = False,
    ) -> None:
        services = _services_of(base_or_home)
        self._recorder: DriftRecorder | None = None
        if services is not None:
            self._base = base = find_base(services.settings.base, services.settings.resolved_home)
            register_base(services, base)
            self._engine = load_engine(base, services.device)
            self._versions: ServedVersions = RegistryVersions(services, base, self._engine, kept_bytes)
            if record and services.settings.drift:
                self._recorder = DriftRecorder(services, self._engine.backbone.config.d_model)
            return
        bundle = None if isinstance(base_or_home, Base) else bundle_at(Path(str(base_or_home)).expanduser())
        if bundle is not None:
            base = base_of(bundle)
        else:
            base = base_or_home if isinstance(base_or_home, Base) else find_base(str(base_or_home))
        self._base, self._engine = base, load_engine(base, device)
        self._versions = BundledVersions(bundle, base, self._engine) if bundle else SourceVersions(base, self._engine)

    @property
    def kept_bytes(self) -> int:
        """Approximate memory of the cached versions, in bytes."""
        return self._versions.kept_bytes

    def warm_up(self) -> None:
        """Predict one text with a task of the base, so that the first request is as fast as later ones."""
        bare_features(self._engine, self._engine.encoder.encode([(_ANY_TEXT, None)]))  # features of a readout
        for source in self._base.sources[:1]:
            texts = {"text_a": _ANY_TEXT, "text_b": _ANY_TEXT} if source.pairs else {"text": _ANY_TEXT}
            self.outcomes([{"task": source.name, **texts}])  # a deleted task is an outcome too

    def features(
        self,
        texts: Sequence[tuple[str, str | None]],
        known: Mapping[bytes, np.ndarray],
        before_batch: Callable[[], None] = lambda: None,
    ) -> np.ndarray:
        """Return the features of texts or pairs, (n, 6h) float32.

        Args:
            texts: n of them.
            known: features of earlier texts, by `onboard.storage.features.features_key`.
            before_batch: as in `answer`.
        """
        ids = self._engine.encoder.encode(texts)
        found = [known.get(features_key(row)) for row in ids] if known else [None] * len(ids)
        unread = [row for row, features in zip(ids, found, strict=True) if features is None]
        read = iter(bare_features(self._engine, unread, before_batch))
        return np.stack([next(read) if features is None else features for features in found])

    def predict(self, inputs: Sequence[Mapping[str, Any]]) -> list[Prediction]:
        """Return predictions in the order of the inputs. Tasks may be mixed.

        Args:
            inputs: each is `{"task", "ref"?, "labels"?, "unknown"?, "text" | "text_a", "text_b"}`. With `labels` the
                answer is one of these; with `unknown` it states whether the text is unlike the task's data.

        Raises:
            InputError: an input is invalid, has one text where its task takes two (or the reverse), or has labels that
                its task does not have. Nothing is answered then.
            NotFoundError: the task or version does not exist.
            PinMismatchError: the version belongs to another backbone, or its hypernetwork is not available.
            DamagedError: stored files are missing or were changed.
        """
        return self.answer(parse_requests(inputs))

    def outcomes(self, inputs: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """Like `predict`, but an input whose version cannot answer becomes `Unanswered` with its error.

        Raises:
            InputError: see `predict`.
        """
        return self.answer_others(parse_requests(inputs))

    def answer(
        self, requests: Sequence[PredictionRequest], before_batch: Callable[[], None] = lambda: None
    ) -> list[Prediction]:
        """Like `predict`, for parsed requests. `before_batch` is called before every batch and may raise to stop."""
        rows = self._rows(requests)
        if rows.errors:
            raise rows.errors[min(rows.errors)]
        return all_answered(self._outcomes(requests, rows, before_batch))

    def answer_others(
        self, requests: Sequence[PredictionRequest], before_batch: Callable[[], None] = lambda: None
    ) -> list[Outcome]:
        """Like `outcomes`, for parsed requests, with `before_batch` as in `answer`."""
        return self._outcomes(requests, self._rows(requests), before_batch)

    def _rows(self, requests: Sequence[PredictionRequest]) -> _Rows:
        """Return the version of each row, or its error. Raises InputError."""
        resolved = self._versions.resolve({request.reference for request in requests}) if requests else {}
        of_rows = [_of_row(resolved[str(request.reference)], request) for request in requests]
        places_by_row = require_fitting(requests, [one if isinstance(one, ServedVersion) else None for one in of_rows])
        narrowed: dict[tuple[int, tuple[int, ...]], ServedVersion] = {}
        versions: dict[int, ServedVersion] = {}
        errors: dict[int, OnboardError] = {}
        for row, (request, served) in enumerate(zip(requests, of_rows, strict=True)):
            if isinstance(served, OnboardError):
                errors[row] = served
            elif request.unknown and served.novelty is None:
                errors[row] = _no_novelty(request, served)
            elif row in places_by_row:
                places = places_by_row[row]
                if (id(served), places) not in narrowed:
                    narrowed[id(served), places] = served.among(places)
                versions[row] = narrowed[id(served), places]
            else:
                versions[row] = served
        return _Rows(versions, errors)

    def _outcomes(
        self, requests: Sequence[PredictionRequest], rows: _Rows, before_batch: Callable[[], None]
    ) -> list[Outcome]:
        """Answer rows in groups of as many hypernetworks as fit in memory."""
        answers: dict[int, Prediction] = {}
        errors = dict(rows.errors)
        pinned = sorted({version.hypernetwork for version in rows.versions.values()})
        for start in range(0, len(pinned), KEPT_HYPERNETWORKS):
            ready, missing = self._hypernetworks(pinned[start : start + KEPT_HYPERNETWORKS])
            errors |= {row: missing[v.hypernetwork] for row, v in rows.versions.items() if v.hypernetwork in missing}
            served = {row: version for row, version in rows.versions.items() if version.hypernetwork in ready}
            answered = self._answers([requests[row] for row in served], list(served.values()), ready, before_batch)
            answers |= zip(served, answered, strict=True)
        return [
            answers[row] if row in answers else Unanswered(request.reference.task, request.reference.ref, errors[row])
            for row, request in enumerate(requests)
        ]

    def _hypernetworks(self, versions: Sequence[int]) -> tuple[dict[int, Hypernetwork], dict[int, OnboardError]]:
        """Return the available hypernetworks, and the errors of the others."""
        ready: dict[int, Hypernetwork] = {}
        missing: dict[int, OnboardError] = {}
        for version in versions:
            try:
                ready[version] = self._versions.hypernetwork(version)
            except OF_A_ROW as error:
                missing[version] = error
        return ready, missing

    def _answers(
        self,
        requests: Sequence[PredictionRequest],
        asked: Sequence[ServedVersion],
        hypernetworks: Mapping[int, Hypernetwork],
        before_batch: Callable[[], None],
    ) -> list[Prediction]:
        """Answer rows that all have a version; weights are generated or combined batch by batch."""
        if not requests:
            return []
        served = list({id(version): version for version in asked}.values())
        position = {id(version): place for place, version in enumerate(served)}
        tasks = np.array([position[id(version)] for version in asked])
        ids = self._engine.encoder.encode([(request.text_a, request.text_b) for request in requests])
        probabilities = np.zeros((len(ids), max(len(version.task.words) for version in served)))
        for places, weights in _groups(served, hypernetworks):
            rows = np.flatnonzero(np.isin(tasks, places))
            tries = [self._engine.trie(served[place].task.words) for place in places]
            of_rows = [ids[row] for row in rows.tolist()]
            whose = np.searchsorted(places, tasks[rows])
            scores = mixed_log_probabilities(self._engine, of_rows, weights, tries, whose, before_batch)
            probabilities[rows, : scores.shape[1]] = np.exp(scores.astype(np.float64))
        asking = np.array([request.unknown for request in requests])
        unknown, features = self._read(probabilities, ids, tasks, served, asking, before_batch)
        if self._recorder is not None:
            self._record(requests, tasks, served, probabilities, features)
        rows_of = zip(asked, probabilities, unknown, strict=True)
        return [_answer(version, row, strange) for version, row, strange in rows_of]

    def _read(
        self,
        probabilities: np.ndarray,
        ids: Sequence[Sequence[int]],
        tasks: np.ndarray,
        served: Sequence[ServedVersion],
        asking: np.ndarray,
        before_batch: Callable[[], None],
    ) -> tuple[list[bool | None], dict[int, np.ndarray]]:
        """Add the readouts' answers to the model's probabilities (n, K) in place; 0 for a readout that answers alone.

        Only rows of versions with a readout, and rows that are `asking` (n,) whether their text is unknown, go through
        the bare encoder. A text of several tasks is read once.

        Returns:
            Whether each text is unknown, None for rows that do not ask; and the features of each version's rows, by its
            place, where the encoder has read all of them.
        """
        unknown: list[bool | None] = [None] * len(ids)
        seen: dict[int, np.ndarray] = {}
        read = np.array([version.readout is not None for version in served])[tasks] | asking
        every = np.flatnonzero(read)
        if not len(every):
            return unknown, seen
        features = bare_features(self._engine, [ids[row] for row in every.tolist()], before_batch)
        for place in np.unique(tasks[every]).tolist():
            version, own = served[place], tasks[every] == place
            rows, of_rows = every[own], features[own]
            if len(rows) == np.count_nonzero(tasks == place):
                seen[place] = of_rows
            if version.readout is not None:
                labels = slice(0, len(version.readout.bias))  # another task of the batch may have more
                probabilities[rows, labels] = version.readout.beside(probabilities[rows, labels], of_rows)
            asked = asking[rows]
            if version.novelty is not None and asked.any():
                strange = version.novelty.unknown(of_rows[asked])
                for row, of_row in zip(rows[asked].tolist(), strange.tolist(), strict=True):
                    unknown[row] = of_row
        return unknown, seen

    def _record(
        self,
        requests: Sequence[PredictionRequest],
        tasks: np.ndarray,
        served: Sequence[ServedVersion],
        probabilities: np.ndarray,
        features: Mapping[int, np.ndarray],
    ) -> None:
        """Count the texts of each version (n,), except requests that limit the labels."""
        assert self._recorder is not None  # asked before
        for place, version in enumerate(served):
            if version.whole:
                rows = np.flatnonzero(tasks == place)
                texts = [hash((requests[row].text_a, requests[row].text_b)) for row in rows.tolist()]
                own = probabilities[rows, : len(version.task.words)]
                self._recorder.add(version, texts, own, features.get(place))

    def flush(self) -> None:
        """Write the pending records of answered texts, if any."""
        if self._recorder is not None:
            self._recorder.flush()

    def close(self) -> None:
        """Write it, and record nothing more."""
        if self._recorder is not None:
            self._recorder.close()


def _of_row(
    resolved: ServedVersion | OnboardError | SharedAlias, request: PredictionRequest
) -> ServedVersion | OnboardError:
    """Return the version that answers a request, or its error."""
    if isinstance(resolved, SharedAlias):
        return resolved.chosen(request.text_a, request.text_b)
    return resolved


def _no_novelty(request: PredictionRequest, served: ServedVersion) -> InputError:
    named = f"{request.reference.task}@v{served.version}"
    return InputError("version-without-novelty", task=request.reference.task, field="unknown", named=named)  # fmt: skip


def _groups(
    served: Sequence[ServedVersion], hypernetworks: Mapping[int, Hypernetwork]
) -> Iterator[tuple[list[int], Weights | OnDemand]]:
    """Yield indices of versions that share a batch, ascending, with their weights.

    All versions share one, except those that change the base's matrices. Versions that are a readout are in none.
    """
    mixed = [place for place, version in enumerate(served) if version.mixes]
    if mixed:
        together = [served[place] for place in mixed]
        pinned = np.array([version.hypernetwork for version in together])
        yield mixed, OnDemand([version.learned for version in together], pinned, hypernetworks)
    for place, version in enumerate(served):
        if isinstance(version.learned, TaskModule) and not version.mixes:
            with torch.inference_mode():
                weights = version.learned.weights()
            yield [place], weights


def _answer(served: ServedVersion, probabilities: np.ndarray, unknown: bool | None) -> Prediction:
    task = served.task
    own = probabilities[: len(task.words)]  # another task of the batch may have more
    probabilities = tempered(own[None], served.temperature)[0]
    best = int(probabilities.argmax())
    shown = tuple(float(value) for value in probabilities)
    if task.kind == MULTILABEL:
        chosen, sure = chosen_set(task.labels, shown), min(max(score, 1 - score) for score in shown)
        return Prediction(
            set_text(chosen), sure, task.name, served.version, shown, served.weak, task.labels, unknown, chosen,
            served.unmeasured,
        )  # fmt: skip
    if task.low is None or task.high is None:
        labels, answer = task.labels, task.labels[best]
    else:
        buckets = Buckets(task.low, task.high)
        labels, answer = buckets.values, buckets.expectation(shown)
    return Prediction(
        answer, shown[best], task.name, served.version, shown, served.weak, labels, unknown, None, served.unmeasured
    )


def _services_of(base_or_home: Base | Services | str | Path | None) -> Services | None:
    if isinstance(base_or_home, Services):
        return base_or_home
    if base_or_home is None:
        return open_services(Settings())
    if isinstance(base_or_home, Base):
        return None
    folder = Path(base_or_home).expanduser()
    if (folder / "onboard.db").is_file():
        # use this home, whatever the environment names
        return open_services(Settings(home=folder, database_url="", broker_url="", artifact_url=""))
    known = any((folder / name).is_file() for name in ("base.json", "config.json", "base/base.json"))
    if folder.is_dir() and not known and bundle_at(folder) is None:
        raise InputError("folder-not-servable", folder=folder)
    return None
