"""The last stage: everything that was trained becomes a base folder, measured on the sources' test rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file as save_arrays
from torch import nn

from onboard.bases import FORMAT
from onboard.data.hashes import row_hashes
from onboard.data.regression import Buckets
from onboard.domain.dataset import Dataset
from onboard.evaluate import evaluate_classification, evaluate_regression, score_baselines
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine
from onboard.model.weights import save_hypernetwork
from onboard.pretrain.curriculum import Source
from onboard.pretrain.recipe import Recipe
from onboard.pretrain.sentences import read_split

_BASELINES = {"classification": ("majority", "tfidf_logistic_regression"), "regression": ("mean", "tfidf_ridge")}


def save_base(
    engine: Engine,
    embeddings: Mapping[str, np.ndarray],
    document: Mapping[str, Any],
    sources: Sequence[Source],
    output: Path,
) -> None:
    """Write the base folder.

    Args:
        engine: rounded backbone and hypernetwork.
        embeddings: `z` of every source and anchor.
        document: base.json.
        sources: with their training rows, whose hashes are kept.
        output: the folder; its files are replaced.
    """
    backbone = output / "backbone"
    backbone.mkdir(parents=True, exist_ok=True)
    stored = type(engine.backbone)(engine.backbone.config)
    stored.load_state_dict(engine.backbone.state_dict())
    stored.half().save_pretrained(backbone)
    engine.encoder.tokenizer.save_pretrained(backbone)
    save_hypernetwork(engine.hypernetwork, output / "hypernetwork.safetensors", dtype=torch.float16)
    save_arrays(
        {name: np.ascontiguousarray(z, dtype=np.float32) for name, z in embeddings.items()},
        output / "embeddings.safetensors",
    )
    hashes = {source.name: np.unique(np.array(row_hashes(source.train), dtype=np.int64)) for source in sources}
    save_arrays(hashes, output / "trained_rows.safetensors")
    (output / "base.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (output / "card.md").write_text(render_card(document), encoding="utf-8")
    licence = f"# Licence of the base `{document['name']}`\n\n{document['licence'].strip()}\n"
    (output / "LICENSE.md").write_text(licence, encoding="utf-8")
    for path in output.rglob("*"):
        if path.is_file():
            path.chmod(0o644)  # safetensors writes files that nobody else may read, workers of other users included


def describe(
    recipe: Recipe,
    sources: Sequence[Source],
    anchors: Mapping[str, Sequence[str]],
    metrics: Mapping[str, Any],
    separator: str,
) -> dict[str, Any]:
    """base.json: what the base is, for machines and for the card."""
    return {
        "format": FORMAT,
        "name": recipe.name,
        "licence": recipe.licence,
        "pair_separator": separator,
        "max_tokens": recipe.backbone.max_tokens,
        "task_embedding_size": recipe.hypernetwork.task_embedding_size,
        "reduction_factor": recipe.hypernetwork.reduction_factor,
        "recipe": recipe.model_dump(mode="json"),
        "sources": {
            source.name: {
                "kind": source.kind,
                "labels": list(source.labels),
                "words": list(source.words),
                "low": source.low,
                "high": source.high,
                "rows": len(source.train),
                "metrics": metrics.get(source.name, {}),
            }
            for source in sources
        },
        "anchors": {
            name: {"kind": "classification", "labels": list(words), "words": list(words), "low": None, "high": None}
            for name, words in anchors.items()
        },
    }


def measure(engine: Engine, z: np.ndarray, source: Source, folder: Path) -> dict[str, Any]:
    """Metrics of a source's test rows, with majority and TF-IDF + logistic regression on the same rows beside them."""
    test = tuple(read_split(folder, "test"))
    dataset = Dataset(source.kind, source.labels, source.train, test=test, low=source.low, high=source.high)
    ids = engine.encoder.encode([(row.text_a, row.text_b) for row in test])
    probabilities = np.exp(log_probabilities(engine, ids, z, engine.trie(source.words)))
    if source.low is not None and source.high is not None:
        predicted = probabilities @ np.array(Buckets(source.low, source.high).values)
        ours = evaluate_regression(np.array([float(row.label) for row in test]), predicted)
    else:
        ours = evaluate_classification(np.array(dataset.class_indices(test)), probabilities)
    theirs = score_baselines(dataset, test)
    return {
        "test": {name: metric.to_json() for name, metric in ours.items()},
        "baselines": {
            name: {metric: value.to_json() for metric, value in values.items()} for name, values in theirs.items()
        },
    }


def render_card(document: Mapping[str, Any]) -> str:
    """card.md: the facts of base.json for people."""
    lines = [
        f"# Base `{document['name']}`", "",
        document["licence"].strip(), "",
        f"A frozen T5 with HyperFormer++ adapters of bottleneck d_model/{document['reduction_factor']}, generated from "
        f"task embeddings of {document['task_embedding_size']} numbers. "
        f"Texts are cut at {document['max_tokens']} tokens.", "",
        "| source | rows | metric on test | this base | majority | TF-IDF + logistic regression |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, facts in document["sources"].items():
        test = facts["metrics"].get("test", {})
        metric = "pearson" if facts["kind"] == "regression" else "accuracy"
        if metric in test:
            others = [
                facts["metrics"]["baselines"][other].get(metric, {}).get("value") for other in _BASELINES[facts["kind"]]
            ]
            shown = " | ".join("–" if value is None else f"{value:.3f}" for value in others)
            lines.append(f"| {name} | {facts['rows']} | {metric} | {test[metric]['value']:.3f} | {shown} |")
    return "\n".join([*lines, ""])


def embedding_table(embeddings: nn.ParameterList, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The first rows of the trained table, by name."""
    return {name: embeddings[index].detach()[0].numpy() for index, name in enumerate(names)}
