"""Whether a task's embedding matters: the sources' test rows under their own embeddings and under one another's.

    python -m bench.shuffled [--base mini] [--rows 200] [--shuffles 3]

Embeddings are exchanged among sources with equally many labels; texts and label words stay the task's own. The accuracy
under a stranger's embedding is what backbone and label words know by themselves. The rows are next to the checkout
(../shared/data/source and wide) or in --data; where they are missing it says so and stops.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from bench.harness.command import DATA, command_line, command_of, datasets_there
from bench.harness.figures import figure_of_tasks, signed
from bench.harness.page import VERDICTS, met, table
from bench.harness.report import made_by, write
from bench.harness.source_folders import SUITES, read_rows, source_places
from onboard.bases import Base, SourceTask, find_base
from onboard.bases.load import load_engine
from onboard.domain.counting import counted
from onboard.domain.dataset import class_indices
from onboard.model.batched import log_probabilities
from onboard.model.engine import Engine

COST: Final = 10.0  # points that strangers' embeddings are to cost on the mean, at least


def exchanged(sources: Sequence[SourceTask], seed: int) -> dict[str, str]:
    """Whose embedding each source gets: another's with as many labels; who is alone with that many is left out."""
    rng = np.random.default_rng(seed)
    strangers: dict[str, str] = {}
    for count in sorted({len(source.labels) for source in sources}):
        names = [source.name for source in sources if len(source.labels) == count]
        order = [names[place] for place in rng.permutation(len(names))]
        if len(order) > 1:
            strangers |= dict(zip(order, [*order[1:], order[0]], strict=True))
    return strangers


def measured(base: Base, data: Path, rows: int, shuffles: int) -> dict[str, dict[str, Any]]:
    """By source: rows, labels, share right under its own embedding and under each stranger's."""
    engine, places = load_engine(base, "cpu"), source_places(data)
    sources = [source for source in base.sources if source.kind == "classification" and source.name in places]
    strangers = [exchanged(sources, seed) for seed in range(shuffles)]
    figures: dict[str, dict[str, Any]] = {}
    for source in sources:
        if all(source.name in by_name for by_name in strangers):
            others = [by_name[source.name] for by_name in strangers]
            shares = _right(engine, base, source, places[source.name], (rows, {source.name, *others}))
            figures[source.name] = {
                "labels": len(source.labels), "own": shares[source.name], "strangers": others,
                "others": [shares[other] for other in others],
            }  # fmt: skip
            print(f"{source.name}: {_told(shares[source.name])}, {_told(_others(figures[source.name]))}", flush=True)
    return figures


def _right(
    engine: Engine, base: Base, source: SourceTask, folder: Path, asked: tuple[int, Collection[str]]
) -> dict[str, float]:
    """Share of the test rows answered right, by embedding; asked: how many rows, and whose embeddings."""
    most, names = asked
    test = read_rows(folder / "test.jsonl.gz")
    test = [test[place] for place in np.random.default_rng(0).permutation(len(test))[:most]]
    ids = engine.encoder.encode([(row.text_a, row.text_b) for row in test])
    truth, trie = np.array(class_indices(source.labels, test)), engine.trie(source.words)
    return {
        name: float((log_probabilities(engine, ids, base.embeddings[name], trie).argmax(1) == truth).mean())
        for name in names
    }


def page(figures: Mapping[str, Mapping[str, Any]], base: str, command: str) -> str:
    """The Markdown."""
    losses = {(name, 0): _loss(facts) for name, facts in figures.items()}
    cost = figure_of_tasks(losses)
    rows = sorted(figures.items(), key=lambda item: -float(_loss(item[1]).mean()))
    lines = [
        f"# Loss of the sources of `{base}` under other sources' embeddings", "",
        f"`{command}` wrote this page. {counted(len(figures), 'source')}, accuracy in per cent on test rows, under its "
        "own embedding and on the mean under those of other sources with equally many labels; texts and label words "
        "stay its own.", "",
        *table(VERDICTS, [(
            f"strangers' embeddings cost at least {COST:.0f} points", f"{signed(cost)} on the mean of tasks",
            met(cost.value >= COST),
        )]), "",
        *table("source | labels | its own | others' | cost", (
            (name, facts["labels"], _told(facts["own"]), _told(_others(facts)),
             f"{100 * float(_loss(facts).mean()):+.1f}")
            for name, facts in rows
        )), "",
    ]  # fmt: skip
    return "\n".join(lines)


def _loss(facts: Mapping[str, Any]) -> np.ndarray:
    """Shares lost under each stranger's embedding (shuffles, 1)."""
    return float(facts["own"]) - np.array(facts["others"])[:, None]


def _others(facts: Mapping[str, Any]) -> float:
    return float(np.mean(facts["others"]))


def _told(share: float) -> str:
    return f"{100 * share:.1f}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the numbers and the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = command_line(__doc__, "shuffled")
    parser.add_argument("--base", default="mini", help="name or folder")
    parser.add_argument("--data", type=Path, default=DATA, help="folder with source/ and wide/")
    parser.add_argument("--rows", type=int, default=200, help="most test rows of a source")
    parser.add_argument("--shuffles", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args(words)
    if not datasets_there(asked.data, "--data", SUITES):
        return 0
    torch.set_num_threads(asked.threads)
    base, command = find_base(asked.base), command_of("shuffled", words)
    figures = measured(base, asked.data, asked.rows, asked.shuffles)
    if not figures:
        print("no two sources of the base have equally many labels, and rows here")
        return 1
    document = {**made_by(command), "base": base.name, "digest": base.digest, "sources": figures}
    text = page(figures, base.name, command)
    write(document, asked.output, text, asked.table)
    print("\n".join(text.splitlines()[:7]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
