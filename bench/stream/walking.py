"""Streams from where they were left off to their ends, or until the time is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bench.harness.rows import Row, unpacked
from bench.stream.learning import advance, alone, begin, from_hex
from bench.stream.material import Material
from bench.stream.methods import LORA, METHODS
from bench.stream.sharing import Heads, Journal, Stream
from bench.stream.state import Learned, State
from bench.stream.tasks import in_order
from onboard.errors import DamagedError, NotFoundError


def walk(
    material: Material,
    stream: Stream,
    names: Sequence[str],
    journal: Journal,
    weights: Path,
    time_is_up: Callable[[], bool] = lambda: False,
) -> None:
    """Measure what the file lacks of a stream, and append each step as soon as it is there.

    A stream whose hypernetworks were not kept starts again.

    Args:
        material: the rows.
        stream: method and order.
        names: of all tasks.
        journal: the finished steps.
        weights: folder for the hypernetworks of streams under way.
        time_is_up: asked before each step.
    """
    tasks = in_order(names, stream.order)
    rows, heads = journal.steps().get(stream, []), Heads(weights, stream)
    if len(rows) == len(tasks):
        return
    try:
        state = resumed(material, stream, tasks, rows, heads)
    except (NotFoundError, DamagedError) as error:
        print(f"{told(stream)}: starts anew ({error})", flush=True)
        rows, state = [], resumed(material, stream, tasks, [], heads)
    for index, task in enumerate(tasks[len(rows) :], len(rows)):
        if time_is_up():
            print(f"{told(stream)}: the time is up, {len(tasks) - index} tasks are left", flush=True)
            return
        row, state = _step(material, stream, index, task, state, rows, journal)
        if METHODS[stream.method].tuning:
            heads.keep(state.hypernetwork)  # before the row: whoever finds the row can go on from it
        journal.add(stream, index, task, row)
        rows = [*rows, row]
        print(f"{told(stream)}, {index + 1}/{len(tasks)} {task}: {_outcome(row)}", flush=True)
    heads.forget()


def resumed(material: Material, stream: Stream, tasks: Sequence[str], rows: Sequence[Row], heads: Heads) -> State:
    """The state of a stream after these steps.

    Raises:
        NotFoundError, DamagedError: a hypernetwork is not there any more.
    """
    state = State.first(material.engine.hypernetwork, material.base.known_rows)
    if stream.method == LORA or not rows:
        return state
    lacking = {row["head"] for row in rows} - set(state.heads)
    learned, known = [], [state.known_rows]
    for task, row in zip(tasks, rows, strict=False):
        learned.append(Learned(task, from_hex(row["z"]), tuple(row["words"]), row["head"], row["generated"]))
        if row.get("share"):
            known.append(material.of(task, stream.order).hashes)
    everything = {**state.heads, **heads.load(sorted(lacking))}
    return State(rows[-1]["head"], everything, tuple(learned), np.unique(np.concatenate(known)))


def told(stream: Stream) -> str:
    """A stream, for people."""
    return f"{stream.method}, order {stream.order + 1}"


def _step(
    material: Material, stream: Stream, index: int, task: str, state: State, rows: Sequence[Row], journal: Journal
) -> tuple[Row, State]:
    before: list[str] = rows[-1]["correct"] if rows else []
    if stream.method == LORA:
        return alone(material, task, stream.order, before, rows[-1]["rows"] if rows else []), state
    begun = journal.begun(stream.order, index, state.digest) or begin(material, task, stream.order, state)
    return advance(material, stream.method, task, stream.order, state, before, begun)


def _outcome(row: Row) -> str:
    right = unpacked(row["correct"][-1], row["rows"][-1])
    share = f", share {row['share']:g}" if "share" in row else ""
    return f"{100.0 * right.mean():.1f}{share} in {sum(row['seconds'].values()):.0f} core seconds"
