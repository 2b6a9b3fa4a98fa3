"""The faults of a run, drawn from its seed before it begins."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal, TypeVar

from bench.chaos.place import PlaceName
from onboard.domain.job import Stage

Victim = Literal["child", "parent", "both"]
AIMS: Final = (
    Stage.CHECK, Stage.READOUT, Stage.PROBE, Stage.TRAIN, Stage.EVALUATE, Stage.PUBLISH,
    None,  # whoever comes along
)  # fmt: skip
_VICTIMS: Final[Mapping[Victim, int]] = {"child": 5, "parent": 2, "both": 3}
_OUTSLEEP_SECONDS: Final = 13.0  # lease, reconciler and another attempt
_LAST: Final = 0.9  # share of the jobs that have ended when the last step is taken
_EARLIEST: Final = {"backup": 0.5}  # before there is something in it

Seconds = tuple[float, float]
Thing = TypeVar("Thing")
_ANYWHERE: Final[Mapping[str, Seconds]] = {
    "zombie": (6.0, 9.0),  # beyond the lease
    "disk full": (2.0, 5.0),
    "two reconcilers": (0.0, 0.0),
    "cancel": (0.0, 0.0),
    "queue paused": (0.5, 2.0),
    "worker drained": (0.0, 0.0),
    "worker told to stop": (0.0, 0.0),
    "all workers killed": (0.0, 0.0),
    "reconciler killed": (0.0, 0.0),
    "clock jumps": (0.0, 0.0),
    "poison job": (0.0, 0.0),
    "backup": (0.0, 0.0),
}
FAULTS: Final[Mapping[PlaceName, Mapping[str, Seconds]]] = {
    "sqlite": {**_ANYWHERE, "bells lost": (0.0, 0.0), "database locked": (0.5, 3.0)},
    "postgres": {
        **_ANYWHERE,
        "redis lost": (0.2, 3.0),
        "redis wiped": (0.0, 0.0),
        "postgres restarted fast": (0.1, 2.0),
        "postgres restarted at once": (0.1, 2.0),
        "postgres restarted again and again": (25.0, 40.0),
        "backends terminated": (0.0, 0.0),
        "connections cut": (0.0, 0.0),
        "connections refused": (1.0, 4.0),
        "connections stalled": (3.0, 8.0),
        "connections half closed": (2.0, 8.0),
        "connections used up": (2.0, 6.0),
    },
}


@dataclass(frozen=True)
class Step:
    """One thing that is done.

    Args:
        at: share of the jobs that have ended when it is due.
        what: "kill", or the name of a fault.
        seconds: how long the fault lasts.
        victim: which processes of a worker are killed.
        aim: the stage in which its job has to be; None for any, or none.
    """

    at: float
    what: str
    seconds: float = 0.0
    victim: Victim = "child"
    aim: Stage | None = None


def sleepers(number: int) -> list[Step]:
    """Nothing but writers that wake when the next attempt at their job has ended: what a fence is there for."""
    return [Step(_LAST * index / number, "sleeper", seconds=_OUTSLEEP_SECONDS) for index in range(number)]


def plan(seed: int, place: PlaceName, kills: int, faults: int) -> list[Step]:
    """So many kills and faults in the order in which they come; every stage and every fault in turn."""
    rng = random.Random(f"{seed} {place}")
    return sorted([*_kills(rng, kills), *_faults(rng, FAULTS[place], faults)], key=lambda step: step.at)


def _kills(rng: random.Random, number: int) -> Iterator[Step]:
    victims = rng.choices(list(_VICTIMS), weights=list(_VICTIMS.values()), k=number)
    for aim, victim in zip(_in_turn(rng, AIMS, number), victims, strict=True):
        yield Step(rng.uniform(0.0, _LAST), "kill", victim=victim, aim=aim)


def _faults(rng: random.Random, known: Mapping[str, Seconds], number: int) -> Iterator[Step]:
    for name in _in_turn(rng, list(known), number):
        yield Step(rng.uniform(_EARLIEST.get(name, 0.0), _LAST), name, seconds=rng.uniform(*known[name]))


def _in_turn(rng: random.Random, things: Sequence[Thing], number: int) -> list[Thing]:
    """Each of `things` once, in a drawn order, then each once again."""
    rounds = (rng.sample(things, len(things)) for _ in range(0, number, len(things)))
    return list(chain.from_iterable(rounds))[:number]
