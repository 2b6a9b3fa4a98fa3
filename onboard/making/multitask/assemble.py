"""The last stage: write the trained base to a folder, measured on the sources' test rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import save_file as save_arrays

from onboard.bases import FORMAT, LESSONS, Base, LabelledTask, file_digest, folder_digest
from onboard.bases.documents import write_documents
from onboard.bases.fingerprints import FINGERPRINTS, Fingerprints, write_fingerprints
from onboard.bases.lessons import pack_lessons
from onboard.data.hashes import row_hashes
from onboard.domain.dataset import Dataset
from onboard.errors import StorageError
from onboard.evaluate.baselines import score_baselines
from onboard.evaluate.intervals import Metric
from onboard.making.curriculum.source import Source
from onboard.making.multitask.lessons import lessons_of_sources
from onboard.making.multitask.validation import HeldOut
from onboard.model.engine import Engine
from onboard.model.methods import FIRST_METHOD, METHODS
from onboard.model.quantised_backbone import save_quantised_backbone
from onboard.model.weights import save_hypernetwork
from onboard.statistics.prior import Lesson

_BASELINES = {"classification": ("majority", "tfidf_logistic_regression"), "regression": ("mean", "tfidf_ridge")}

Weights = Literal["float16", "int8"]  # format of the stored backbone and hypernetwork


@dataclass(frozen=True)
class TrainedBase:
    """A trained base.

    Args:
        engine: rounded backbone and hypernetwork.
        sources: the shipped source tasks with their training rows, of which hashes are stored.
        embeddings: `z` (t,) of every source and anchor.
        anchors: label words of candidates that are not tasks.
        fingerprints: of every source and anchor, if the embeddings started from them.
        given: an existing base with the same backbone; its files are copied.
        trained_rows: hashes of rows that the backbone was trained on before, by source.
    """

    engine: Engine
    sources: Sequence[Source]
    embeddings: Mapping[str, np.ndarray]
    anchors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    fingerprints: Fingerprints | None = None
    given: Base | None = None
    trained_rows: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """Facts about a base that do not come from its training.

    Args:
        licence: license of its weights, one or several lines.
        backbone: its origin: id or folder, commit, license; empty for a backbone trained here.
        reduction_factor: r.
        recipe: as given.
        weights: format of the stored backbone and hypernetwork; they are rounded before they are measured.
    """

    name: str
    licence: str
    backbone: Mapping[str, Any]
    reduction_factor: int
    recipe: Mapping[str, Any]
    weights: Weights

    def document(self, trained: TrainedBase, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """Return base.json, with the results of `measure` by source."""
        encoder, hypernetwork = trained.engine.encoder, trained.engine.hypernetwork
        return {
            "format": FORMAT,
            "name": self.name,
            "licence": self.licence,
            "backbone": dict(self.backbone),
            "weights": self.weights,
            "pair_separator": encoder.pair_separator,
            "max_tokens": encoder.max_tokens,
            "method": hypernetwork.METHOD,
            "task_embedding_size": hypernetwork.sizes["task_embedding_size"],
            "reduction_factor": self.reduction_factor,
            "recipe": dict(self.recipe),
            "sources": {
                source.name: {
                    **source.to_json(),
                    "pairs": source.pairs,
                    "rows": len(source.train),
                    "metric": source.metric or None,
                    "metrics": metrics.get(source.name, {}),
                }
                for source in trained.sources
            },
            "anchors": {
                name: LabelledTask(name, "classification", tuple(words), tuple(words), None, None).to_json()
                for name, words in trained.anchors.items()
            },
        }


def write_base(trained: TrainedBase, description: Description, output: Path, say: Callable[[str], None]) -> None:
    """Measure a base on its sources and write its folder, including the lessons of its sources.

    Raises as `save_base`.
    """
    metrics = measure_all(trained, say)
    lessons = lessons_of_sources(trained.engine, trained.sources, say)
    save_base(trained, description.document(trained, metrics), output, lessons)
    say(f"base: {output}")


def save_base(
    trained: TrainedBase, document: Mapping[str, Any], output: Path, lessons: Mapping[str, Lesson] | None = None
) -> None:
    """Write the base folder. base.json is written last, and only then is the folder a base.

    Args:
        trained: the base.
        document: base.json; its `weights` give the format of backbone and hypernetwork, by default float16.
        output: the folder; files of an existing base are replaced.
        lessons: lessons of its sources for its prior; base.json contains their digest.

    Raises:
        StorageError: it cannot be written; the training result remains in the work folder.
    """
    engine, in_int8 = trained.engine, document.get("weights") == "int8"
    try:
        _clear(output)
        if trained.given is None:
            _save_backbone(engine, output / "backbone", in_int8=in_int8)
        else:
            shutil.copytree(trained.given.folder / "backbone", output / "backbone", dirs_exist_ok=True)
        dtype = torch.int8 if in_int8 else torch.float16
        save_hypernetwork(engine.hypernetwork, output / "hypernetwork.safetensors", dtype=dtype)
        _save_arrays(trained, output)
        if trained.fingerprints is not None:
            write_fingerprints(trained.fingerprints, output / FINGERPRINTS)
        if lessons:
            (output / LESSONS).write_bytes(pack_lessons(lessons, folder_digest(output / "backbone")))
            document = {**document, "lessons": file_digest(output / LESSONS)}
        write_documents(output, document, _made(document), _table(document["sources"]))
        for path in output.rglob("*"):
            if path.is_file():
                path.chmod(0o644)  # safetensors creates files that only the owner can read, not workers of other users
    except (OSError, SafetensorError) as error:
        raise StorageError(
            "base-not-writable", output=output, reason=getattr(error, "strerror", None) or error
        ) from error


def _clear(output: Path) -> None:
    """Remove base.json, and backbone files of an earlier base that would otherwise remain."""
    backbone = output / "backbone"
    backbone.mkdir(parents=True, exist_ok=True)
    (output / "base.json").unlink(missing_ok=True)
    for name in (FINGERPRINTS, LESSONS, "spread.safetensors"):  # files of bases from earlier releases
        (output / name).unlink(missing_ok=True)
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


def _save_arrays(trained: TrainedBase, output: Path) -> None:
    tables = {name: np.ascontiguousarray(z, dtype=np.float32) for name, z in trained.embeddings.items()}
    save_arrays(tables, output / "embeddings.safetensors")
    earlier = trained.trained_rows
    hashes = dict(earlier)
    for source in trained.sources:
        of_task = np.array(row_hashes(source.train), dtype=np.int64)
        hashes[source.name] = np.union1d(of_task, earlier.get(source.name, of_task[:0]))
    save_arrays(hashes, output / "trained_rows.safetensors")


def measure(engine: Engine, z: np.ndarray, source: Source) -> dict[str, Any]:
    """Return metrics on a source's test rows, and those of the majority and TF-IDF baselines on the same rows."""
    ours = HeldOut.of(source, source.test, engine).score(engine, z, torch.float32)
    dataset = Dataset(source.kind, source.labels, source.train, test=source.test, low=source.low, high=source.high)
    theirs = score_baselines(dataset, source.test, metric="mcc" if source.kind == "classification" else None)
    return {"test": _numbers(ours), "baselines": {name: _numbers(values) for name, values in theirs.items()}}


def _numbers(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {name: metric.to_json() for name, metric in metrics.items()}


def measure_all(trained: TrainedBase, say: Callable[[str], None]) -> dict[str, dict[str, Any]]:
    """Run `measure` for every source with its `z`, and report each result at once. Returns results by name."""
    measured = {}
    for source in trained.sources:
        measured[source.name] = measure(trained.engine, trained.embeddings[source.name], source)
        say(f"{source.name}: {test_line(measured[source.name])}")
    return measured


def test_line(metrics: Mapping[str, Any]) -> str:
    """Return the results of `measure` on the test rows as a progress message."""
    return ", ".join(f"test {name} {metric['value']:.3f}" for name, metric in metrics["test"].items())


def _made(document: Mapping[str, Any]) -> str:
    method = document.get("method", FIRST_METHOD)
    title = METHODS[method].TITLE if method in METHODS else method
    learned = "all its weights" if document.get("recipe", {}).get("multitask") else "its layer norms"
    return f"{_backbone_text(document.get('backbone', {}), learned)}, frozen, with {title} adapters"


def _backbone_text(backbone: Mapping[str, Any], learned: str) -> str:
    if not backbone.get("from"):
        return "A new T5"
    at = f" at {backbone['revision']}" if backbone.get("revision") else ""
    return f"The T5 {backbone['from']}{at}, {learned} trained on the sources"


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
