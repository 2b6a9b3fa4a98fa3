"""Why training started where it did, in plain sentences and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from onboard.report.reading import any_label, listing, mapping, mappings, number, text

MOST_TIES = 5
MOST_CANDIDATES: Final = 10  # shown; a registry may hold a thousand
MOST_LABELS: Final = 8  # of a mapping that are named
CANDIDATE_HEAD: Final = ["starting point", "loss (95%)", "right", "rows", "round", "tuned", ""]
_WHAT: Final = {
    "random": "random numbers, no earlier task",
    "mean": "the mean of all embeddings",
    "fingerprint": "what the texts look like to the base, no earlier task",
    "mixture": "a mixture of the best",
}


def start_notes(init: Mapping[str, Any]) -> list[str]:
    """What the probe's numbers do not say: an alarm, ties, what a mixture is made of, what was not even measured."""
    return list(filter(None, (text(init.get("alarm")), _mixture(init), _ties(init), _prefilter(init), _strategy(init))))


def what_it_is(name: str) -> str:
    """What stands behind the name of a starting point, where the name does not say it; "" for a task's version."""
    return _WHAT.get(name, "" if "@" in name or not name else "a task that the base was trained on, made for that")


def candidate_detail(each: Mapping[str, Any]) -> str:
    """ "31% right, after training 0.412", or "31% right, round 1, 8 rows"."""
    accuracy, tuned = number(each.get("accuracy")), number(each.get("tuned"))
    rows, of_round = number(each.get("rows")), number(each.get("round"))
    right = "" if accuracy is None else f"{100 * accuracy:.0f}% right"
    if tuned is not None:
        return ", ".join(filter(None, [right, f"after training {tuned:.3f}"]))
    measured = "" if rows is None or of_round is None else f"round {of_round:.0f}, {rows:,.0f} rows"
    return ", ".join(filter(None, [right, measured]))


def candidate_rows(init: Mapping[str, Any]) -> list[list[str]]:
    """The table of candidates in the probe's own order, the chosen one first: a cell for each of `CANDIDATE_HEAD`."""
    last = max((number(each.get("round")) or 0.0 for each in mappings(init.get("candidates"))), default=0.0)
    ties, chosen = [text(each) for each in listing(init.get("ties"))], text(init.get("chosen"))
    rows = []
    for each in _measured(init):
        name, of_round = text(each.get("embedding")), number(each.get("round"))
        left = "" if of_round is None else "last" if of_round == last else f"{of_round:.0f} of {last:.0f}"
        remark = "chosen" if name == chosen else "tie" if name in ties else ""
        right, rows_seen, tuned = number(each.get("accuracy")), number(each.get("rows")), number(each.get("tuned"))
        cells = _loss(each), _shown(right, ".0%"), _shown(rows_seen, ",.0f"), left, _shown(tuned, ".3f"), remark
        rows.append([name, *cells])
    return rows


def word_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Which word stands for which label, of each row of `candidate_rows`: [name, mapping]; empty for a regression."""
    init = mapping(document.get("init"))
    pairs = ((text(each.get("embedding")), _words(document, each)) for each in _measured(init))
    return [[name, _mapping_text(words)] for name, words in pairs if words]


def word_notes(document: Mapping[str, Any]) -> list[str]:
    """The chosen candidate's mapping, and those of the last round that differ from it."""
    measured = list(_measured(mapping(document.get("init"))))
    if not measured or not (chosen := _words(document, measured[0])):
        return []
    others = [
        f"Under {text(each.get('embedding'))} they would be: {_mapping_text(words)}."
        for each in measured[1:]
        if number(each.get("tuned")) is not None and (words := _words(document, each)) and words != chosen
    ]
    return [f"Words that stand for the labels: {_mapping_text(chosen)}.", *others]


def _measured(init: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """What is shown of the candidates; the chosen one stands first."""
    chosen = text(init.get("chosen"))
    found = [each for each in mappings(init.get("candidates")) if number(each.get("loss")) is not None]
    return islice(sorted(found, key=lambda each: text(each.get("embedding")) != chosen), MOST_CANDIDATES)


def _words(document: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(label, word) of a candidate; empty where nothing is known, or the labels are the buckets of a number."""
    labels = [any_label(each.get("label")) for each in mappings(mapping(document.get("dataset")).get("labels"))]
    words = [text(word) for word in listing(candidate.get("words"))]
    return list(zip(labels, words, strict=True)) if len(words) == len(labels) else []


def _mapping_text(words: Sequence[tuple[str, str]]) -> str:
    """ "good for positive, bad for negative", or that it is the labels' own words."""
    if all(_plain(label) == _plain(word) for label, word in words):
        return "their own"
    named = ", ".join(f"“{word}” for {label}" for label, word in words[:MOST_LABELS])
    return named + (f" and {len(words) - MOST_LABELS} more" if len(words) > MOST_LABELS else "")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _loss(each: Mapping[str, Any]) -> str:
    loss, low, high = (number(each.get(key)) for key in ("loss", "low", "high"))
    around = "" if low is None or high is None else f" ({low:.2f}–{high:.2f})"
    return f"{_shown(loss, '.3f')}{around}"


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _mixture(init: Mapping[str, Any]) -> str:
    weights = mapping(init.get("weights")).items()
    shares = sorted(((name, number(each) or 0.0) for name, each in weights), key=lambda pair: -pair[1])
    return f"The mixture is {', '.join(f'{100 * share:.0f}% {name}' for name, share in shares)}." if shares else ""


def _ties(init: Mapping[str, Any]) -> str:
    ties = [text(each) for each in listing(init.get("ties"))]
    more = f" and {len(ties) - MOST_TIES} more" if len(ties) > MOST_TIES else ""
    return f"A tie: the rows cannot tell it from {', '.join(ties[:MOST_TIES])}{more}." if ties else ""


def _prefilter(init: Mapping[str, Any]) -> str:
    found = mapping(init.get("prefilter"))
    considered, kept = number(found.get("considered")), number(found.get("kept"))
    if considered is None or kept is None or kept >= considered:
        return ""
    return (
        f"{kept:,.0f} of {considered:,.0f} embeddings were measured: those whose texts and labels are most like these, "
        "and where there are many, a few that do not."
    )


def _strategy(init: Mapping[str, Any]) -> str:
    if init.get("strategy") == "race":
        return (
            "They raced: those that fell behind left after few rows. Compare losses within a round only; "
            "the last round is decided by the loss after a little training (tuned), on rows held out of it."
        )
    return "Every candidate was measured on all rows." if init.get("strategy") == "exhaustive" else ""
