"""Kill, cut, fill up and set wrong what the jobs run on; then check that each ended once and nothing was lost.

    python -m bench.chaos --seed 1 --place both                      one run on each size, in under ten minutes
    python -m bench.chaos --mutant                                   is it seen when the fence is gone?
    python -m bench.chaos --unlearn 20                               `tasks delete --unlearn`, killed so often
    python -m bench.chaos --real-lease 5                             seconds from a kill to the next attempt
    python -m bench.chaos --no-runs --output bench/results/chaos.json --table bench/results/chaos.md

Jobs are real: the pipeline with few steps, on a base that is made on the spot. Meanwhile 100 readers (--readers) ask a
real server for the latest embeddings, and an auditor verifies every answer. Journal, logs and result of each run
stay in `build/bench/chaos`; --resume makes only the runs that have no result yet, --output and --table gather all
results that are there. Needs PostgreSQL and Redis (`make packages`). Exits with 0 when nothing was lost or doubled and
the checker found nothing else.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.chaos.checker import DOUBLED, LOST
from bench.chaos.place import PLACES, PlaceName, absent
from bench.chaos.report import document, page, read_results
from bench.chaos.run import Options, run
from bench.harness.command import PAGES, RESULTS, WORK, command_line
from bench.harness.programs import ended_in_order
from bench.harness.report import write

RUNS = WORK / "chaos"
_RESULT, _LEASE, _MUTANT, _UNLEARNED = "result.json", "lease.json", "mutant.json", "unlearned.json"
_AROUND_SECONDS = 25.0  # of a run: starting servers, stopping workers, checking


def main(arguments: list[str] | None = None) -> int:
    """Make the runs, print the verdict."""
    asked = _parser().parse_args(arguments)
    places: tuple[PlaceName, ...] = PLACES if asked.place == "both" else (asked.place,)
    for name in places:
        if lacking := absent(name):
            print(f"{name} cannot be run: {lacking} is not installed; run: make packages")
            return 2
    with tempfile.TemporaryDirectory() as folder:
        base = base_for(Path(folder)) if not asked.no_runs else Path(folder)
        runs, right = _made(asked, places, base)
    if asked.output or asked.table:
        _gather(asked)
    return _verdict(runs, asked.work) if runs else int(not right)


def _made(asked: argparse.Namespace, places: tuple[PlaceName, ...], base: Path) -> tuple[list[dict[str, Any]], bool]:
    """The runs, if they are requested; and whether all is right with what else is."""
    if asked.no_runs:
        return [], True
    if asked.mutant:
        return [], _mutants(asked, places, base)
    if asked.unlearn:
        return [], _unlearned(asked, places, base)
    if asked.real_lease:
        _real_leases(asked, places, base)
        return [], True
    return _runs(asked, places, base), True


def _parser() -> argparse.ArgumentParser:
    known = Options()
    parser = command_line(__doc__)
    parser.add_argument("--seed", type=int, nargs="+", default=[1], help="a run on each place for each seed")
    parser.add_argument("--place", choices=[*PLACES, "both"], default="both")
    parser.add_argument("--jobs", type=int, default=known.jobs, help="of each run")
    parser.add_argument("--kills", type=int, default=known.kills, help="kill -9 in each run")
    parser.add_argument("--faults", type=int, default=known.faults, help="other faults in each run")
    parser.add_argument("--workers", type=int, default=known.workers)
    parser.add_argument("--readers", type=int, default=known.readers, help="of the latest embeddings; 0 for none")
    parser.add_argument("--cycles", type=int, default=known.cycles, help="kills of all workers where that is the fault")
    parser.add_argument("--seconds", type=float, default=580.0, help="for all runs together")
    parser.add_argument("--real-lease", type=int, metavar="TIMES", default=0, help="measure with the lease of 60 s")
    parser.add_argument("--mutant", action="store_true", help="runs with and without the fence; exits with 0 if seen")
    parser.add_argument("--unlearn", type=int, metavar="TIMES", default=0, help="kill an unlearning so often")
    parser.add_argument("--resume", action="store_true", help="take the results of runs that were made already")
    parser.add_argument("--no-runs", action="store_true", help="only gather the results that are there")
    parser.add_argument("--work", type=Path, default=RUNS, help="where journals, logs and results of the runs stay")
    return parser


def base_for(folder: Path) -> Path:
    """The base that all runs share, made in this folder."""
    from bench.harness.tiny_base import make_tiny_base

    return make_tiny_base(folder).folder


def _runs(asked: argparse.Namespace, places: tuple[PlaceName, ...], base: Path) -> list[dict[str, Any]]:
    over = time.monotonic() + asked.seconds
    named = ("jobs", "kills", "faults", "workers", "readers", "cycles")
    options = Options(**{name: getattr(asked, name) for name in named})
    asked_for = [(name, seed) for seed in asked.seed for name in places]
    done = []
    for number, (name, seed) in enumerate(asked_for):
        left = (over - time.monotonic()) / (len(asked_for) - number) - _AROUND_SECONDS
        result = asked.work / f"{name}-{seed}" / _RESULT
        if asked.resume and result.exists():
            done.append(json.loads(result.read_text(encoding="utf-8")))
            continue
        outcome = run(name, replace(options, seed=seed, seconds=left), result.parent, base)
        write(outcome, result)
        done.append(outcome)
        print(f"{name}, seed {seed}: {_told([outcome])} in {outcome['seconds']:.0f} s", flush=True)
    return done


def _real_leases(asked: argparse.Namespace, places: tuple[PlaceName, ...], base: Path) -> None:
    from bench.chaos.real_lease import measure

    for name in places:
        folder = asked.work / f"lease-{name}"
        lease = measure(name, asked.real_lease, folder, base)
        write(lease, folder / _LEASE)
        print(json.dumps(lease), flush=True)


def _mutants(asked: argparse.Namespace, places: tuple[PlaceName, ...], base: Path) -> bool:
    """Whether the run without the fence was found wrong at every place, and the one with it nowhere."""
    from bench.chaos.mutant import SEEN, measure

    seen = True
    for name in places:
        folder = asked.work / f"mutant-{name}"
        mutant = measure(name, asked.seed[0], folder, base)
        write(mutant, folder / _MUTANT)
        seen = seen and mutant[SEEN]
        violations = mutant["violations"]
        print(f"{name}: with the fence {violations['with']}, without it {violations['without']}", flush=True)
    print("the mutant was seen" if seen else f"the mutant was NOT seen; look into {asked.work}")
    return seen


def _unlearned(asked: argparse.Namespace, places: tuple[PlaceName, ...], base: Path) -> bool:
    """Whether nothing was half anywhere."""
    from bench.chaos.unlearning import measure

    whole = True
    for name in places:
        folder = asked.work / f"unlearn-{name}"
        unlearned = measure(name, asked.unlearn, asked.seed[0], folder, base)
        write(unlearned, folder / _UNLEARNED)
        whole = whole and not unlearned["faults"]
        print(json.dumps(unlearned), flush=True)
    return whole


def _gather(asked: argparse.Namespace) -> None:
    gathered = document(*(read_results(asked.work, name) for name in (_RESULT, _LEASE, _MUTANT, _UNLEARNED)))
    write(gathered, asked.output or RESULTS / "chaos.json", page(gathered), asked.table or PAGES / "chaos.md")


def _verdict(runs: list[dict[str, Any]], work: Path) -> int:
    wrong = [violation for outcome in runs for violation in outcome["violations"]]
    for violation in wrong:
        print(f"{violation['kind']}: {violation['what']}")
    right = not wrong and not any(outcome["lost"] or outcome["doubled"] for outcome in runs)
    print(f"chaos: {_told(runs)}" + ("" if right else f"; look into {work}"))
    return 0 if right else 1


def _told(runs: list[dict[str, Any]]) -> str:
    jobs, kills, lost, doubled = (sum(outcome[key] for outcome in runs) for key in ("jobs", "kills", "lost", "doubled"))
    faults = sum(sum(outcome["faults"].values()) for outcome in runs)
    others = sum(violation["kind"] not in (LOST, DOUBLED) for outcome in runs for violation in outcome["violations"])
    done = f"{jobs} jobs, {kills} kills, {faults} other faults"
    return f"{done}: {lost} lost, {doubled} doubled, {others} other violations"


if __name__ == "__main__":
    with ended_in_order():
        sys.exit(main())
