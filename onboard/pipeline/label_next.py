"""What a job's report says of unlabelled texts: which to label next, and what the version would answer now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from onboard.data.regression import Buckets
from onboard.domain.dataset import Example, Label
from onboard.domain.report import decimals_of
from onboard.pipeline.material import Workbench
from onboard.train.labelling import Next, label_next

_SHOWN_CHARACTERS: Final = 1_000  # of a text: enough to find it by, and the report stays small


def labelling(
    bench: Workbench,
    counts: dict[str, int],
    words: Sequence[str],
    z: np.ndarray,
    before_batch: Callable[[], None],
) -> dict[str, Any] | None:
    """The report's `label_next`, a JSON-compatible document; None where no texts were handed in.

    Args:
        bench: the job's material with its unlabelled texts.
        counts: what `onboard.data.unlabelled.Pool.to_json` said of them.
        words, z: of the trained version.
        before_batch: called before every batch; may raise to stop.
    """
    if not bench.unlabelled:
        return None
    trie, ids = bench.engine.trie(words), bench.encode(bench.unlabelled)
    suggested = label_next(bench.engine, ids, trie, z, before_batch, bench.scored_at_once)
    rows = [{**_text(bench.unlabelled[suggestion.row]), **_answer(suggestion, bench)} for suggestion in suggested]
    return {**{name: counts[name] for name in ("read", "known", "repeated", "considered")}, "rows": rows}


def _text(row: Example) -> dict[str, str]:
    if row.text_b is None:
        return {"text": row.text_a[:_SHOWN_CHARACTERS]}
    return {"text_a": row.text_a[:_SHOWN_CHARACTERS], "text_b": row.text_b[:_SHOWN_CHARACTERS]}


def _answer(each: Next, bench: Workbench) -> dict[str, Any]:
    answers = _number(each, bench.buckets) if bench.buckets else _classes(each, bench.dataset.labels)
    return {"uncertainty": round(each.uncertainty, 4), **answers}


def _classes(suggestion: Next, labels: Sequence[Label]) -> dict[str, Any]:
    best = np.argsort(-suggestion.probabilities, kind="stable")[:2]
    return {
        "answers": [
            {"label": labels[label], "probability": round(float(suggestion.probabilities[label]), 4)} for label in best
        ]
    }


def _number(suggestion: Next, buckets: Buckets) -> dict[str, Any]:
    values = np.array(buckets.values)
    mean = float(suggestion.probabilities @ values)
    spread = float(np.sqrt(suggestion.probabilities @ (values - mean) ** 2))
    decimals = decimals_of(buckets.width, 4)
    return {"value": round(mean, decimals), "spread": round(spread, decimals)}
