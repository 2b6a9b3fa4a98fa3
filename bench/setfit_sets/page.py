"""The page: our figures on SetFit's sets next to those that its authors publish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.harness.page import NONE, VERDICTS, Facts, met, table, table_row, unmeasured, were
from bench.heldout.figures import Results, plain
from bench.heldout.plan import ARMS as TITLES
from bench.heldout.plan import DEFAULT
from bench.setfit_sets.plan import ARMS, MINILM, MPNET, PUBLISHED, SETS, SHOTS

NOT_HERE = "**These sets cannot be had here**"


@dataclass(frozen=True)
class SetFitFacts(Facts):
    """How the page was made; `classes`: how many labels each set has that is there."""

    classes: Mapping[str, int]


def markdown(results: Results, facts: SetFitFacts) -> str:
    """The page."""
    absent = [title for name, (title, _) in SETS.items() if name not in facts.classes]
    lines = [
        "# SetFit's test sets", "",
        f"`{facts.command}` writes this page, on `{facts.base}`: rows of each class, {facts.draws} draws, at most "
        f"{facts.test_rows} test rows. Accuracy in points; of Amazon CF Matthews' correlation times 100. The published "
        "figures are of ten draws and all test rows (repository huggingface/setfit, `final_results`).", "",
        *_absent(absent),
        *([f"**{were(len(facts.missing), 'run')} not made.** Figures are of the others.", ""] if facts.missing else []),
        "## Targets", "", *table(VERDICTS), *verdicts(results, facts.classes), "",
        *(line for shots in SHOTS for line in _of_shots(results, facts.classes, shots)),
    ]  # fmt: skip
    return "\n".join(lines)


def _absent(titles: Sequence[str]) -> list[str]:
    if not titles:
        return []
    which = NOT_HERE if len(titles) == len(SETS) else f"**{', '.join(titles)} cannot be had here**"
    return [
        f"{which}: neither the shared datasets nor a package of the Python registry carries them, and no hub can be "
        "reached where this is measured. Put `train.jsonl.gz` and `test.jsonl.gz` of a set into a folder below --data "
        f"(`{'`, `'.join(SETS)}`), and the same command measures them.", "",
    ]  # fmt: skip


def _value(results: Results, classes: Mapping[str, int], name: str, shots: int, arm: str) -> str:
    """Mean over draws of one arm on one set."""
    if name not in classes:
        return NONE
    return plain(results.mean(results.part(shots * classes[name]).among([name]), arm, SETS[name][1]))


def verdicts(results: Results, classes: Mapping[str, int]) -> list[str]:
    """The default next to the published figures of SetFit MiniLM-L6 with eight rows of each class."""
    lines, shots = [], SHOTS[0]
    for name, published in PUBLISHED[MINILM].items():
        what = f"{SETS[name][0]}, {shots} rows of each class: at or above {MINILM} ({published[shots]})"
        value = _value(results, classes, name, shots, DEFAULT)
        lines.append(
            unmeasured(what) if value == NONE else table_row(what, value, met(float(value) >= published[shots]))
        )
    return lines


def _of_shots(results: Results, classes: Mapping[str, int], shots: int) -> list[str]:
    lines = []
    for name, (title, _) in SETS.items():
        own = [_value(results, classes, name, shots, arm) for arm in ARMS]
        others = [of_set.get(name, {}).get(shots) for of_set in PUBLISHED.values()]
        best = PUBLISHED[MPNET].get(name, {}).get(shots)
        distance = NONE if NONE in (own[0], best) or best is None else f"{float(own[0]) - best:+.1f}"
        lines.append((title, *own, *(NONE if other is None else other for other in others), distance))
    head = ["set", *(TITLES[arm] for arm in ARMS), *(f"{method} (published)" for method in PUBLISHED),
            f"default less {MPNET}"]  # fmt: skip
    return [f"## {shots} rows of each class", "", *table(head, lines), ""]
