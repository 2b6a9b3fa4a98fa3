"""Scenarios that other queues and workflow engines publish of theirs, and what each is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.harness.page import NONE, table

AWA: Final = "[awa](https://github.com/hardbyte/awa) `benchmarks/portable`"
DBOS: Final = "[DBOS](https://github.com/dbos-inc/dbos-transact-py) `chaos-tests`"
DOCKET: Final = "[docket](https://github.com/chrisguidry/docket) `chaos/driver.py`"
RESTATE: Final = "[Restate](https://github.com/restatedev/jepsen) Jepsen"
OURS: Final = "us"

Numbers = Mapping[str, Any]


@dataclass(frozen=True)
class Scenario:
    """One of them.

    Args:
        what: happens.
        publishers: who publishes it.
        here: what it is in a run.
        times: how often a run had it.
    """

    what: str
    publishers: str
    here: str
    times: Callable[[Numbers], int]


def _fault(*names: str) -> Callable[[Numbers], int]:
    return lambda run: sum(run["faults"].get(name, 0) for name in names)


def _of(key: str) -> Callable[[Numbers], int]:
    return lambda run: int(run.get(key, 0))  # runs from before it was counted have none


def in_a_job(run: Numbers) -> int:
    """Kills of a run that hit a job; many hit a worker that has none, or is only starting."""
    return int(run["kills"]) - int(run["kills_by_stage"].get("idle", 0))


def _restored(run: Numbers) -> int:
    return int(run.get("backups", {}).get("restored", 0))


SCENARIOS: Final = (
    Scenario("a worker dies in the midst of a job", f"{AWA}, {RESTATE}", "kill -9, in any stage", in_a_job),
    Scenario("workers killed in cycles", AWA, "all workers at once, again and again", _fault("all workers killed")),
    Scenario("a worker told to stop, another one put there", DOCKET, "SIGTERM, drained", _fault(
        "worker told to stop", "worker drained"
    )),
    Scenario("a process stands still and goes on", RESTATE, "SIGSTOP beyond the lease", _fault("zombie")),
    Scenario("PostgreSQL restarted", AWA, "fast shutdown; immediate shutdown, with recovery", _fault(
        "postgres restarted fast", "postgres restarted at once"
    )),
    Scenario("PostgreSQL restarted every 5 to 20 s", DBOS, "the same, away for up to 5 s", _of("restarts_in_a_row")),
    Scenario("backends terminated", AWA, "`pg_terminate_backend` of every session", _fault("backends terminated")),
    Scenario("no connection to be had", AWA, "every place of the server taken by others; SQLite locked", _fault(
        "connections used up", "database locked"
    )),
    Scenario("the network parts", RESTATE, "connections cut, refused, stalled, half closed", _fault(
        "connections cut", "connections refused", "connections stalled", "connections half closed"
    )),
    Scenario("the leader fails", AWA, "who holds the reconciler's lease is killed; two at once", lambda run: (
        _of("reconcilers_killed")(run) + _fault("two reconcilers")(run)
    )),
    Scenario("Redis killed", DOCKET, "with all bells in it", _fault("redis lost")),
    Scenario("what can be derived is lost", RESTATE, "Redis flushed, bells in files deleted", _fault(
        "redis wiped", "bells lost"
    )),
    Scenario("poison", DOCKET, "jobs that kill their process, fail, hang", _fault("poison job")),
    Scenario("the disk is full", OURS, "that of the artifacts", _fault("disk full")),
    Scenario("clocks jump", OURS, "of a worker, by up to a day; one in two is an hour wrong all the while", _fault(
        "clock jumps"
    )),
    Scenario("backup while jobs run", OURS, "restored elsewhere, checked, predictions compared", _restored),
    Scenario("two workers on one home", OURS, "three in every run", lambda _run: 1),
)  # fmt: skip


def scenarios(runs: Sequence[Numbers], unlearned: Sequence[Numbers], names: Mapping[str, str]) -> list[str]:
    """The table: how often each was had at each place."""
    rows = [
        (scenario.what, scenario.publishers, scenario.here, *(
            sum(scenario.times(run) for run in runs if run["place"] == place) or NONE for place in names
        ))
        for scenario in SCENARIOS
    ]  # fmt: skip
    rows.append((
        "`tasks delete --unlearn` killed", OURS, "before a statement drawn from a seed; see below",
        *(sum(unlearning["kills"] for unlearning in unlearned if unlearning["place"] == place) for place in names),
    ))  # fmt: skip
    return table(("scenario", "who publishes it", "here", *names.values()), rows)


def left_out() -> Iterator[str]:
    """Published scenarios that are missing here, with reasons."""
    yield "Not here: 500 retries that are due at once (awa; [`bench.queue`](queue.md) claims from 10,000 that wait). "
    yield "Nor low priorities that starve (awa): a higher one goes first as long as there is one, and nothing ages."
