"""The bench of changes: the verdicts on its runs, and what its page says."""

from __future__ import annotations

from typing import Any

import pytest

from bench.changing import ADD, REFIT, RENAME, REQUEST, _verdicts, page


def runs(**seconds: float) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for what in (ADD, RENAME, REQUEST, REFIT):
        for change in range(20):
            made.append({"what": what, "command": seconds.get(what, 0.5), "load": 0.5 + change / 10})
            if what == ADD:
                made[-1]["queued"] = seconds.get("queued", 1.5)
    return made


@pytest.mark.parametrize(("what", "place"), [("queued", 0), (RENAME, 1), (REQUEST, 2), (REFIT, 3)])
def test_each_change_has_its_own_wish(what: str, place: int) -> None:
    assert [verdict[2] for verdict in _verdicts(runs())] == [True] * 4
    assert [verdict[2] for verdict in _verdicts(runs(**{what: 2.1}))] == [at != place for at in range(4)]


def test_a_refit_is_judged_by_its_slow_ones() -> None:
    slow = runs()
    for run in [run for run in slow if run["what"] == REFIT][:2]:
        run["command"] = 3.0
    assert _verdicts(slow)[3][2] is False


def test_the_page_shows_the_load_of_the_machine() -> None:
    document = {
        "command": "python -m bench.changing", "machine": {"cores": 2, "processor": "a CPU"}, "runs": runs(),
        "verdicts": _verdicts(runs()),
    }  # fmt: skip
    lines = page(document).splitlines()
    assert "| 10 rows added | 0.50 s (0.50) | 1.50 s (1.50) | 20 | 0.5 to 2.4 |" in lines
    assert "| an annotation learned | 0.50 s (0.50) | – | 20 | 0.5 to 2.4 |" in lines
