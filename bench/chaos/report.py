"""The stored results of the runs: one document with all of them, and a page for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.chaos.scenarios import in_a_job, left_out, scenarios
from bench.harness.page import NONE, listed, table
from bench.harness.report import describe

RunResult = dict[str, Any]
_STATUSES = ("200", "304", "404", "503")  # of answers, that are looked for
_NAMES = {"sqlite": "SQLite + filesystem", "postgres": "PostgreSQL + Redis"}
_VICTIMS = {
    "child": "the process of the job",
    "parent": "the worker's parent; the kernel ends its child with it",
    "both": "both at once",
}


def read_results(work: Path, name: str) -> list[RunResult]:
    """The results of that name in the folders of `work`, by folder."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(work.glob(f"*/{name}"))]


def document(
    runs: Sequence[RunResult],
    leases: Sequence[RunResult],
    mutants: Sequence[RunResult] = (),
    unlearned: Sequence[RunResult] = (),
) -> dict[str, Any]:
    """Everything that was measured, with its totals."""
    return {
        "machine": describe(),
        "totals": {
            **{key: sum(run[key] for run in runs) for key in ("jobs", "kills", "lost", "doubled", "dead_and_retried")},
            "violations": sum(len(run["violations"]) for run in runs),
            "kills_by_stage": _added(run["kills_by_stage"] for run in runs),
            "kills_by_victim": _added(run["kills_by_victim"] for run in runs),
            "faults": _added(run["faults"] for run in runs),
            "answers": _added(_answers(run) for run in runs),
            "embeddings_verified": sum(_read(run).get("embeddings_verified", 0) for run in runs),
        },
        "runs": list(runs),
        "real_leases": list(leases),
        "mutants": list(mutants),
        "unlearned": list(unlearned),
    }


def page(numbers: dict[str, Any]) -> str:
    """The same for people, in Markdown."""
    totals, machine = numbers["totals"], numbers["machine"]
    return "\n".join(
        [
            "# Jobs while everything breaks",
            "",
            f"{totals['jobs']} short real jobs, {totals['kills']} × kill -9, {sum(totals['faults'].values())} other "
            f"faults: **{totals['lost']} lost, {totals['doubled']} doubled**, {totals['violations']} violations found "
            "by the checker.",
            "It reads every row and every artifact: each accepted job is there and ended once, each attempt began "
            "once, versions are 1..n, each digest and size is right, aliases are where their history says, nothing is "
            "stored without a row, no lease is held.",
            f"{totals['dead_and_retried']} times a job had used up its attempts and was retried, as an operator would.",
            "",
            f"On {machine['cores']} cores of {machine['processor']}. [Every run](chaos.json):",
            "",
            "```",
            *[run["command"] for run in numbers["runs"]],
            "```",
            "",
            *_runs(numbers["runs"]),
            "",
            *_scenarios(numbers),
            *_mutants(numbers["mutants"]),
            *_unlearned(numbers["unlearned"]),
            *_kills(totals),
            "",
            *_faults(totals["faults"]),
            "",
            *_readers(numbers["runs"], totals),
            *_seconds(numbers["runs"], numbers["real_leases"]),
            "",
        ]
    )


def _runs(runs: Sequence[RunResult]) -> list[str]:
    head = ("place", "seed", "jobs", "kills", "other faults", "lost", "doubled", "late writers refused", "seconds")
    return table(head, (
        (_NAMES[run["place"]], run["seed"], run["jobs"], run["kills"], sum(run["faults"].values()), run["lost"],
         run["doubled"], run["late_writers_refused"], f"{run['seconds']:.0f}")
        for run in runs
    ))  # fmt: skip


def _scenarios(numbers: dict[str, Any]) -> list[str]:
    """The facts of newer runs; older ones are from before all of it was there, and of an earlier version."""
    runs = [run for run in numbers["runs"] if "backups" in run]
    if not runs:
        return []
    sums = {key: sum(run[key] for run in runs) for key in ("jobs", "kills", "lost", "doubled")}
    answers = sum(run["backups"]["answers_compared"] for run in runs)
    return [
        "## Published results of others", "",
        f"Times in the {len(runs)} runs with seeds from {min(run['seed'] for run in runs)} on, whose plans know every "
        f"scenario: {sums['jobs']} jobs, {sums['kills']} × kill -9 ({sum(map(in_a_job, runs))} in the "
        f"midst of a job, the others while a worker was starting or had none), {sums['lost']} lost, "
        f"{sums['doubled']} doubled. {answers} answers of restored backups are those of the service they were made of.",
        "", *scenarios(runs, numbers["unlearned"], _NAMES), "", "".join(left_out()), "",
    ]  # fmt: skip


def _mutants(mutants: Sequence[RunResult]) -> list[str]:
    """Whether a run sees it when the fence is gone."""
    if not mutants:
        return []
    rows = (
        (_NAMES[mutant["place"]], mutant["sleepers"][fence], fence, mutant["late_writers_refused"][fence],
         sum(violations.values()), listed(violations) or NONE)
        for mutant in mutants for fence, violations in mutant["violations"].items()
    )  # fmt: skip
    return [
        "## The mutant", "",
        "The same workers with the fence taken out of their registry: nobody asks at a heartbeat or a commit whether "
        "the attempt still owns its job. They are put to sleep in the midst of a job until another one has done it. "
        "With the fence nothing may be wrong; without it the run has to fail, or it would prove nothing.", "",
        "```", *[mutant["command"] for mutant in mutants], "```", "",
        *table("place | put to sleep | fence | late writers refused | violations | of these", rows), "",
    ]  # fmt: skip


def _unlearned(unlearned: Sequence[RunResult]) -> list[str]:
    if not unlearned:
        return []
    rows = (
        (_NAMES[row["place"]], row["kills"], row["statements"], row["kills_of_rebuilding_workers"], len(row["faults"]))
        for row in unlearned
    )
    return [
        "## `tasks delete --unlearn`, killed", "",
        "After each kill nothing may have changed; when it is let through, the task has to be gone and what descends "
        "from it rebuilt, also by workers that are killed.", "",
        "```", *[row["command"] for row in unlearned], "```", "",
        *table("place | kills | statements it has | rebuilding workers killed | faults", rows), "",
    ]  # fmt: skip


def _kills(totals: dict[str, Any]) -> list[str]:
    by_victim = [(_VICTIMS[victim], number) for victim, number in totals["kills_by_victim"].items()]
    return [
        "## Injected faults", "",
        "`claimed` is the moment between a claim and the first stage; an `idle` worker had no job.", "",
        *table("killed in stage | times", totals["kills_by_stage"].items()), "",
        *table("killed | times", by_victim),
    ]  # fmt: skip


def _faults(faults: dict[str, int]) -> list[str]:
    above = "Besides, one worker in two has a clock that is an hour wrong."
    return [above, "", *table("fault | times", faults.items())]


def _readers(runs: Sequence[RunResult], totals: dict[str, Any]) -> list[str]:
    with_readers = [run for run in runs if _answers(run)]
    if not with_readers:
        return []
    lines = [
        "Meanwhile readers ask a real `onboard serve` for the latest embeddings, as JSON, as files and of all tasks: "
        f"{sum(totals['answers'].values())} answers, {totals['embeddings_verified']} embeddings verified by their "
        "digests. A version always has one content and is the registry's; whoever has seen one never gets an older "
        "one. 404: there is no version yet; 503: the database is away. Anything else, or no answer, is a violation.",
        "",
        *table(("place", "seed", "readers", *_STATUSES, "other", "wrong", "longest"), map(_reading, with_readers)),
    ]
    return [*lines, ""]


def _reading(run: RunResult) -> tuple[object, ...]:
    answers, read = _answers(run), _read(run)
    counts = (answers.get(status, 0) for status in _STATUSES)
    other = sum(number for status, number in answers.items() if status not in _STATUSES)
    wrong = sum(violation["kind"] == "answer" for violation in run["violations"])
    longest = f"{read['longest_seconds']} s"
    return _NAMES[run["place"]], run["seed"], read["readers"], *counts, other, wrong, longest


def _read(run: RunResult) -> dict[str, Any]:
    numbers: dict[str, Any] = run.get("reading", {})  # runs that were kept from before there were readers have none
    return numbers


def _answers(run: RunResult) -> dict[str, int]:
    return dict(_read(run).get("answers", {}))


def _seconds(runs: Sequence[RunResult], leases: Sequence[RunResult]) -> list[str]:
    lines = [
        "Seconds from a kill to the job's next attempt, with a lease of 5 s, while everything else breaks too: with so "
        "many kills there is often no other worker that is up, and older jobs come first.", "",
        *table("place | seed | killed | times | median | longest | within lease + 5 s",
            ((_NAMES[run["place"]], run["seed"], _VICTIMS[victim], waits["n"], waits["p50"], waits["max"],
              waits["within_lease_and_5"]) for run in runs for victim, waits in run["rerun_seconds"].items()),
        ),
    ]  # fmt: skip
    if leases:
        lines += ["", "With the lease of 60 s and nothing else in the way, a second worker being idle:", ""]
        lines += table("place | kills of a whole worker | median | longest | wanted",
            (
                (_NAMES[lease["place"]], lease["n"], *(f"{lease[what]} s" for what in ("p50", "max")),
                 f"{lease['wanted_seconds']:.0f} s")
                for lease in leases
            ),
        )  # fmt: skip
    return lines


def _added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for of_run in counts:
        total.update(of_run)
    return dict(total.most_common())
