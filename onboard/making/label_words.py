"""The file with the label words of a checkpoint's tasks, which checkpoints do not contain.

{"sst2": ["negative", "positive"],                                        labels that are used as words
 "mnli": {"labels": ["entailment", "neutral"], "words": ["0", "1"]},      labels, and the words for them
 "stsb": {"low": 0, "high": 5}}                                           numbers, as 21 buckets ("words" may name them)
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from onboard.bases import SourceTask
from onboard.data.regression import BUCKETS, Buckets
from onboard.domain.dataset import Label, label_key
from onboard.errors import InputError, NotFoundError

_OF_A_RANGE = {"low", "high", "words"}
NAMED = 5  # maximum number of tasks in an error
EXAMPLE = '{"sst2": ["negative", "positive"], "stsb": {"low": 0, "high": 5}}'


def read_label_words(path: Path, tasks: Sequence[str]) -> dict[str, SourceTask]:
    """Return the labels and words of every task, in the order of `tasks`.

    Raises:
        NotFoundError: the file does not exist.
        InputError: the file is not JSON, a task has no words, an entry is not a task, or words are unsuitable.
    """
    if not path.is_file():
        raise NotFoundError("label-words-missing", path=path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError("label-words-not-json", path=path, reason=error) from error
    if not isinstance(document, dict):
        raise InputError("label-words-not-object", path=path)
    if missing := [task for task in tasks if task not in document]:
        raise InputError("label-words-incomplete", tasks=missing, path=path, missing=_some(missing))
    if unknown := [task for task in document if task not in tasks]:
        raise InputError(
            "label-words-of-unknown-task", tasks=unknown, path=path, unknown=_some(unknown), present=list(tasks)
        )
    return {task: _task(task, document[task]) for task in tasks}


def label_words(tasks: Iterable[SourceTask]) -> dict[str, Any]:
    """Return the content of a file for these tasks. Reading it gives the same tasks."""
    return {task.name: _entry(task) for task in tasks}


def _entry(task: SourceTask) -> Any:
    if task.low is not None and task.high is not None:
        entry = {"low": task.low, "high": task.high}
        return entry if task.words == Buckets(task.low, task.high).words else {**entry, "words": list(task.words)}
    if task.labels == task.words:
        return list(task.words)
    return {"labels": list(task.labels), "words": list(task.words)}


def _task(name: str, entry: Any) -> SourceTask:
    match entry:
        case list():
            return _classification(name, entry, entry)
        case {"labels": list(labels), "words": list(words)} if len(entry) == 2:
            return _classification(name, labels, words)
        case {"low": int() | float() as low, "high": int() | float() as high} if entry.keys() <= _OF_A_RANGE:
            return _regression(name, float(low), float(high), entry.get("words"))
    raise _unusable(name, "they are neither a list of words nor a range")


def _classification(name: str, labels: list[Any], words: list[Any]) -> SourceTask:
    if not all(isinstance(label, str | int | float) for label in labels):  # a bool is an int
        raise _unusable(name, "a label is neither a string, a number nor true or false")
    typed_labels: tuple[Label, ...] = tuple(labels)
    if len(labels) < 2 or len({label_key(label) for label in typed_labels}) < len(labels):
        raise _unusable(name, "a task needs at least two labels, all different")
    return SourceTask(name, "classification", typed_labels, _words(name, words, len(labels)), None, None, {})


def _regression(name: str, low: float, high: float, words: Any) -> SourceTask:
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise _unusable(name, f"{low:g} to {high:g} is not a range")
    spelt = Buckets(low, high).words if words is None else _words(name, words, BUCKETS)
    return SourceTask(name, "regression", (), spelt, low, high, {})


def _words(name: str, words: Any, count: int) -> tuple[str, ...]:
    if not isinstance(words, list) or not all(isinstance(word, str) and word.strip() for word in words):
        raise _unusable(name, "every word has to be a string that is not empty")
    if len(words) != count or len(set(words)) < count:
        raise _unusable(name, f"{count} different words are needed")
    return tuple(words)


def _unusable(name: str, reason: str) -> InputError:
    return InputError("label-words-unusable", task=name, reason=reason)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
