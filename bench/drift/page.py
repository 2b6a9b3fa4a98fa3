"""The page: how often there is a false alarm, how soon a new topic is noticed, and what it costs."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.drift.serving import TEXTS
from bench.drift.weeks import NEVER, TOPIC
from bench.harness.page import NONE, VERDICTS, made_on, met, table
from bench.harness.rows import Row
from onboard.statistics.proportions import wilson

MOST_FALSE: Final = 0.05  # share of weeks
MOST_TEXTS: Final = 500  # until an alarm
MOST_OVERHEAD: Final = 3.0  # per cent
_WEEKS: Final = {"first": "first week", "second": "with a week before"}


def markdown(document: Mapping[str, Any]) -> str:
    """The page."""
    lines, serving = document["lines"], document["serving"]
    tasks = sorted({line["task"] for line in lines})
    verdicts = []
    if lines:
        weeks = [line[name] != NEVER for line in lines for name in _WEEKS]
        false = sum(weeks) / len(weeks)
        verdicts.append(
            (f"alarm in at most {MOST_FALSE:.0%} of weeks without drift", _share(weeks), met(false <= MOST_FALSE))
        )
        until = [line[f"new_{name}"] or document["week"] for line in lines for name in _WEEKS]
        caught = [line[f"new_{name}"] in range(1, MOST_TEXTS + 1) for line in lines for name in _WEEKS]
        median = statistics.median(until)
        found = f"median {median:g} texts; {_share(caught)} of weeks within {MOST_TEXTS}"
        verdicts.append(
            (f"alarm within {MOST_TEXTS} texts, {TOPIC:.0%} of a new topic", found, met(median <= MOST_TEXTS))
        )
    wanted = f"at most {MOST_OVERHEAD:g}% overhead on serving"
    if serving:
        worst = max(line["overhead"] for line in serving)
        verdicts.append((wanted, f"{worst:+.1f}% at worst", met(worst <= MOST_OVERHEAD)))
    else:
        verdicts.append((wanted, NONE, "not measured yet"))
    rows, week = sorted({line["rows"] for line in lines}), document["week"]
    return "\n".join([
        "# Drift", "",
        f"{made_on(document)}. Weeks of {document['week']} rows of {len(tasks)} held-out tasks; a version is a "
        f"readout on the encoder. A new topic is {TOPIC:.0%} rows of another held-out task of another family, and of "
        "another source of texts. Alarms are looked for after 62, 125, 250, 500 and 1,000 texts.", "",
        *table(VERDICTS, verdicts), "",
        "## Weeks without drift", "", *table("training rows | week | weeks with an alarm", [
            (number, title, _share([line[name] != NEVER for line in lines if line["rows"] == number]))
            for number in rows for name, title in _WEEKS.items()
        ]), "", _rests_on(lines), "",
        "## A new topic", "", *table("training rows | week | within 500 | within 1,000 | median texts", [
            (number, title, *_caught([line[f"new_{name}"] for line in lines if line["rows"] == number], week))
            for number in rows for name, title in _WEEKS.items()
        ]), "",
        "By task, with a week before:", "",
        *table("task | other | within 500 | median texts", _by_task(lines, week)), "",
        "## Serving", "", "Texts answered by a readout on one thread; each step ends with writing the numbers, which a "
        "server does every 5 seconds. Steps with and without the numbers take turns in one process. CPU time is "
        "counted, so other work on the machine changes little. In brackets the 95% interval of the median ratio.", "",
        *table("texts per request | CPU ms per text without | with | overhead | rounds", [
            (line["texts"], _per_text(line["off"]), _per_text(line["on"]), _overhead(line), line["rounds"])
            for line in serving
        ]), "",
    ])  # fmt: skip


def _share(happened: Sequence[bool]) -> str:
    low, high = wilson(sum(happened), len(happened))
    return f"{100 * sum(happened) / len(happened):.1f}% ({100 * low:.1f}–{100 * high:.1f}) of {len(happened)}"


def _per_text(seconds: float) -> str:
    return f"{1000 * seconds / TEXTS:.2f}"


def _overhead(line: Row) -> str:
    return f"{line['overhead']:+.1f}% ({line['low']:+.1f} to {line['high']:+.1f})"


def _caught(until: Sequence[int], week: int) -> tuple[str, str, str]:
    soon, ever = ([texts != NEVER and texts <= most for texts in until] for most in (MOST_TEXTS, week))
    return _share(soon), _share(ever), f"{statistics.median([texts or week for texts in until]):g}"


def _by_task(lines: Sequence[Row], week: int) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for task in sorted({line["task"] for line in lines}):
        until = [line["new_second"] for line in lines if line["task"] == task]
        other = next(line["other"] for line in lines if line["task"] == task)
        soon, _, median = _caught(until, week)
        found.append((str(task), str(other), soon, median))
    return found


def _rests_on(lines: Sequence[Row]) -> str:
    counted = Counter[str]()
    for line in lines:
        counted.update(line["false"])
    named = ", ".join(f"{name} ({count})" for name, count in counted.most_common())
    return f"False alarms rest on: {named or 'nothing'}."
