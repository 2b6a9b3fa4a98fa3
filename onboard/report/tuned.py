"""The report on a tuned hypernetwork: the gain of the new task, and the guard's verdicts on earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from onboard.report.reading import listing, mapping, mappings, number, text, within

GUARD_HEAD: Final = ["task", "verdict", "judged by", "change of loss, nats (95%)", "flipped answers"]
MOST_NAMED: Final = 3  # of the tasks that did not pass
_PASSED: Final = "pass"


def guard_rows(guard: Mapping[str, Any]) -> list[list[str]]:
    """Return the cells of `GUARD_HEAD` per earlier task, those that did not pass first."""
    tasks = sorted(mappings(guard.get("tasks")), key=lambda task: text(task.get("verdict")) == _PASSED)
    return [
        [text(task.get("task")), _verdict(task), _evidence(task), _change(task), _flipped(task)] for task in tasks
    ]  # fmt: skip


def guard_notes(guard: Mapping[str, Any]) -> list[str]:
    """Add notes to the table: the share of the step, the detectable loss, tasks that were not checked."""
    return [note for note in (_share(guard), _detectable(guard), _unchecked(guard)) if note]


def answering_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return facts on readout, calibration, novelty and hypernetwork."""
    parts = (
        provisional_facts, readout_facts, calibration_facts, unknown_facts, tuning_facts,
    )  # fmt: skip
    return [fact for part in parts for fact in part(document)]


def provisional_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain whether the provisional version was confirmed, and why."""
    first = mapping(document.get("provisional"))
    if not first:
        return []
    ended = text(document.get("state")) == "succeeded"
    became = "confirmed as the final version" if first.get("confirmed") else "a better version followed"
    version = first.get("version")
    which = "unpublished" if version is None else f"v{text(version)}"
    said = f"{which}, {became if ended else 'no other version yet'}"
    low, high = number(first.get("low")), number(first.get("high"))
    between = "" if low is None or high is None else f" The difference is {low:+.3f} to {high:+.3f} (95%)."
    facts = [("provisional version", said), ("why", f"{text(first.get('reason'))}{between}".strip())]
    return [fact for fact in facts if fact[1]]


def readout_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the readout's share and benefit."""
    readout = mapping(document.get("readout"))
    if not readout:
        return []
    share = number(readout.get("share"))
    said = f"{100 * share:.4g}% of the answer" if share else "none"
    return [
        (name, value) for name, value in (("readout", said), ("its contribution", text(readout.get("reason")))) if value
    ]


def calibration_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the temperature of the probabilities and its effect."""
    calibration = mapping(document.get("calibration"))
    temperature, rows = number(calibration.get("temperature")), number(calibration.get("rows"))
    if temperature is None:
        return []
    chosen = f" (chosen on {rows:,.0f} {text(calibration.get('evidence'))})" if rows else " (no rows to choose it)"
    facts = [("temperature", f"{temperature:.3g}{chosen}")]
    for split in ("test", "validation"):
        before, after = (number(within(calibration, when, split)) for when in ("before", "after"))
        if before is not None and after is not None:
            both = f"{before:.3f} without it, {after:.3f} with it" if before != after else f"{after:.3f}"
            facts.append((f"calibration error, {split}", both))
    return facts


def unknown_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the false alarms and misses of the novelty detector."""
    novelty = mapping(document.get("unknown"))
    alarms, misses = number(novelty.get("false_alarms")), number(novelty.get("misses"))
    if alarms is None or misses is None:
        return []
    rows, texts = text(novelty.get("rows")), text(novelty.get("texts"))
    said = (
        f"taken for it: {100 * alarms:.3g}% of {rows} own rows; missed: {100 * misses:.3g}% of {texts} of other kinds"
    )
    return [("unknown texts", said)]


def tuning_facts(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Explain whether the hypernetwork was tuned, why, and the gain of the new task."""
    tuning = mapping(document.get("tuning"))
    if not tuning:
        return []
    facts = [("hypernetwork", "tuned too" if tuning.get("kept") else "unchanged")]
    if text(within(document, "guard", "verdict")) != "rejected":  # otherwise the verdict's callout gives the reason
        facts.append(("why", text(tuning.get("reason"))))
    facts += [("share of it", _proposed(tuning)), ("head", _moved(tuning))]
    return [(name, value) for name, value in facts if value]


def _moved(tuning: Mapping[str, Any]) -> str:
    """State that the head moved during the tuning."""
    version = text(tuning.get("moved_from"))
    if not version or not tuning.get("kept"):
        return ""
    return f"It moved while v{version} was tuned. The step was moved onto the new head, and the guard judged it there."


def _proposed(tuning: Mapping[str, Any]) -> str:
    """State that the new task itself wanted less than the whole step."""
    share = number(tuning.get("proposed"))
    if not share or share == 1.0:
        return ""
    rows = f"{text(tuning.get('rows'))} {text(tuning.get('evidence'))}"
    return f"{100 * share:.4g}% of the step was submitted to the guard: more of it raised the loss on {rows}."


def _verdict(task: Mapping[str, Any]) -> str:
    verdict, trouble = text(task.get("verdict")), text(task.get("trouble"))
    return f"{verdict}: {trouble}" if trouble else verdict


def _evidence(task: Mapping[str, Any]) -> str:
    rows, evidence = number(task.get("rows")), text(task.get("evidence"))
    if rows is None:
        return evidence or "–"
    return f"{rows:,.0f} {'held-out rows' if evidence != 'divergence' else 'texts'}"


def _change(task: Mapping[str, Any]) -> str:
    increase, low, high = (number(task.get(key)) for key in ("increase", "low", "high"))
    if increase is None:
        return "–"
    return f"{increase:+.3f}" if low is None or high is None else f"{increase:+.3f} ({low:+.3f} to {high:+.3f})"


def _flipped(task: Mapping[str, Any]) -> str:
    return "–" if task.get("flipped") is None else f"{text(task.get('flipped'))} of {text(task.get('rows')) or '?'}"


def _share(guard: Mapping[str, Any]) -> str:
    """State the accepted share of the step, and which task limited it."""
    share = number(guard.get("share"))
    if not share or share == 1.0:
        return ""
    stood_by = [
        f"{_named(listing(objection.get('tasks')))} did not pass with {100 * more:.4g}%"
        for objection in mappings(guard.get("objections"))
        if (more := number(objection.get("share")))
    ]
    why = "; ".join(stood_by) or "with more of it, an earlier task may have lost too much"
    return f"{100 * share:.4g}% of the step was accepted: {why}."


def _named(tasks: Sequence[Any]) -> str:
    more = f" and {len(tasks) - MOST_NAMED} more" if len(tasks) > MOST_NAMED else ""
    return ", ".join(map(text, tasks[:MOST_NAMED])) + more


def _detectable(guard: Mapping[str, Any]) -> str:
    """State the worst detectable loss, so that nobody overestimates a verdict. Texts without labels detect nothing."""
    seen = [
        detectable
        for task in mappings(guard.get("tasks"))
        if (detectable := number(task.get("detectable"))) is not None and task.get("evidence") == "held-out rows"
    ]
    if not seen:
        return ""
    return f"On held-out rows, an increase of {max(seen):.3f} nats would have been detected in four of five cases."


def _unchecked(guard: Mapping[str, Any]) -> str:
    unchecked = number(guard.get("unchecked"))
    if not unchecked:
        return ""
    chosen = text(guard.get("chosen"))
    return f"{unchecked:,.0f} more were not checked{f'. Looked at: {chosen}' if chosen else ''}."
