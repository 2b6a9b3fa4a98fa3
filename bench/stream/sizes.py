"""Bytes that a task costs: its own, and its part of what all tasks share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from bench.harness.page import table
from bench.stream.figures import Results
from bench.stream.material import Material
from bench.stream.methods import GUARDED, LORA, METHODS
from onboard.bases.fingerprints import pack_fingerprint
from onboard.contract.versions import VersionDocument
from onboard.domain.task import EmbeddingVersion
from onboard.evaluate.evaluation import evaluate_classification
from onboard.model.weights import save_hypernetwork
from onboard.storage.embedding import embedding_digest, embedding_facts, pack_embedding

AMONG: Final = (1, 10, 100, 1000)  # tasks that share
FLOAT32: Final = 4


@dataclass(frozen=True)
class Size:
    """The stored bytes of a method.

    Args:
        title: for people.
        own: bytes of each task.
        shared: bytes that there are once.
    """

    title: str
    own: float
    shared: float

    def of_task(self, among: int) -> float:
        """Bytes of a task where so many share."""
        return self.own + self.shared / among


def sizes(material: Material, results: Results) -> list[Size]:
    """Of each method that is there; the bytes stored next to the snapshot of the rows."""
    folder = material.base.folder
    backbone = sum(path.stat().st_size for path in (folder / "backbone").iterdir() if path.is_file())
    first = (folder / "hypernetwork.safetensors").stat().st_size
    own, tuned, orders = version_bytes(material), hypernetwork_bytes(material), range(len(results.tasks))
    stored = []
    for method, facts in METHODS.items():
        steps = [row for order in orders for row in results.rows(method, order)]
        if not steps:
            continue
        if method == LORA:
            stored.append(Size(facts.title, float(FLOAT32 * steps[0]["parameters"]), float(backbone)))
        elif facts.tuning is None:
            stored.append(Size(facts.title, float(own), float(backbone + first)))
        else:
            stored.append(Size(f"{facts.title}, one head", float(own), float(backbone + first + tuned)))
        if method == GUARDED:
            taken = sum(row["share"] > 0 for row in steps) / len(steps)
            title = f"{facts.title}, with every hypernetwork that a task was learned under"
            stored.append(Size(title, own + taken * tuned, float(backbone + first)))
    return stored


def version_bytes(material: Material) -> int:
    """Of an embedding version of 64 labelled rows or fewer, with test rows: its file, and its facts in the registry.

    The facts are those of a task with six labels, which are the largest part of it. Of the row count the values, as the
    registry writes them: numbers as their digits, which is more than a database needs, and names of columns not at all.
    """
    labels = tuple(f"{name}_label" for name in ("first", "second", "third", "fourth", "fifth", "sixth"))
    z = np.zeros(int(material.base.document["task_embedding_size"]), dtype=np.float32)
    rng = np.random.default_rng(0)
    measured = evaluate_classification(rng.integers(0, 6, 200), rng.dirichlet(np.ones(6), 200))
    metrics = {name: metric.to_json() for name, metric in measured.items()}
    digest = embedding_digest(z)
    version = EmbeddingVersion(
        task="question-types", kind="onboarded", artifact=digest, embedding_digest=digest,
        backbone_digest=material.base.backbone_digest, base_digest=material.base.digest, hypernetwork_version=12,
        dataset_digest=digest, parent="suggestion_mining@v1", task_kind="classification", labels=labels,
        words=tuple(label.replace("_", " ") for label in labels), code_version=digest, method="hyperformer++",
        seeds=(0,), metrics={"validation": metrics, "test": metrics}, fingerprint=pack_fingerprint(z), version=1,
        job=digest[:32],
    )  # fmt: skip
    row = [
        column if isinstance(column, str) else json.dumps(column)
        for column in VersionDocument.of(version).to_json().values()
    ]
    row.append(pack_fingerprint(z))
    return len(pack_embedding(z, embedding_facts(version, digest))) + sum(len(column.encode()) for column in row)


def hypernetwork_bytes(material: Material) -> int:
    """Of a tuned hypernetwork, which is stored exactly."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "hypernetwork.safetensors"
        save_hypernetwork(material.engine.hypernetwork, path)
        return path.stat().st_size


def shown(count: float) -> str:
    """`2.4 KB`, `14.7 MB`."""
    for unit, size in (("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count:,.0f} B"


def sizes_table(stored: Sequence[Size]) -> list[str]:
    """Rows of Markdown."""
    rows = [
        (size.title, shown(size.own), shown(size.shared), *(shown(size.of_task(among)) for among in AMONG))
        for size in stored
    ]
    return table(("method", "own", "shared", *(f"{count:,} task{'s' * (count > 1)}" for count in AMONG)), rows)
