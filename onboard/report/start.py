"""Explain the start of the training in sentences and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onboard.data.verbaliser import words_of
from onboard.domain.methods import OWN_START
from onboard.report.practice import practice_task
from onboard.report.reading import any_label, label_name, listing, mapping, mappings, number, text, within

MOST_TIES = 5
MOST_CANDIDATES: Final = 10  # shown; a registry may have a thousand
MOST_LABELS: Final = 8  # of a mapping that are listed
CANDIDATE_HEAD: Final = ["starting point", "loss (95%)", "right", "rows", "round", "tuned", ""]
FEWEST_ROWS: Final = 8  # of a loss with an interval: with fewer, the normal distribution is a poor approximation
UNLIKE_FROM: Final = 52  # measured embeddings: 32 similar tasks, 8 others, 12 anchors (see `prefilter`)
_MIXTURE: Final = "mixture"
_WHAT: Final = {
    "random": "random numbers, no earlier task",
    "mean": "an average of embeddings",
    OWN_START: "its own parameters",
    "fingerprint": "derived from the texts, no earlier task",
    _MIXTURE: "a mixture of the best",
}

_PLAIN = ("random", "mean")  # starts that contain nothing learned


def start_notes(init: Mapping[str, Any]) -> list[str]:
    """Explain the probe's numbers: an alarm, ties, the parts of a mixture, embeddings that were not measured."""
    if init.get("chosen") == OWN_START:
        return []
    notes = (
        text(init.get("alarm")),
        _most_like(init),
        _mixture(init),
        _ties(init),
        _prefilter(init),
        _known(init),
        *_strategy(init),
    )
    return list(filter(None, notes))


def what_it_is(name: str) -> str:
    """Describe a starting point if its name does not; "" for a task's version."""
    return _WHAT.get(name) or ("" if "@" in name or not name else practice_task(name))


def shown_candidates(init: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], int]:
    """Return the candidates to show, in the probe's order, the chosen one first; and how many are left out."""
    chosen = text(init.get("chosen"))
    candidates = [
        candidate for candidate in mappings(init.get("candidates")) if number(candidate.get("loss")) is not None
    ]
    candidates.sort(key=lambda candidate: text(candidate.get("embedding")) != chosen)
    return candidates[:MOST_CANDIDATES], max(0, len(candidates) - MOST_CANDIDATES)


def own_loss(candidate: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Return a candidate's loss before any training, and its interval if there were enough rows.

    A mixture has none: it results from training, and its stored loss is that after the training.
    """
    if text(candidate.get("embedding")) == _MIXTURE and number(candidate.get("tuned")) is not None:
        return None, None, None
    loss, low, high, rows = (number(candidate.get(key)) for key in ("loss", "low", "high", "rows"))
    if low is None or high is None or (rows is not None and rows < FEWEST_ROWS):
        return loss, None, None
    return loss, max(0.0, low), high


def candidate_detail(candidate: Mapping[str, Any]) -> str:
    """Return "31% right, after training 0.412", or "31% right, round 1, 8 rows"."""
    accuracy, tuned = number(candidate.get("accuracy")), number(candidate.get("tuned"))
    rows, of_round = number(candidate.get("rows")), number(candidate.get("round"))
    right = "" if accuracy is None else f"{100 * accuracy:.0f}% right"
    if tuned is not None:
        return ", ".join(filter(None, [right, f"after training {tuned:.3f}"]))
    measured = "" if rows is None or of_round is None else f"round {of_round:.0f}, {rows:,.0f} rows"
    return ", ".join(filter(None, [right, measured]))


def candidate_rows(init: Mapping[str, Any]) -> list[list[str]]:
    """Return the cells of `CANDIDATE_HEAD` per candidate in the probe's order, the chosen one first."""
    last = max((number(candidate.get("round")) or 0.0 for candidate in mappings(init.get("candidates"))), default=0.0)
    ties, chosen = [text(name) for name in listing(init.get("ties"))], text(init.get("chosen"))
    rows = []
    for candidate in shown_candidates(init)[0]:
        name, of_round = text(candidate.get("embedding")), number(candidate.get("round"))
        left = "" if of_round is None else "last" if of_round == last else f"{of_round:.0f} of {last:.0f}"
        remark = "chosen" if name == chosen else "tie" if name in ties else ""
        right, rows_seen, tuned = (number(candidate.get(key)) for key in ("accuracy", "rows", "tuned"))
        cells = _loss(candidate), _shown(right, ".0%"), _shown(rows_seen, ",.0f"), left, _shown(tuned, ".3f"), remark
        rows.append([name, *cells])
    return rows


def word_rows(document: Mapping[str, Any]) -> list[list[str]]:
    """Return [name, label mapping] for each row of `candidate_rows`; empty for a regression."""
    shown, _ = shown_candidates(mapping(document.get("init")))
    pairs = ((text(candidate.get("embedding")), _words(document, candidate)) for candidate in shown)
    return [[name, _mapping_text(words)] for name, words in pairs if words]


def word_notes(document: Mapping[str, Any]) -> list[str]:
    """Return the chosen candidate's mapping, and others of the last round, each with its candidates."""
    shown, _ = shown_candidates(mapping(document.get("init")))
    if not shown or not (chosen := _words(document, shown[0])):
        return []
    others: dict[str, list[str]] = {}
    for candidate in shown[1:]:
        words = _words(document, candidate)
        if number(candidate.get("tuned")) is not None and words and words != chosen:
            others.setdefault(_mapping_text(words), []).append(text(candidate.get("embedding")))
    return [
        f"Words that stand for the labels: {_mapping_text(chosen)}.",
        *(f"Under {_listed(names)} they would be {words}." for words, names in others.items()),
    ]


def _words(document: Mapping[str, Any], candidate: Mapping[str, Any]) -> list[tuple[Any, str]]:
    """Return (label, word) pairs of a candidate; empty if unknown or for a regression."""
    labels = [label.get("label") for label in mappings(within(document, "dataset", "labels"))]
    words = [text(word) for word in listing(candidate.get("words"))]
    return list(zip(labels, words, strict=True)) if len(words) == len(labels) else []


def _mapping_text(words: Sequence[tuple[Any, str]]) -> str:
    """Return "“good” for positive, “bad” for negative", or that these are the labels' own words."""
    if all(_own_words(label) == words_of(word) for label, word in words):
        return "the labels' own"
    named = ", ".join(f"“{label_name(word)}” for {label_name(label)}" for label, word in words[:MOST_LABELS])
    return named + (f" and {len(words) - MOST_LABELS} more" if len(words) > MOST_LABELS else "")


def _own_words(label: Any) -> str:
    """Return "1" for 1.0, but "1.0" for "1.0"."""
    return words_of(any_label(label) if number(label) is None else label)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _loss(candidate: Mapping[str, Any]) -> str:
    loss, low, high = own_loss(candidate)
    around = "" if low is None or high is None else f" ({low:.2f}–{high:.2f})"
    return f"{_shown(loss, '.3f')}{around}"


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _most_like(init: Mapping[str, Any]) -> str:
    titles = [f"{text(title)} ({name})" for name, title in mapping(init.get("most_like")).items()]
    return f"Most like: {'; '.join(titles)}." if titles else ""


def _mixture(init: Mapping[str, Any]) -> str:
    weights = mapping(init.get("weights")).items()
    shares = sorted(((name, number(weight) or 0.0) for name, weight in weights), key=lambda pair: -pair[1])
    return f"The mixture is {', '.join(f'{100 * share:.0f}% {name}' for name, share in shares)}." if shares else ""


def _ties(init: Mapping[str, Any]) -> str:
    ties, others = [text(name) for name in listing(init.get("ties"))], len(mappings(init.get("candidates"))) - 1
    if not ties:
        return ""
    of = f"{len(ties)} of the {others} other" if others > len(ties) else f"the {len(ties)} other"
    others_told = ", ".join(ties) if len(ties) <= MOST_TIES else f"{of} starting points"
    plain = [name for name in _PLAIN if name in ties and not init.get("alarm")]
    barely = f" It leads {' and '.join(plain)} by one to two standard errors." if plain else ""
    return f"A tie: the rows cannot distinguish it from {others_told}.{barely}"


def _prefilter(init: Mapping[str, Any]) -> str:
    prefilter = mapping(init.get("prefilter"))
    considered, measured = number(prefilter.get("considered")), number(prefilter.get("kept"))
    if considered is None or measured is None or measured >= considered:
        return ""
    unlike = ", and a few dissimilar ones" if measured >= UNLIKE_FROM else ""
    alike = f"those with the most similar texts and labels{unlike}"
    return f"{measured:,.0f} of {considered:,.0f} embeddings were measured: {alike}."


def _known(init: Mapping[str, Any]) -> str:
    if init.get("known_too") is not True or init.get("reason"):  # a requested start is always measured
        return ""
    return (
        "The base or earlier versions were trained on all or nearly all of these rows, "
        "so the losses favor the candidates that know them."
    )


def _strategy(init: Mapping[str, Any]) -> list[str]:
    """Describe how it was chosen: few rows allow one round only, and no trial training."""
    candidates = mappings(init.get("candidates"))
    raced = any((number(candidate.get("round")) or 0.0) > 1 for candidate in candidates)
    tuned = any(number(candidate.get("tuned")) is not None for candidate in candidates)
    notes = []
    if init.get("strategy") == "race" and raced:
        notes.append(
            "The candidates raced: those that fell behind dropped out early. Compare losses only within a round."
        )
    elif init.get("strategy") in ("race", "exhaustive") and candidates:
        unknown = (
            " that it had not been trained on" if number(init.get("overlap")) and not init.get("known_too") else ""
        )
        notes.append(f"Every candidate was measured on all rows{unknown}.")
    if tuned:
        notes.append("The best candidates were decided by the loss after a short training (tuned), on held-out rows.")
    return notes
