"""`onboard tasks delete` as people see it: what went, what descends from it, and what becomes of that."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from support.command_line import CommandLine, Said
from support.published import add_version, embedding_of

import cli.delete
from onboard.bases import Base
from onboard.registry.services import Services

LABELS = ("sad", "glad"), ("bad", "good")
Run = Callable[[str], Said]


@pytest.fixture
def said(tiny_services: Services, tiny_base: Base, monkeypatch: pytest.MonkeyPatch, command_line: CommandLine) -> Run:
    """A command in the home where `copy` started from `mood`."""
    add_version(tiny_services, tiny_base, "mood", *LABELS, z=embedding_of(1))
    add_version(tiny_services, tiny_base, "copy", *LABELS, z=embedding_of(2), parent="mood@v1")
    command_line.at_home(tiny_services.settings)
    monkeypatch.setenv("ONBOARD_START_WORKER", "false")
    return lambda words: command_line(*words.split())


def test_it_says_what_went_and_what_descends_and_how_to_rebuild_that(said: Run) -> None:
    code, dry, _ = said("tasks delete mood --dry-run")
    assert code == 0
    assert dry.startswith("task mood would be deleted\n  deleted: 1 version, 0 jobs, 0 datasets, 1 file (")
    assert said("tasks show mood")[0] == 0
    code, out, _ = said("tasks delete mood")
    assert code == 0
    assert out.startswith("task mood is deleted\n")
    assert "  copy@v1 (latest): started from mood@v1\n" in out
    assert "onboard tasks delete mood --unlearn" in out
    code, out, _ = said("tasks delete mood --unlearn")
    assert (code, "copy@v1: cannot be rebuilt and stays, no job" in out) == (0, True)
    assert said("tasks show mood")[0] == 3


def test_it_recommends_no_command_that_would_be_refused(said: Run, tiny_services: Services, tiny_base: Base) -> None:
    add_version(tiny_services, tiny_base, "tuned", *LABELS, z=embedding_of(3), parent="sst2@v1")
    for words in ("tasks delete sst2 --dry-run", "tasks delete sst2"):
        code, out, _ = said(words)
        assert (code, "tuned@v1 (latest)" in out, "--unlearn" in out) == (0, True, False)
    assert said("tasks delete sst2 --unlearn")[0] == 4


def test_what_it_cannot_do_it_says_with_a_remedy(said: Run) -> None:
    code, _, error = said("tasks delete sst2 --unlearn")
    assert code == 4
    assert "Delete it without --unlearn" in error
    assert said("tasks delete nothing")[0] == 3
    code, out, _ = said("tasks delete .. --json")
    assert (code, json.loads(out)["error"]["code"]) == (2, "input")


def test_every_kind_of_unlearning_has_its_line(monkeypatch: pytest.MonkeyPatch, command_line: CommandLine) -> None:
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
            "cannot": [{"version": "e@v1", "why": "its dataset is missing"}],
        },
    }  # fmt: skip
    service = SimpleNamespace(delete_task=lambda *_, **options: document)
    monkeypatch.setattr(cli.delete, "connected", lambda: nullcontext(service))
    assert command_line("tasks", "delete", "mood").out.splitlines() == [
        "task mood is deleted",
        "  deleted: 1 version, 1 job, 0 datasets, 3 files (2 kB)",
        "  a dataset stays, because other tasks use it: same",
        "descendants:",
        "  a@v1: started from mood@v1",
        "  hypernetwork version 3: tuned on it",
        "results:",
        "  head: back to hypernetwork version 1, from 3",
        "  b@v1: rebuilt by job 0123456789ab",
        "  c@v1: rebuilt by a job",
        "  d@v2: its aliases name d@v1",
        "  a@v1: removed, no alias names it",
        "  e@v1: cannot be rebuilt and stays, its dataset is missing",
    ]
