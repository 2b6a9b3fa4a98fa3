"""Write card.md: the facts of a version for people, from the same data as its metadata."""

from __future__ import annotations

from typing import Any

from onboard.domain.dataset import Label, label_text
from onboard.domain.label_scores import LabelScore, label_scores, neglect_sentence
from onboard.domain.methods import OWN_START
from onboard.domain.moment import to_iso
from onboard.domain.report import plain_number
from onboard.domain.task import EmbeddingVersion, texts_taken


def render_card(version: EmbeddingVersion) -> str:
    """Return Markdown: what the version is, how good it is, and what it is pinned to."""
    lines = [f"# {version.reference}", "", *_marks(version)]
    said = neglect_sentence(label_scores(version.metrics.get("test") or version.metrics.get("validation")), _one_line)
    if said:
        lines += [f"**Labels without answers:** {said}", ""]
    if version.labels:
        pairs = ", ".join(
            f"{_one_line(label)} (“{word}”)" for label, word in zip(version.labels, version.words, strict=True)
        )
        lines += [f"Labels and their words: {pairs}.", ""]
    else:
        lines += [f"A number from {version.low:g} to {version.high:g}.", ""]
    if version.pairs is not None:
        lines += [f"Takes {texts_taken(version.pairs)}.", ""]
    lines += _files(version)
    for split in ("test", "validation"):
        lines += _metrics(split, version.metrics.get(split) or {})
    facts = {
        "published": to_iso(version.created_at),
        "initialized from": _init(version),
        "dataset": version.dataset_digest or "shipped with the base",
        ("embedding" if version.has_embedding else "weights"): version.embedding_digest,
        **({} if version.readout is None else {"readout": version.readout}),
        **({} if version.prior_digest is None else {f"prior (version {version.prior_version})": version.prior_digest}),
        **({} if version.temperature == 1.0 else {"temperature": version.temperature}),
        "backbone": version.backbone_digest,
        "base": version.base_digest,
        "hypernetwork version": _hypernetwork(version) if version.has_embedding else "– (none)",
        "method": version.method,
        "bytes stored": "–" if version.stored_bytes is None else f"{version.stored_bytes:,}",
        "seeds": ", ".join(map(str, version.seeds)) or "–",
        "onboard": version.code_version,
        "job": version.job or "–",
    }
    return "\n".join(
        [*lines, "| pin | value |", "|---|---|", *(f"| {key} | `{value}` |" for key, value in facts.items()), ""]
    )


def _files(version: EmbeddingVersion) -> list[str]:
    """List the files that answer, with their total size, and a program that uses them."""
    named = ["`embedding.safetensors`" if version.has_embedding else "`weights.safetensors`"]
    named += ["`readout.safetensors`, which complements it"] if version.readout is not None else []
    size = "" if version.stored_bytes is None else f"{version.stored_bytes:,} bytes: "
    text = {"text_a": "…", "text_b": "…"} if version.pairs else {"text": "…"}
    asked = ", ".join(f'"{name}": "{value}"' for name, value in {"task": version.task, **text}.items())
    return [
        f"The version is {size}{' and '.join(named)}. It works from this folder, without a service or database:", "",
        "```python",
        "from onboard.serving import Predictor", "",
        'predictor = Predictor(".")  # this folder; it loads the base once',
        f"(answer,) = predictor.predict([{{{asked}}}])",
        "print(answer.label, answer.probability)",
        "```", "",
    ]  # fmt: skip


def _marks(version: EmbeddingVersion) -> list[str]:
    marks = {
        "**Weak:** it is not significantly better than always giving the most frequent label.": version.weak,
        "**Unmeasured:** no rows show how good it is.": version.unmeasured,
        "**Provisional:** only a readout, which its job published before it learned an embedding.": (
            version.provisional
        ),
    }
    return [line for mark, holds in marks.items() if holds for line in (mark, "")]


def _init(version: EmbeddingVersion) -> str:
    if version.parent == OWN_START:
        return "its own parameters"
    shares = ", ".join(f"{100 * weight:.0f}% {name}" for name, weight in version.mixed_from.items())
    return f"{version.parent} of {shares}" if shares else version.parent or "multi-task training of the base"


def _hypernetwork(version: EmbeddingVersion) -> str:
    carried = "" if version.learned_under is None else f", learned under {version.learned_under}"
    return f"{version.hypernetwork_version}{carried}"


def _one_line(label: Label) -> str:
    return " ".join(label_text(label).split()).replace("<", "&lt;")  # Markdown would interpret it as HTML


def _metrics(split: str, metrics: dict[str, Any]) -> list[str]:
    if not metrics:
        return []
    rows = [
        f"| {name} | {plain_number(metric['value'])} | {_interval(metric)} | {metric['n']} |"
        for name, metric in metrics.items()
    ]
    made = sorted({metric["estimate"] for metric in metrics.values() if metric.get("estimate")})
    notes = [f"{name}: {metric['note']}." for name, metric in metrics.items() if metric.get("note")]
    head = f"{split} ({', '.join(made)})" if made else split
    return [
        f"| {head} | value | 95% interval | rows |",
        "|---|---|---|---|",
        *rows,
        "",
        *notes,
        *([""] if notes else []),
        *_by_label(split, label_scores(metrics)),
    ]


def _by_label(split: str, scores: list[LabelScore]) -> list[str]:
    rows = [
        (_one_line(score.label).replace("|", "&#124;"), *map(_share, (score.precision, score.recall, score.f1)),
         str(score.rows), str(score.answers))
        for score in scores
    ]  # fmt: skip
    head = [f"| {split} by label | precision | recall | F1 | rows | answered |", "|---|---|---|---|---|---|"]
    return [*head, *(f"| {' | '.join(row)} |" for row in rows), ""] if rows else []


def _share(share: float | None) -> str:
    return "–" if share is None else plain_number(share)


def _interval(metric: dict[str, Any]) -> str:
    if metric.get("low") is None or metric.get("high") is None:
        return "–"
    return f"{plain_number(metric['low'])} to {plain_number(metric['high'])}"
