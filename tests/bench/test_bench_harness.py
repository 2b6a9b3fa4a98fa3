"""What all benches are made of: rows to go on from, and the lines of tables."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.harness.command import command_of, deadline
from bench.harness.page import table
from bench.harness.report import report
from bench.harness.rows import Rows, packed, unpacked


def test_rows_of_other_settings_are_not_seen_and_settings_survive_the_file(tmp_path: Path) -> None:
    work = tmp_path / "work" / "rows.jsonl"
    own, others = Rows(work, {"sizes": (1, 2)}), Rows(work, {"sizes": (1, 3)})
    assert list(own) == []
    first = own.add({"seed": 0})
    with work.open("a") as file:
        file.write('{"seed": 1, "set')  # killed while writing
    others.add({"seed": 2})
    second = own.add({"seed": 3})
    assert list(own) == list(Rows(work, {"sizes": [1, 2]})) == [first, second]
    assert [row["seed"] for row in others] == [2]


def test_a_table_has_a_rule_as_wide_as_its_head() -> None:
    lines = ["| place | jobs |", "|---|---|", "| SQLite | 3 |"]
    assert table("place | jobs", [("SQLite", 3)]) == table(["place", "jobs"], [["SQLite", 3]]) == lines


@pytest.mark.parametrize(("verdict", "code"), [({}, 0), ({"kept": True}, 0), ({"kept": False}, 1)])
def test_a_report_ends_by_what_was_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verdict: dict[str, Any], code: int
) -> None:
    asked = Namespace(output=tmp_path / "numbers.json", table=None)
    assert report({"jobs": 3, **verdict}, asked, lambda document: f"{document['jobs']} jobs") == code
    assert capsys.readouterr().out == "3 jobs\n"
    assert asked.output.is_file()


def test_packed_answers_are_read_as_they_were() -> None:
    right = np.arange(11) % 3 == 0
    assert unpacked(packed(right), 11).tolist() == right.tolist()


def test_time_is_up_after_so_many_hours_and_never_without() -> None:
    now = [0.0]
    one_hour, for_ever = deadline(1.0, lambda: now[0]), deadline(None, lambda: now[0])
    assert not one_hour()
    now[0] = 3600.0
    assert one_hour()
    assert not for_ever()


def test_the_command_that_is_told_can_be_pasted() -> None:
    words = ["--curricula", "8 sources", "--output", "elsewhere.json", "--report"]
    assert command_of("curriculum", words) == "python -m bench.curriculum --curricula '8 sources'"
