"""`onboard tasks delete` as people see it: what went, what descends from it, and what becomes of that."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import pytest
from support.published import add_version, embedding_of

from cli.delete import _told
from cli.main import main
from onboard.bases import Base
from onboard.services import Services

LABELS = ("sad", "glad"), ("bad", "good")
Said = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def said(
    tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Said:
    """Exit code, output and errors of a command in the home where `copy` started from `mood`."""
    add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(1))
    add_version(tiny_services, tiny_base, "copy", *LABELS, z=embedding_of(2), parent="mood@v1")
    for name in ("home", "base", "device"):
        monkeypatch.setenv(f"ONBOARD_{name.upper()}", str(getattr(tiny_services.settings, name)))
    monkeypatch.setenv("ONBOARD_START_WORKER", "false")

    def run(words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["onboard", *words.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        found = capsys.readouterr()
        return int(ended.value.code or 0), found.out, found.err

    return run


def test_it_says_what_went_and_what_descends_and_how_to_rebuild_that(said: Said) -> None:
    code, dry, _ = said("tasks delete mood --dry-run")
    assert code == 0
    assert dry.startswith("task mood would be deleted\n  gone: 1 versions, 0 jobs, 0 datasets, 1 files (")
    assert said("tasks show mood")[0] == 0
    code, out, _ = said("tasks delete mood")
    assert code == 0
    assert out.startswith("task mood is deleted\n")
    assert "  copy@v1 (latest): started from mood@v1\n" in out
    assert "onboard tasks delete mood --unlearn" in out
    code, out, _ = said("tasks delete mood --unlearn")
    assert (code, "copy@v1: cannot be rebuilt and stays, no job" in out) == (0, True)
    assert said("tasks show mood")[0] == 3


def test_what_it_cannot_do_it_says_with_a_remedy(said: Said) -> None:
    code, _, error = said("tasks delete sst2 --unlearn")
    assert code == 4
    assert "Delete it without --unlearn" in error
    assert said("tasks delete nothing")[0] == 3
    code, out, _ = said("tasks delete .. --json")
    assert (code, json.loads(out)["error"]["code"]) == (2, "input")


def test_every_kind_of_unlearning_has_its_line() -> None:
    document = {
        "task": "mood", "deleted": True, "dry_run": False, "shared_with": ["same"],
        "removed": {"versions": 1, "jobs": 1, "datasets": 0, "artifacts": 3, "bytes": 2048},
        "descendants": {
            "versions": [{"version": "a@v1", "why": "started from mood@v1", "aliases": []}],
            "hypernetworks": [{"base_digest": "sha256:b", "version": 3, "why": "tuned on it"}],
        },
        "unlearning": {
            "reverted": [{"base_digest": "sha256:b", "from": 3, "to": 1}],
            "rebuilding": [{"versions": ["b@v1"], "job": "0123456789ab"}, {"versions": ["c@v1"], "job": None}],
            "restored": [{"version": "d@v2", "to": "d@v1"}],
            "removed": ["a@v1"],
            "cannot": [{"version": "e@v1", "why": "its dataset is gone"}],
        },
    }  # fmt: skip
    assert list(_told(document)) == [
        "task mood is deleted",
        "  gone: 1 versions, 1 jobs, 0 datasets, 3 files (2 kB)",
        "  a dataset stays, for it is also that of: same",
        "what descends from it:",
        "  a@v1: started from mood@v1",
        "  hypernetwork version 3: tuned on it",
        "what becomes of it:",
        "  head: back to hypernetwork version 1, from 3",
        "  b@v1: rebuilt by job 0123456789ab",
        "  c@v1: rebuilt by a job",
        "  d@v2: its aliases name d@v1",
        "  a@v1: removed, no alias names it",
        "  e@v1: cannot be rebuilt and stays, its dataset is gone",
    ]
