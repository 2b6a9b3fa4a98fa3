"""The last stage: everything that was trained becomes a base folder, measured on the sources' test rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import save_file as save_arrays

from onboard.bases import FORMAT, Base
from onboard.bases.curriculum.source import Source
from onboard.bases.documents import write_documents
from onboard.bases.fingerprints import FINGERPRINTS, Fingerprints, write_fingerprints
from onboard.bases.multitask.validation import HeldOut
from onboard.data.hashes import row_hashes
from onboard.domain.dataset import Dataset, Example
from onboard.errors import StorageError
from onboard.evaluate.baselines import score_baselines
from onboard.model.engine import Engine
from onboard.model.quantised_backbone import save_quantised_backbone
from onboard.model.weights import save_hypernetwork

_BASELINES = {"classification": ("majority", "tfidf_logistic_regression"), "regression": ("mean", "tfidf_ridge")}
_METHODS = {"hyperformer++": "HyperFormer++", "hyperformer": "HyperFormer"}

Weights = Literal["float16", "int8"]  # how backbone and hypernetwork are stored


@dataclass(frozen=True)
class Description:
    """What a base says of itself.

    Args:
        name: of the base.
        licence: of its weights, several lines or one.
        backbone: what it was made from: id or folder, commit, licence; empty for a backbone of our own.
        separator: between the texts of a pair.
        max_tokens: of a source text.
        method: of the hypernetwork.
        task_embedding_size, reduction_factor: t and r.
        recipe: as it was given.
        weights: how backbone and hypernetwork are stored; they are rounded to it before they are measured.
    """

    name: str
    licence: str
    backbone: Mapping[str, Any]
    separator: str
    max_tokens: int
    method: str
    task_embedding_size: int
    reduction_factor: int
    recipe: Mapping[str, Any]
    weights: Weights

    def document(
        self,
        sources: Sequence[Source],
        anchors: Mapping[str, Sequence[str]],
        chosen_by: Mapping[str, str],
        metrics: Mapping[str, Any],
    ) -> dict[str, Any]:
        """base.json.

        Args:
            sources: the shipped source tasks.
            anchors: label words of candidates that are no tasks.
            chosen_by: the metric that counted in choosing the checkpoint, by source.
            metrics: what `measure` found, by source.
        """
        return {
            "format": FORMAT,
            "name": self.name,
            "licence": self.licence,
            "backbone": dict(self.backbone),
            "weights": self.weights,
            "pair_separator": self.separator,
            "max_tokens": self.max_tokens,
            "method": self.method,
            "task_embedding_size": self.task_embedding_size,
            "reduction_factor": self.reduction_factor,
            "recipe": dict(self.recipe),
            "sources": {
                source.name: {
                    "kind": source.kind,
                    "labels": list(source.labels),
                    "words": list(source.words),
                    "low": source.low,
                    "high": source.high,
                    "rows": len(source.train),
                    "metric": chosen_by.get(source.name),
                    "metrics": metrics.get(source.name, {}),
                }
                for source in sources
            },
            "anchors": {
                name: {"kind": "classification", "labels": list(words), "words": list(words), "low": None, "high": None}
                for name, words in anchors.items()
            },
        }


def save_base(
    engine: Engine,
    embeddings: Mapping[str, np.ndarray],
    document: Mapping[str, Any],
    sources: Sequence[Source],
    output: Path,
    fingerprints: Fingerprints | None = None,
    given: Base | None = None,
) -> None:
    """Write the base folder; base.json, without which it is no base, comes last.

    Args:
        engine: rounded backbone and hypernetwork.
        embeddings: `z` of every source and anchor.
        document: base.json; `weights` in it says how backbone and hypernetwork are stored, float16 if left out.
        sources: with their training rows, whose hashes are kept.
        output: the folder; the files of a base that lies there are replaced.
        fingerprints: of every source and anchor, where the embeddings started from them.
        given: the base whose backbone this one has: its files are copied, and the rows that trained it stay known.

    Raises:
        StorageError: it cannot be written; what was trained is in the work folder.
    """
    try:
        _clear(output)
        in_int8 = document.get("weights") == "int8"
        if given is None:
            _save_backbone(engine, output / "backbone", in_int8=in_int8)
        else:
            shutil.copytree(given.folder / "backbone", output / "backbone", dirs_exist_ok=True)
        dtype = torch.int8 if in_int8 else torch.float16
        save_hypernetwork(engine.hypernetwork, output / "hypernetwork.safetensors", dtype=dtype)
        _save_arrays(embeddings, sources, {} if given is None else given.trained_rows, output)
        if fingerprints is not None:
            write_fingerprints(fingerprints, output / FINGERPRINTS)
        write_documents(output, document, _made(document), _table(document["sources"]))
        for path in output.rglob("*"):
            if path.is_file():
                path.chmod(0o644)  # safetensors writes files that nobody else may read, workers of other users included
    except (OSError, SafetensorError) as error:
        raise StorageError(
            f"The base cannot be written to {output}: {getattr(error, 'strerror', None) or error}.",
            "Free space there or name another --output, and give the same command again: nothing is trained twice.",
        ) from error


def _clear(output: Path) -> None:
    """From here on the folder is no base; weights and tokenizer of an earlier one would stay beside the new ones."""
    backbone = output / "backbone"
    backbone.mkdir(parents=True, exist_ok=True)
    (output / "base.json").unlink(missing_ok=True)
    (output / FINGERPRINTS).unlink(missing_ok=True)
    for path in backbone.iterdir():
        if path.is_file():
            path.unlink()


def _save_backbone(engine: Engine, folder: Path, *, in_int8: bool) -> None:
    if in_int8:
        save_quantised_backbone(engine.backbone, folder)
    else:
        stored = type(engine.backbone)(engine.backbone.config)
        stored.load_state_dict(engine.backbone.state_dict())
        stored.half().save_pretrained(folder)
    engine.encoder.tokenizer.save_pretrained(folder)


def _save_arrays(
    embeddings: Mapping[str, np.ndarray], sources: Sequence[Source], known: Mapping[str, np.ndarray], output: Path
) -> None:
    tables = {name: np.ascontiguousarray(z, dtype=np.float32) for name, z in embeddings.items()}
    save_arrays(tables, output / "embeddings.safetensors")
    hashes = dict(known)
    for source in sources:
        of_task = np.array(row_hashes(source.train), dtype=np.int64)
        hashes[source.name] = np.union1d(of_task, known.get(source.name, of_task[:0]))
    save_arrays(hashes, output / "trained_rows.safetensors")


def measure(engine: Engine, z: np.ndarray, source: Source, test: Sequence[Example]) -> dict[str, Any]:
    """Metrics of a source's test rows, with majority and TF-IDF + logistic regression on the same rows beside them."""
    ours = HeldOut.of(source, test, engine).score(engine, z, torch.float32)
    dataset = Dataset(source.kind, source.labels, source.train, test=tuple(test), low=source.low, high=source.high)
    theirs = score_baselines(dataset, test, metric="mcc" if source.kind == "classification" else None)
    return {
        "test": {name: metric.to_json() for name, metric in ours.items()},
        "baselines": {
            name: {metric: value.to_json() for metric, value in values.items()} for name, values in theirs.items()
        },
    }


def measure_all(
    engine: Engine,
    table: Mapping[str, np.ndarray],
    sources: Sequence[Source],
    tests: Sequence[Sequence[Example]],
    say: Callable[[str], None],
) -> dict[str, dict[str, Any]]:
    """`measure` of every source under its `z` in the table, by name; each is told as soon as it is known."""
    measured = {}
    for source, test in zip(sources, tests, strict=True):
        measured[source.name] = measure(engine, table[source.name], source, test)
        say(f"{source.name}: {test_line(measured[source.name])}")
    return measured


def test_line(metrics: Mapping[str, Any]) -> str:
    """What `measure` found on the test rows, for a line of progress."""
    return ", ".join(f"test {name} {metric['value']:.3f}" for name, metric in metrics["test"].items())


def _made(document: Mapping[str, Any]) -> str:
    method = document.get("method", "hyperformer++")
    return f"{_backbone_text(document.get('backbone', {}))}, frozen, with {_METHODS.get(method, method)} adapters"


def _backbone_text(backbone: Mapping[str, Any]) -> str:
    if not backbone.get("from"):
        return "A T5 of its own"
    at = f" at {backbone['revision']}" if backbone.get("revision") else ""
    return f"The T5 {backbone['from']}{at}, its layer norms trained on the sources"


def _table(sources: Mapping[str, Any]) -> list[str]:
    lines = [
        "| source | rows | metric on test | this base | majority | TF-IDF + logistic regression |",
        "|---|---|---|---|---|---|",
    ]
    for name, facts in sources.items():
        test = facts["metrics"].get("test", {})
        metric = facts.get("metric") or ("pearson" if facts["kind"] == "regression" else "accuracy")
        if metric in test:
            others = [
                facts["metrics"]["baselines"][other].get(metric, {}).get("value") for other in _BASELINES[facts["kind"]]
            ]
            shown = " | ".join("–" if value is None else f"{value:.3f}" for value in others)
            lines.append(f"| {name} | {facts['rows']:,} | {metric} | {test[metric]['value']:.3f} | {shown} |")
    return lines
