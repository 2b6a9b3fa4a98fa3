"""Plans are drawn from their seed; results of several runs are added up; what is wrong makes the program fail."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.chaos import __main__ as program
from bench.chaos.place import PLACES, PlaceName
from bench.chaos.plan import AIMS, FAULTS, plan
from bench.chaos.report import document, page, read_results
from bench.chaos.reruns import summary
from bench.chaos.run import Options
from bench.harness.report import write


@pytest.mark.parametrize("place", PLACES)
def test_a_plan_has_every_stage_and_every_fault_in_turn_and_is_the_same_for_its_seed(place: PlaceName) -> None:
    kills, faults = 2 * len(AIMS), 2 * len(FAULTS[place])
    steps = plan(7, place, kills, faults)
    assert steps == plan(7, place, kills, faults)
    assert steps != plan(8, place, kills, faults)
    assert [step.at for step in steps] == sorted(step.at for step in steps)
    assert set(Counter(step.aim for step in steps if step.what == "kill").values()) == {2}
    assert Counter(step.what for step in steps if step.what != "kill") == dict.fromkeys(FAULTS[place], 2)


def test_the_time_to_the_next_attempt_is_measured_against_the_lease() -> None:
    assert summary([9.9, 10.0, 10.1], 5.0) == {"n": 3, "p50": 10.0, "max": 10.1, "within_lease_and_5": 2}


def result(place: str = "sqlite", seed: int = 1, **changed: Any) -> dict[str, Any]:
    return {
        "place": place, "seed": seed, "command": f"python -m bench.chaos --place {place} --seed {seed}", "jobs": 10,
        "kills": 4, "kills_by_stage": {"train": 3, "idle": 1}, "kills_by_victim": {"both": 4}, "faults": {"zombie": 2},
        "lost": 0, "doubled": 0, "violations": [], "dead_and_retried": 1, "late_writers_refused": 2, "seconds": 9.5,
        "reading": {"readers": 9, "answers": {"200": 5, "503": 2}, "embeddings_verified": 7, "longest_seconds": 1.5},
        "rerun_seconds": {"both": summary([6.0], 5.0)}, **changed,
    }  # fmt: skip


def test_runs_are_added_up_in_one_document_and_one_page(tmp_path: Path) -> None:
    for number, place in enumerate(PLACES):
        folder = tmp_path / f"{place}-{number}"
        folder.mkdir()
        (folder / "result.json").write_text(json.dumps(result(place, number)))
    results = document(read_results(tmp_path, "result.json"), [])
    totals = results["totals"]
    assert (totals["jobs"], totals["kills"], totals["lost"], totals["doubled"]) == (20, 8, 0, 0)
    assert totals["kills_by_stage"] == {"train": 6, "idle": 2}
    assert totals["faults"] == {"zombie": 4}
    assert (totals["answers"], totals["embeddings_verified"]) == ({"200": 10, "503": 4}, 14)
    write(results, tmp_path / "out" / "chaos.json", page(results), tmp_path / "out" / "chaos.md")
    text = (tmp_path / "out" / "chaos.md").read_text()
    assert text == page(results)
    assert "20 short real jobs, 8 × kill -9, 4 other faults: **0 lost, 0 doubled**" in text
    assert "14 answers, 14 embeddings verified" in text
    assert "| SQLite + filesystem | 0 | 9 | 5 | 0 | 0 | 2 | 0 | 0 | 1.5 s |" in text
    assert json.loads((tmp_path / "out" / "chaos.json").read_text())["runs"][0]["place"] == "postgres"


def test_runs_that_were_kept_from_before_there_were_readers_still_make_a_page() -> None:
    old = result()
    del old["reading"]
    assert "readers" not in page(document([old], []))
    assert "| SQLite + filesystem | 1 | 9 | 5 " in page(document([old, result()], []))


def test_what_others_publish_is_counted_in_runs_that_have_it_all_and_the_mutant_has_a_table() -> None:
    newer = result(
        "postgres", 31, faults={"zombie": 2, "backends terminated": 3, "two reconcilers": 1}, restarts_in_a_row=4,
        reconcilers_killed=1, backups={"restored": 2, "answers_compared": 60},
    )  # fmt: skip
    mutant = {
        "place": "sqlite", "command": "python -m bench.chaos --mutant", "sleepers": {"with": 5, "without": 5},
        "late_writers_refused": {"with": 3, "without": 0}, "violations": {"with": {}, "without": {"doubled": 2}},
    }  # fmt: skip
    unlearned = {
        "place": "sqlite", "command": "python -m bench.chaos --unlearn 20", "kills": 20, "statements": 80,
        "kills_of_rebuilding_workers": 1, "faults": [],
    }  # fmt: skip
    text = page(document([result(), newer], [], [mutant], [unlearned]))
    lines = [line.split(" | ") for line in text.splitlines()]
    rows = {cells[0].removeprefix("| "): cells[3:] for cells in lines if len(cells) == 5}
    assert rows["backends terminated"] == ["–", "3 |"]
    assert rows["PostgreSQL restarted every 5 to 20 s"] == ["–", "4 |"]
    assert rows["the leader fails"] == ["–", "2 |"]
    assert rows["backup while jobs run"] == ["–", "2 |"]
    assert rows["`tasks delete --unlearn` killed"] == ["20", "0 |"]
    assert "1 runs with seeds from 31 on" in text
    assert "| SQLite + filesystem | 5 | without | 0 | 2 | doubled 2 |" in text


WRONG = [
    {"lost": 1},
    {"doubled": 1},
    {"violations": [{"kind": "orphan", "what": "sha256:0 is stored and has no row"}]},
]


@pytest.mark.parametrize("wrong", [{}, *WRONG])
def test_the_program_fails_when_anything_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], wrong: dict[str, Any]
) -> None:
    monkeypatch.setattr(program, "base_for", lambda folder: folder)

    def run(name: str, options: Options, folder: Path, _base: Path) -> dict[str, Any]:
        folder.mkdir(parents=True, exist_ok=True)
        return result(name, options.seed, **wrong)

    monkeypatch.setattr(program, "run", run)
    code = program.main(["--place", "sqlite", "--seed", "1", "2", "--work", str(tmp_path)])
    assert code == (1 if wrong else 0)
    assert capsys.readouterr().out.splitlines()[-1].startswith("chaos: 20 jobs, 8 kills")


def test_with_resume_only_runs_without_a_result_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr(program, "base_for", lambda folder: folder)

    def run(name: str, options: Options, folder: Path, _base: Path) -> dict[str, Any]:
        folder.mkdir(parents=True, exist_ok=True)
        made.append(options.seed)
        return result(name, options.seed)

    monkeypatch.setattr(program, "run", run)
    for seeds in (["1"], ["1", "2"]):
        assert program.main(["--place", "sqlite", "--seed", *seeds, "--resume", "--work", str(tmp_path)]) == 0
    assert made == [1, 2]
