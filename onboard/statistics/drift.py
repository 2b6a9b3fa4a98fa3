"""Whether the texts of a task have changed: sums of two groups of texts, compared, each with what chance alone brings.

Sums are all that is kept of texts. Four of them are compared: how often each label is answered (Fisher's exact test of
every label, and the population stability index), how sure the answers are (Mann-Whitney over the bins of a histogram),
how many texts are unlike the training rows (Fisher), and the mean of the features on fixed random directions
(Hotelling's T²). Each test takes the sizes of both groups into account, so few training rows raise no false alarm.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Self

import numpy as np

from onboard.domain.label_set import ANSWERED_FROM

DIRECTIONS: Final = 24  # that features are projected on
EDGES: Final = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)  # between the bins of the confidence
FALSE_ALARMS: Final = 0.05  # share of weeks without drift in which there may be an alarm
FEWEST: Final = 30  # texts of this week, below which nothing is compared
FEWEST_BEFORE: Final = 8  # texts or rows that they are compared with
MIDDLE: Final = 500  # texts, at which a look has most of the level
_LOOKS: Final = tuple(int(MIDDLE * 2.0**power) for power in range(-3, 24))  # from 62 texts to four billion
ROWS_PER_AXIS: Final = 30  # of the earlier group, for each axis that the means of the features are compared on
FEWEST_AXES: Final = 3
SMALLEST_SHARE: Final = 0.02  # difference of two shares that is worth an alarm
SMALLEST_ORDER: Final = 0.05  # how far the probability that one text is answered more surely may be from one half
SMALLEST_DISTANCE: Final = 0.02  # squared distance of two means, in units of the spread
EVERY: Final = ("labels", "confidence", "unknown", "features")  # the differences
OF_TEXTS: Final = ("unknown", "features")  # those that depend on no answer
_CHANCE: Final = 0.95  # the level up to which a difference is called chance where it is shown
_SMOOTHING: Final = 0.5  # added to each count of a stability index (Jeffreys)
_LEAST_SPREAD: Final = 1e-9  # of a direction, relative to the largest: below it the direction says nothing
_DIGITS: Final = 9  # of stored sums
_ROUNDED: Final = 1e-7  # of the mean square of the features: a spread below this may come from rounded sums


@dataclass(frozen=True)
class Sums:
    """The sums of a group of texts; those of two groups can be added.

    Args:
        answered: number of texts with counted answers.
        labels: (K,) number of answers with each label; for a regression, with a value in each bucket.
        confidence: (bins,) number of answers by confidence.
        judged: number of texts that were compared with the training rows.
        unknown: number of these that are unlike the training rows.
        read: number of texts with counted features.
        total: (d,) sum of the features along each direction.
        products: (d, d) sum of the products of each two of them.
    """

    answered: int
    labels: np.ndarray
    confidence: np.ndarray
    judged: int
    unknown: int
    read: int
    total: np.ndarray
    products: np.ndarray

    @classmethod
    def empty(cls, labels: int) -> Self:
        """Nothing yet, of a task with so many labels."""
        counts = [np.zeros(size, dtype=np.int64) for size in (labels, len(EDGES) + 1)]
        return cls(0, counts[0], counts[1], 0, 0, 0, np.zeros(DIRECTIONS), np.zeros((DIRECTIONS, DIRECTIONS)))

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.answered + other.answered, self.labels + other.labels, self.confidence + other.confidence,
            self.judged + other.judged, self.unknown + other.unknown, self.read + other.read,
            self.total + other.total, self.products + other.products,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """As it is stored: numbers only."""
        above = np.triu_indices(DIRECTIONS)
        return {
            "answered": self.answered, "labels": self.labels.tolist(), "confidence": self.confidence.tolist(),
            "judged": self.judged, "unknown": self.unknown, "read": self.read,
            "total": _rounded(self.total), "products": _rounded(self.products[above]),
        }  # fmt: skip

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Parse the result of `to_json`. Raises KeyError, TypeError, ValueError: it is something else."""
        products = np.zeros((DIRECTIONS, DIRECTIONS))
        above = np.triu_indices(DIRECTIONS)
        products[above] = np.array(stored["products"], dtype=np.float64)
        products = products + products.T - np.diag(np.diag(products))
        total = np.array(stored["total"], dtype=np.float64)
        labels, confidence = (np.array(stored[name], dtype=np.int64) for name in ("labels", "confidence"))
        counts = [int(stored[name]) for name in ("answered", "judged", "unknown", "read")]
        finite = np.isfinite(total).all() and np.isfinite(products).all()
        if labels.ndim != 1 or confidence.shape != (len(EDGES) + 1,) or total.shape != (DIRECTIONS,) or not finite:
            raise ValueError("shapes do not fit")
        if min(*counts, *labels.tolist(), *confidence.tolist()) < 0:
            raise ValueError("a count is negative")
        answered, judged, unknown, read = counts
        return cls(answered, labels, confidence, judged, unknown, read, total, products)

    @property
    def shares(self) -> np.ndarray:
        """Share of the answers that name each label (K,)."""
        share: np.ndarray = self.labels / max(self.answered, 1)
        return share

    @property
    def sureness(self) -> float | None:
        """Mean of the confidence as the histogram has it; None without answers."""
        edges = np.array([0.0, *EDGES, 1.0])
        counted = int(self.confidence.sum())
        return float((self.confidence * (edges[1:] + edges[:-1]) / 2).sum() / counted) if counted else None


def _rounded(numbers: np.ndarray) -> list[float]:
    return [float(f"{number:.{_DIGITS}g}") for number in numbers.tolist()]


def answers_of(probabilities: np.ndarray, *, several: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the answers of probabilities (n, K): 1 for each label in an answer (n, K), and the confidence (n,).

    Args:
        several: whether an answer names every label of at least one half, instead of the likeliest one. Its confidence
            is the lowest of its decisions.
    """
    if several:
        surest = np.maximum(probabilities, 1 - probabilities)
        return (probabilities >= ANSWERED_FROM).astype(np.int64), surest.min(1)
    best = probabilities.argmax(1)
    chosen = np.zeros(probabilities.shape, dtype=np.int64)
    chosen[np.arange(len(best)), best] = 1
    return chosen, probabilities.max(1)


def sums_of_answers(chosen: np.ndarray, confidence: np.ndarray, unknown: np.ndarray | None = None) -> Sums:
    """Sums of n answers.

    Args:
        chosen: (n, K), 1 where an answer names a label.
        confidence: (n,) from 0 to 1.
        unknown: (n,) whether each text is unlike the training rows; None where that was not looked at.
    """
    empty = Sums.empty(chosen.shape[1])
    bins = np.bincount(np.searchsorted(EDGES, confidence, side="right"), minlength=len(EDGES) + 1)
    judged, strange = (0, 0) if unknown is None else (len(unknown), int(unknown.sum()))
    counts = chosen.sum(0).astype(np.int64)
    return Sums(len(chosen), counts, bins, judged, strange, 0, empty.total, empty.products)


def sums_of_features(features: np.ndarray, labels: int) -> Sums:
    """Sums of the features (n, h) of n texts of a task with so many labels."""
    on = features.astype(np.float64) @ directions(features.shape[1])
    empty = Sums.empty(labels)
    return Sums(0, empty.labels, empty.confidence, 0, 0, len(features), on.sum(0), on.T @ on)


@cache
def directions(width: int) -> np.ndarray:
    """Fixed random directions (h, d) with entries ±1/√h: the bits of a hash, the same on every machine, for ever."""
    stream = hashlib.shake_256(f"drift {width} {DIRECTIONS}".encode()).digest(-(-width * DIRECTIONS // 8))
    bits = np.unpackbits(np.frombuffer(stream, dtype=np.uint8))[: width * DIRECTIONS]
    signs: np.ndarray = (2.0 * bits.reshape(width, DIRECTIONS) - 1.0) / math.sqrt(width)
    return signs


@dataclass(frozen=True)
class Training:
    """The sums of a version's own rows, to compare texts with.

    Args:
        held_out: whether its answers are those of the version itself to rows that it was not trained on. Otherwise they
            are those of models of a cross-validation, which are not an exact reference: they raise no alarm.
    """

    sums: Sums
    held_out: bool

    @property
    def names(self) -> Sequence[str]:
        """The differences to it that can be an alarm."""
        return EVERY if self.held_out else OF_TEXTS


@dataclass(frozen=True)
class Difference:
    """One comparison of two groups.

    Args:
        value: how large the difference is: a stability index, a difference of shares, or a distance of means.
        chance: the value that chance alone exceeds in one of 20 comparisons of groups as large as these.
        p: probability of such a difference, or a larger one, by chance.
        matters: whether the difference is large enough for an alarm, however certain it is.
    """

    value: float
    chance: float
    p: float
    matters: bool


@dataclass(frozen=True)
class Differences:
    """Everything that differs between two groups of texts; None where one of them is too small to say.

    Args:
        by_label: (K,) stability index of each label against the others, and up to where it is chance.
    """

    labels: Difference | None
    by_label: Sequence[tuple[float, float]]
    confidence: Difference | None
    unknown: Difference | None
    features: Difference | None

    def named(self) -> dict[str, Difference]:
        """Those that could be made, by name."""
        every = zip(EVERY, (self.labels, self.confidence, self.unknown, self.features), strict=True)
        return {name: difference for name, difference in every if difference is not None}

    def beyond(self, level: float, names: Sequence[str] = EVERY) -> list[str]:
        """Which of these differences matter and are less likely than the level."""
        named = self.named()
        return [name for name in names if name in named and named[name].matters and named[name].p <= level]


def compare(now: Sums, before: Sums, *, several: bool = False) -> Differences:
    """How texts differ from others of the same task.

    Args:
        several: whether an answer may name several labels, or none.
    """
    enough = now.answered >= FEWEST and before.answered >= FEWEST_BEFORE and len(now.labels) == len(before.labels)
    return Differences(
        labels=_of_labels(now, before, several=several) if enough else None,
        by_label=_by_label(now, before) if enough else (),
        confidence=_of_confidence(now.confidence, before.confidence) if enough else None,
        unknown=_of_unknown(now, before),
        features=_of_features(now, before),
    )


def look_at(texts: int) -> int:
    """The number of texts at which a week of so many was last due to be looked at; 0 before the first look."""
    return max((look for look in _LOOKS if look <= texts), default=0)


def level_of_look(look: int, tests: int) -> float:
    """The level of each test at one of a week's looks, so that all looks of a week together keep `FALSE_ALARMS`.

    The looks share it: one half at 500 texts, and a third as much for every halving or doubling. Each look shares its
    part among its tests (Bonferroni). How many of them there are depends on the numbers of texts and rows alone.

    Args:
        tests: how many are made at this look.
    """
    away = abs(round(math.log2(look / MIDDLE)))
    return FALSE_ALARMS / 2 * 3.0**-away / max(tests, 1)


def beyond_level(comparisons: Sequence[tuple[Differences, Sequence[str]]], look: int) -> list[list[str]]:
    """Which differences of each comparison are an alarm at a look.

    Args:
        comparisons: of the same texts, each with the names of the differences that may be an alarm.
        look: as of `look_at`.
    """
    tests = sum(name in differences.named() for differences, names in comparisons for name in names)
    level = level_of_look(look, tests)
    return [differences.beyond(level, names) for differences, names in comparisons]


def _smoothed(counts: np.ndarray, size: int) -> np.ndarray:
    shares: np.ndarray = (counts + _SMOOTHING) / (size + _SMOOTHING * len(counts))
    return shares


def stability_index(now: np.ndarray, before: np.ndarray) -> float:
    """Population stability index of two histograms (K,), smoothed: the sum of (p − q)·ln(p / q)."""
    p, q = _smoothed(now, int(now.sum())), _smoothed(before, int(before.sum()))
    return float(((p - q) * np.log(p / q)).sum())


def chance_index(kinds: int, now: int, before: int) -> float:
    """The value that the index exceeds once in 20 times for groups without a difference: (1/n + 1/m)·χ² of K − 1."""
    from scipy.special import chdtri

    return float(chdtri(max(kinds - 1, 1), 1 - _CHANCE) * (1 / now + 1 / before))


def _by_label(now: Sums, before: Sums) -> list[tuple[float, float]]:
    chance = chance_index(2, now.answered, before.answered)
    pairs = zip(now.labels.tolist(), before.labels.tolist(), strict=True)
    return [
        (stability_index(np.array([a, now.answered - a]), np.array([b, before.answered - b])), chance)
        for a, b in pairs
    ]  # fmt: skip


def _of_labels(now: Sums, before: Sums, *, several: bool) -> Difference:
    kinds = len(now.labels)
    if several:
        value = sum(index for index, _ in _by_label(now, before))
        chance = chance_index(kinds + 1, now.answered, before.answered)
    else:
        value = stability_index(now.labels, before.labels)
        chance = chance_index(kinds, now.answered, before.answered)
    apart = np.abs(now.shares - before.shares)
    ps = [
        2 * min(fisher_more(a, now.answered, b, before.answered), fisher_more(b, before.answered, a, now.answered))
        for a, b in zip(now.labels.tolist(), before.labels.tolist(), strict=True)
    ]
    worth = [p for p, by in zip(ps, apart.tolist(), strict=True) if by >= SMALLEST_SHARE]
    p = min(1.0, kinds * min(worth or ps))
    return Difference(value, chance, p, matters=bool(worth))


def fisher_more(now: int, size: int, before: int, size_before: int) -> float:
    """P(`now` or more of `size` where as many in total were drawn from both groups), by Fisher's exact test."""
    from scipy.special import gammaln

    total = now + before
    of_now = np.arange(now, min(size, total) + 1, dtype=np.float64)
    rest = total - of_now

    def ways(drawn: np.ndarray | int, of: int) -> Any:
        return gammaln(of + 1) - gammaln(drawn + 1) - gammaln(of - drawn + 1)

    logs = ways(of_now, size) + ways(rest, size_before) - ways(total, size + size_before)
    return float(min(1.0, np.exp(logs).sum()))


def _of_confidence(now: np.ndarray, before: np.ndarray) -> Difference | None:
    """Mann-Whitney's test over the bins, with the correction for ties."""
    from scipy.special import ndtr

    n, m = int(now.sum()), int(before.sum())
    if not n or not m:
        return None
    both = (now + before).astype(np.float64)
    every = n + m
    middle = both.cumsum() - both + (both + 1) / 2
    above = float((now * middle).sum()) - n * (n + 1) / 2
    spread = n * m / 12 * (every + 1 - float((both**3 - both).sum()) / (every * (every - 1)))
    if spread <= 0:  # all in one bin
        return None
    z = max(0.0, abs(above - n * m / 2) - 0.5) / math.sqrt(spread)
    order = above / (n * m)
    value = stability_index(now, before)
    chance = chance_index(int((both > 0).sum()), n, m)
    return Difference(value, chance, float(2 * ndtr(-z)), matters=abs(order - 0.5) >= SMALLEST_ORDER)


def _of_unknown(now: Sums, before: Sums) -> Difference | None:
    """Test whether more texts are unknown. Fewer never raise an alarm."""
    from scipy.special import ndtri

    if now.judged < FEWEST or before.judged < FEWEST_BEFORE:
        return None
    by = now.unknown / now.judged - before.unknown / before.judged
    share = (now.unknown + before.unknown + _SMOOTHING) / (now.judged + before.judged + 2 * _SMOOTHING)
    chance = float(ndtri(_CHANCE)) * math.sqrt(share * (1 - share) * (1 / now.judged + 1 / before.judged))
    p = fisher_more(now.unknown, now.judged, before.unknown, before.judged)
    return Difference(by, chance, p, matters=by >= SMALLEST_SHARE)


def axes_of(rows: int) -> int:
    """Number of axes on which the means of the features are compared with so many earlier rows."""
    return min(DIRECTIONS, max(FEWEST_AXES, rows // ROWS_PER_AXIS))


def _of_features(now: Sums, before: Sums) -> Difference | None:
    """Hotelling's T² of the two means, in units of the spread within the groups.

    With few earlier rows, a difference on all directions drowns in chance. Then only the axes on which both groups
    together spread most are compared. They are chosen without regard to which text is in which group, so the test
    keeps its level. It uses that T² / (n + m − 2) = q / (1 − q), where q is the share of the spread between the groups.
    """
    from scipy.special import fdtrc, fdtri

    n, m = now.read, before.read
    if n < FEWEST or m < FEWEST_BEFORE or n + m < 2 * DIRECTIONS:
        return None
    mean = (now.total + before.total) / (n + m)
    spread, axes = np.linalg.eigh((now.products + before.products) / (n + m) - np.outer(mean, mean))
    size = float(np.trace(now.products) + np.trace(before.products)) / (n + m)
    compared = spread > max(_LEAST_SPREAD * float(spread[-1]), _ROUNDED * size)
    compared[: -axes_of(m)] = False  # the largest are last
    kept = int(compared.sum())
    freedom = n + m - kept - 1
    if not kept or freedom < kept:
        return None
    apart = axes[:, compared].T @ (now.total / n - before.total / m)
    between = min(n * m / (n + m) ** 2 * float((apart**2 / spread[compared]).sum()), 1 - _LEAST_SPREAD)
    squared = between / (1 - between) * (n + m - 2) * (n + m) / (n * m)
    of_f = freedom / (kept * (n + m - 2)) * n * m / (n + m)  # times the squared distance it is F's
    chance = float(fdtri(kept, freedom, _CHANCE)) / of_f
    by_chance = freedom / max(freedom - 2, 1) / of_f  # on the mean
    p = float(fdtrc(kept, freedom, of_f * squared))
    return Difference(math.sqrt(squared), math.sqrt(chance), p, matters=squared - by_chance >= SMALLEST_DISTANCE)
