"""The results of a base on its own sources: each one's test rows, compared with the most frequent answer and TF-IDF.

    python -m bench.sources [--base mini]

Nothing is measured here: a base is measured when it is made, and its base.json holds the figures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Final

from bench.harness.command import command_line, command_of
from bench.harness.page import VERDICTS, met, table
from bench.harness.report import write
from onboard.bases import Base, SourceTask, find_base
from onboard.domain.counting import counted

# Of GLUE, on test rows: the metric of each, and what it is to reach.
BARS: Final[Mapping[str, tuple[str, float]]] = {
    "sst2": ("accuracy", 0.82), "qqp": ("accuracy", 0.79), "mnli": ("accuracy", 0.62), "qnli": ("accuracy", 0.74),
    "stsb": ("pearson", 0.78), "mrpc": ("accuracy", 0.75), "rte": ("accuracy", 0.60), "cola": ("mcc", 0.10),
}  # fmt: skip
ABOVE_TFIDF: Final[Mapping[str, float]] = {"single texts": 0.8, "pairs of texts": 0.9}
_BASELINES: Final = {
    "classification": ("majority", "tfidf_logistic_regression"), "regression": ("mean", "tfidf_ridge"),
}  # fmt: skip
_METRICS: Final = {"accuracy": "accuracy", "pearson": "Pearson", "spearman": "Spearman", "mcc": "Matthews"}
_HEAD: Final = "source | family | texts | training rows | metric | test rows | the base | commonest answer | TF-IDF"


@dataclass(frozen=True)
class Figures:
    """A source's figures on its test rows.

    Args:
        source: its name.
        family: kind of the task; empty where the recipe does not say it.
        texts: "single texts" or "pairs of texts".
        rows: it was trained on.
        metric: accuracy, pearson, spearman or mcc.
        test_rows: it was measured on.
        value, low, high: of the base, with its 95% interval; None where it has none.
        majority, tfidf: of the most frequent answer, and of TF-IDF with a linear model.
    """

    source: str
    family: str
    texts: str
    rows: int
    metric: str
    test_rows: int
    value: float
    low: float | None
    high: float | None
    majority: float
    tfidf: float

    @property
    def gain(self) -> float:
        """Over TF-IDF."""
        return self.value - self.tfidf


def figures_of(base: Base) -> list[Figures]:
    """One of every source, by family and name; Pearson's correlation of scores, accuracy of all others."""
    chosen = [
        _figures(base, source, "pearson" if source.kind == "regression" else "accuracy") for source in base.sources
    ]
    return sorted(chosen, key=lambda figures: (figures.family, figures.source))


def _figures(base: Base, source: SourceTask, metric: str) -> Figures:
    test, baselines = source.metrics["test"][metric], source.metrics["baselines"]
    facts = base.document["sources"][source.name]
    return Figures(
        source.name, facts.get("family", ""), "pairs of texts" if source.pairs else "single texts",
        facts["rows"], metric, test["n"], test["value"], test["low"], test["high"],
        *(baselines[name][metric]["value"] for name in _BASELINES[source.kind]),
    )  # fmt: skip


def verdicts(base: Base, sources: Sequence[Figures]) -> list[str]:
    """A table of targets and results."""
    lines = []
    by_name = {source.name: source for source in base.sources}
    for name, (metric, bar) in BARS.items():
        if name in by_name:
            value = _figures(base, by_name[name], metric).value
            what = f"{name}, {_METRICS[metric]} at least {_told(metric, bar)}"
            lines.append((what, _told(metric, value), met(value >= bar)))
    for texts, share in ABOVE_TFIDF.items():
        those = [figures for figures in sources if figures.texts == texts and figures.source not in BARS]
        if those:
            above = sum(figures.gain > 0 for figures in those)
            what = f"{texts} of the other sources above TF-IDF, at least {share:.0%}"
            lines.append(
                (what, f"{above} of {len(those)} ({above / len(those):.0%})", met(above >= share * len(those)))
            )
    return table(VERDICTS, lines)


def by_family(sources: Sequence[Figures]) -> list[str]:
    """Means of accuracy over the sources of each family, the largest gain over TF-IDF first."""
    classified = [figures for figures in sources if figures.metric == "accuracy"]
    families = [[figures for figures in classified if figures.family == name] for name in _families(classified)]
    families.sort(key=lambda family: -fmean(figures.gain for figures in family))
    return table("family | sources | the base | commonest answer | TF-IDF | above TF-IDF", (
        (
            family[0].family or "–", len(family), _mean(family, lambda it: it.value),
            _mean(family, lambda it: it.majority), _mean(family, lambda it: it.tfidf),
            f"{sum(figures.gain > 0 for figures in family)} of {len(family)}",
        )
        for family in families
    ))  # fmt: skip


def page(base: Base, sources: Sequence[Figures], command: str) -> str:
    """The Markdown."""
    rows = (
        (
            figures.source, figures.family or "–", "pairs" if figures.texts.startswith("pairs") else "single",
            f"{figures.rows:,}", _METRICS[figures.metric], f"{figures.test_rows:,}", _with_interval(figures),
            _told(figures.metric, figures.majority), _told(figures.metric, figures.tfidf),
        )
        for figures in sources
    )  # fmt: skip
    lines = [
        f"# The sources of `{base.name}`", "",
        f"`{command}` wrote this page. {counted(len(sources), 'source')}, each on its test rows with the weights that "
        "ship, as they were measured when the base was made (`onboard base show`). Accuracy in per cent, with its 95% "
        "interval; tasks that ask for a number by Pearson's correlation. TF-IDF with a linear model is trained on at "
        "most 5,000 of the same training rows. No interval is corrected for there being many sources.", "",
        "## Targets", "", *verdicts(base, sources), "",
        "## By family", "", "Mean accuracy of its sources.", "", *by_family(sources), "",
        "## Each source", "", *table(_HEAD, rows), "",
    ]  # fmt: skip
    return "\n".join(lines)


def _families(sources: Iterable[Figures]) -> list[str]:
    return list(dict.fromkeys(figures.family for figures in sources))


def _mean(family: Sequence[Figures], of: Callable[[Figures], float]) -> str:
    return _told("accuracy", fmean(map(of, family)))


def _told(metric: str, value: float) -> str:
    return f"{100 * value:.1f}" if metric == "accuracy" else f"{value:.2f}"


def _with_interval(figures: Figures) -> str:
    value = _told(figures.metric, figures.value)
    if figures.low is None or figures.high is None:
        return value
    return f"{value} ({_told(figures.metric, figures.low)} to {_told(figures.metric, figures.high)})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the numbers and the page."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = command_line(__doc__, "sources")
    parser.add_argument("--base", default="mini", help="name or folder")
    asked = parser.parse_args(words)
    base = find_base(asked.base)
    sources, command = figures_of(base), command_of("sources", words)
    document: dict[str, Any] = {
        "command": command, "base": base.name, "digest": base.digest,
        "sources": [asdict(figures) for figures in sources],
    }  # fmt: skip
    write(document, asked.output, page(base, sources, command), asked.table)
    print("\n".join([*verdicts(base, sources), "", *by_family(sources)]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
