"""False alarms and misses: what a guard says that sees few of the rows whose whole number tells the truth."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from bench.guard.measured import SIZES, Change, Effect
from onboard.guard.settings import GuardSettings
from onboard.guard.verdicts import Seen, judge

DRAWS: Final = 100
ROWS: Final = (32, 64, 128, 256, 512)  # of a half
HARMLESS: Final = 0.25  # of the margin: what costs no more than this should pass
EDGES: Final = (-math.inf, 0.0, 0.005, 0.01, 0.02, 0.03, 0.05, math.inf)  # of the true increase, nats
QUANTILE: Final = 1.6448536269514722  # of the standard normal distribution, at 95%
_LEVELS: Final = {0.95: QUANTILE, 0.99: 2.3263478740408408}


@dataclass(frozen=True)
class Spread:
    """How far the true increase lies from the divergence D that texts show, as multiples of √D.

    Args:
        pairs: of a change and a task.
        deviation: root mean square, without what the truth's own noise adds.
        quantile: the spread κ that D + 1.645 κ √D needs to hold 95% of the true increases.
        held: share of them that the chosen spread holds, by level.
    """

    pairs: int
    deviation: float
    quantile: float
    held: dict[float, float]


def spread(changes: Sequence[Change], chosen: float, texts: int, rng: np.random.Generator) -> Spread:
    """Over all changes and tasks; `texts` of each group are drawn, and the worst group counts."""
    pairs = [
        (effect.increase, effect.error, max(float(group.mean()) for group in _texts(effect, texts, rng)))
        for change in changes
        for effect in change.effects
    ]
    increase, error, divergence = np.array(pairs).T
    root = np.sqrt(np.maximum(divergence, 1e-9))
    ratio = (increase - divergence) / root
    noise = float(np.mean((error / root) ** 2))
    held = {level: float((ratio <= value * chosen).mean()) for level, value in _LEVELS.items()}
    deviation = math.sqrt(max(0.0, float(np.mean(ratio**2)) - noise))
    return Spread(len(pairs), deviation, float(np.quantile(ratio, 0.95)) / QUANTILE, held)


def quantiles(changes: Sequence[Change], edges: Sequence[float]) -> list[dict[str, float]]:
    """By divergence of the texts: how many pairs there are, and median and 95% quantile of their true increase."""
    pairs = [(_worst(effect), effect.increase) for change in changes for effect in change.effects]
    rows = []
    for low, high in pairwise(edges):
        inside = [increase for divergence, increase in pairs if low < divergence <= high]
        if inside:
            middle, most = np.quantile(inside, (0.5, 0.95))
            rows.append({"low": low, "high": high, "pairs": len(inside), "median": float(middle), "q95": float(most)})
    return rows


@dataclass(frozen=True)
class Passed:
    """How often single tasks pass: by evidence, and by what the change truly costs them.

    Args:
        evidence: "divergence", or how many held-out rows a half has.
        shares: by bin of the true increase (`EDGES`): pairs of change and task, and the mean share that pass.
        by_size: by planted size (`SIZES`): the mean share that pass of what costs at most a quarter of the margin.
        false_alarm: share not passed of what costs at most a quarter of the margin; None where there is none.
        miss: share passed of what costs more than the margin; None where there is none.
    """

    evidence: str
    shares: list[tuple[int, float | None]]
    by_size: list[float | None]
    false_alarm: float | None
    miss: float | None


def passed(changes: Sequence[Change], settings: GuardSettings, rng: np.random.Generator) -> list[Passed]:
    """Tasks judged alone, by each kind of evidence."""
    by_evidence = []
    for rows in (None, *ROWS):
        judged = [
            (
                change.size,
                effect.increase,
                float(np.mean([_pass([seen], settings) for seen in _draws(effect, rows, settings, rng)])),
            )
            for change in changes
            for effect in change.effects
        ]
        by_evidence.append(_summary("divergence" if rows is None else f"{rows} rows", judged, settings.margin))
    return by_evidence


def accepted(changes: Sequence[Change], settings: GuardSettings, rng: np.random.Generator) -> Passed:
    """Changes judged by all tasks at once (Holm over them), by the divergence: shares are of whole changes."""
    judged = []
    for change in changes:
        worst = max(effect.increase for effect in change.effects)
        draws = zip(*(_draws(effect, None, settings, rng) for effect in change.effects), strict=True)
        judged.append((change.size, worst, float(np.mean([_pass(list(tasks), settings) for tasks in draws]))))
    return _summary(f"all {len(changes[0].effects)} tasks", judged, settings.margin)


def _draws(effect: Effect, rows: int | None, settings: GuardSettings, rng: np.random.Generator) -> Iterator[Seen]:
    """The view of a guard on a task: a half of its texts, or so many labelled rows."""
    none = np.zeros(0, dtype=np.bool_)
    for _ in range(DRAWS):
        if rows is None:
            groups = _texts(effect, settings.texts // 2, rng)
            of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
            yield Seen(effect.task, "divergence", np.empty(0), np.concatenate(groups), of, none)
        else:
            drawn = rng.choice(effect.changes, rows, p=effect.weights / effect.weights.sum())
            yield Seen(effect.task, "held-out rows", drawn, np.empty(0), np.empty(0), none)


def _texts(effect: Effect, most: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Divergences of texts of each group that there is."""
    groups = [group for group in (effect.own, effect.singles, effect.pairs) if len(group)]
    return [rng.choice(group, min(len(group), most), replace=False) for group in groups]


def _worst(effect: Effect) -> float:
    return max(float(group.mean()) for group in (effect.own, effect.singles, effect.pairs) if len(group))


def _pass(seen: Sequence[Seen], settings: GuardSettings) -> bool:
    return all(verdict.passed for verdict in judge(seen, settings))


def _summary(evidence: str, judged: Sequence[tuple[float, float, float]], margin: float) -> Passed:
    """Of planted size, true increase and share that passed."""
    size, increase, share = np.array(judged).T
    harmless = increase <= HARMLESS * margin
    passed = _mean(share[harmless])
    return Passed(
        evidence,
        [(int(inside.sum()), _mean(share[inside])) for inside in _bins(increase)],
        [_mean(share[harmless & (size == planted)]) for planted in SIZES],
        None if passed is None else 1.0 - passed,
        _mean(share[increase > margin]),
    )


def _bins(increase: np.ndarray) -> list[np.ndarray]:
    return [(low < increase) & (increase <= high) for low, high in pairwise(EDGES)]


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
