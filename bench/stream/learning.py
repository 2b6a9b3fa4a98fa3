"""One task more: the service's own probe, training, tuning and guard, then a test of every task so far."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import torch

from bench.harness.as_a_job import judged
from bench.harness.as_if_new import candidates, shipped_tasks
from bench.harness.rows import Row, packed
from bench.stream.material import Material, TaskRows
from bench.stream.methods import FROZEN, LORA, LORA_RECIPE, METHODS, Method
from bench.stream.state import State
from bench.transfer.material import SETTINGS as PROBE
from bench.transfer.methods import answers, baseline, fit
from onboard.bases.load import fresh_engine
from onboard.contract.guard import GuardVerdict
from onboard.errors import DamagedError, JobFailedError
from onboard.guard import Step
from onboard.model.batched import log_probabilities, mixed_log_probabilities
from onboard.model.engine import Engine
from onboard.model.hypernetwork import Hypernetwork
from onboard.model.protected import ProtectedTask, Protection
from onboard.probe.candidates import Candidate, random_candidate
from onboard.probe.choice import choose
from onboard.train.step_length import parts_of

BEGUN: Final = (
    "given",
    "chosen",
    "words",
    "alarm",
    "from",
    "start",
    "embedding",
)  # called with the progress of probe and training


def begin(material: Material, name: str, order: int, state: State) -> Row:
    """Probe and train the embedding of a task under the head, and test where it starts.

    Returns:
        `BEGUN`, and the seconds of probe and training.
    """
    rows, seconds = material.of(name, order), dict[str, float]()
    engine = material.engine.under(state.hypernetwork)
    bench = replace(rows.bench, engine=engine, known_rows=state.known_rows)
    with _timed(seconds, "probe"):
        probed = bench.probed(rows.seed)
        fingerprint = bench.fingerprint(bench.encode(probed), bench.targets(probed))
        offered = [*candidates(material.base, rows.seed, name, fingerprint), *_learned(material, order, state)]
        evaluator = bench.evaluator(probed)
        probed_start = choose(evaluator, offered, np.arange(evaluator.rows), PROBE)
    with _timed(seconds, "train"):
        lesson = material.lesson(name, order, engine, probed_start.z, probed_start.chosen.words)
        embedding = lesson.z
    return {
        "given": state.digest, "chosen": probed_start.chosen.embedding, "words": list(probed_start.chosen.words),
        "alarm": probed_start.alarm, "from": to_hex(probed_start.z), "embedding": to_hex(embedding), "seconds": seconds,
        "start": packed(right_of(engine, rows, probed_start.z, probed_start.chosen.words)),
    }  # fmt: skip


def advance(
    material: Material, method: str, name: str, order: int, state: State, before: Sequence[str], begun: Row
) -> tuple[Row, State]:
    """Learn one task more, and test all.

    Args:
        material: the rows.
        method: one of METHODS, other than LoRA.
        name: of the task.
        order: number of the stream.
        state: what the stream has come to.
        before: right answers of the earlier tasks, packed, under the head as it stands.
        begun: of `begin`, from this or from another method's stream.

    Raises:
        DamagedError: the frozen hypernetwork generates other weights for an earlier task than it did.
    """
    rows, seconds = material.of(name, order), dict(begun["seconds"])
    z, head, facts = from_hex(begun["embedding"]), state.hypernetwork, Row()
    if METHODS[method].tuning:
        z, head, facts = _tuned(material, METHODS[method], name, order, state, begun, seconds)
    after = state.advanced(name, z, tuple(begun["words"]), head, rows.hashes if facts.get("share") else rows.hashes[:0])
    unchanged = after.unchanged - 1
    if method == FROZEN and unchanged < len(state.learned):
        raise DamagedError("The frozen hypernetwork generates other weights than it did.", "start this stream anew")
    with _timed(seconds, "test"):
        moved = after.head != state.head
        first = 0 if moved else len(state.learned)
        correct = [*before[:first], *map(packed, _right_answers(material, order, after, first))]
    row = {
        **{key: begun[key] for key in BEGUN}, **facts, "z": to_hex(z), "head": after.head,
        "generated": after.learned[-1].generated, "unchanged": unchanged, "correct": correct,
        "rows": [len(material.of(task.task, order).test) for task in after.learned],
        "seconds": {part: round(value, 2) for part, value in seconds.items()},
    }  # fmt: skip
    if method == FROZEN:
        random = random_candidate(len(z), rows.seed)
        row["random"] = packed(right_of(material.engine, rows, random.z, rows.bench.words))
    return row, after


def alone(material: Material, name: str, order: int, before: Sequence[str], counts: Sequence[int]) -> Row:
    """Train a LoRA of the task's own; the earlier tasks keep theirs.

    Args:
        material, name, order: as of `advance`.
        before: right answers of the earlier tasks, packed.
        counts: test rows of the earlier tasks.
    """
    rows, seconds = material.of(name, order), dict[str, float]()
    torch.manual_seed(rows.seed)
    engine = fresh_engine(material.base)
    learner, trie = baseline(LORA, engine, LORA_RECIPE), engine.trie(rows.bench.words)
    with _timed(seconds, "train"):
        fit(learner, rows.labelled.ids, rows.labelled.targets, trie, LORA_RECIPE, rows.seed)
    with _timed(seconds, "test"):
        right = answers(learner, rows.test_ids, trie) == rows.truth
    parameters = sum(parameter.numel() for group, _ in learner.groups for parameter in group)
    return {
        "parameters": parameters, "correct": [*before, packed(right)], "rows": [*counts, len(right)],
        "seconds": {part: round(value, 2) for part, value in seconds.items()},
    }  # fmt: skip


def earlier_tasks(material: Material, order: int, state: State) -> list[ProtectedTask]:
    """The shipped sources, and the stream's own tasks with the texts that they were trained on."""
    trie = material.engine.trie
    learned = [
        ProtectedTask(
            task.task, task.z, trie(task.words), state.heads[task.origin],
            texts=material.of(task.task, order).labelled.ids,
        )
        for task in state.learned
    ]  # fmt: skip
    return [*shipped_tasks(material.base, material.engine), *learned]


def right_of(engine: Engine, rows: TaskRows, z: np.ndarray, words: Sequence[str]) -> np.ndarray:
    """Which of a task's test rows an embedding gets right under the engine's hypernetwork (r,)."""
    right: np.ndarray = log_probabilities(engine, rows.test_ids, z, engine.trie(words)).argmax(1) == rows.truth
    return right


def to_hex(z: np.ndarray) -> str:
    """An embedding (t,) as digits, exactly."""
    return z.astype("<f4").tobytes().hex()


def from_hex(digits: str) -> np.ndarray:
    """The numbers that `to_hex` wrote."""
    return np.frombuffer(bytes.fromhex(digits), dtype="<f4").astype(np.float32)


def _learned(material: Material, order: int, state: State) -> list[Candidate]:
    """The stream's earlier tasks, as starts of the next one."""
    return [
        Candidate(task.task, task.z, task.words, trained_rows=material.of(task.task, order).hashes)
        for task in state.learned
    ]


def _tuned(
    material: Material, method: Method, name: str, order: int, state: State, begun: Row, seconds: dict[str, float]
) -> tuple[np.ndarray, Hypernetwork, Row]:
    """Embedding and hypernetwork as they are published, and what a row tells of it."""
    assert method.tuning is not None
    z, (to_tune_with, to_judge_by) = from_hex(begun["embedding"]), material.canaries
    engine, earlier = material.engine.under(state.hypernetwork), earlier_tasks(material, order, state)
    lesson, facts = material.lesson(name, order, engine, from_hex(begun["from"]), begun["words"]), Row()
    to_hold = Protection(earlier if method.tuning.beta else [], to_tune_with)
    tuned_on = partial(lesson.tuned, method.tuning, to_hold)
    try:
        with _timed(seconds, "tune"):
            tuned = tuned_on(z, lesson.rows)
        facts |= {"share": 1.0, "losses": [tuned.losses[0], tuned.losses[-1]]}
        if method.guard is None:
            return tuned.z, tuned.hypernetwork, facts
        with _timed(seconds, "folds"):
            losses = lesson.losses(parts_of(method.guard.shares), tuned, tuned_on)
    except JobFailedError as error:
        return z, state.hypernetwork, facts | {"share": 0.0, "trouble": error.message}
    share = losses.wanted(at_all=True)
    proposed = tuned.shortened(state.hypernetwork, z, share)
    with _timed(seconds, "guard"):
        step = Step(state.hypernetwork, proposed.hypernetwork, z)
        verdict = judged(engine, step, Protection(earlier, to_judge_by), method.guard, lesson.seed)
    facts |= {"proposed": share, "by_share": losses.to_json(), "share": verdict.share, "guard": _summary(verdict)}
    taken = proposed.shortened(state.hypernetwork, z, verdict.share)
    return taken.z, taken.hypernetwork, facts


def _summary(judged: GuardVerdict) -> Row:
    by_verdict: dict[str, list[str]] = {}
    for verdict in judged.tasks:
        by_verdict.setdefault(verdict.verdict, []).append(verdict.task)
    return {"verdict": judged.verdict, "reason": judged.reason, "unchecked": judged.unchecked, "tasks": by_verdict}


def _right_answers(material: Material, order: int, state: State, first: int) -> list[np.ndarray]:
    """Right answers under the head, of each task from the `first` on, rows of all of them mixed."""
    learned = state.learned[first:]
    rows = [material.of(task.task, order) for task in learned]
    engine = material.engine.under(state.hypernetwork)
    of = np.repeat(np.arange(len(rows)), [len(task_rows.test) for task_rows in rows])
    with torch.inference_mode():
        generated = engine.hypernetwork(torch.from_numpy(np.stack([task.z for task in learned])))
    tries = [engine.trie(task.words) for task in learned]
    ids = [tokens for task_rows in rows for tokens in task_rows.test_ids]
    scores = mixed_log_probabilities(engine, ids, generated, tries, of)
    right = scores.argmax(1) == np.concatenate([task_rows.truth for task_rows in rows])
    return [right[of == place] for place in range(len(rows))]


@contextmanager
def _timed(seconds: dict[str, float], part: str) -> Iterator[None]:
    """Seconds of the processor, so that streams side by side do not count one another's."""
    started = time.process_time()
    yield
    seconds[part] = time.process_time() - started
