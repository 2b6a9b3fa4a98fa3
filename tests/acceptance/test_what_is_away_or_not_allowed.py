"""A database, a broker or a home that cannot be used: told within seconds, without passwords."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from support.program import Finished, Place, remedy_of
from support.real_jobs import opinions

NOBODY = 65534
NO_BROKER = "redis://:hunter2@127.0.0.1:9/0"


def test_a_database_that_is_away_is_told_within_seconds_and_without_its_password(elsewhere: Place) -> None:
    away = {"ONBOARD_DATABASE_URL": "postgresql://user:hunter2@127.0.0.1:9/onboard", "ONBOARD_BROKER_URL": NO_BROKER}
    rows = elsewhere.write("mood.jsonl", opinions(8))
    started = time.monotonic()
    done = elsewhere.run("submit", "--dataset", rows, **away)
    assert time.monotonic() - started < 30
    assert done.returncode == 5
    assert "127.0.0.1:9" in done.stderr
    assert "hunter2" not in done.stderr + done.stdout
    assert "ONBOARD_DATABASE_URL" in remedy_of(done)
    document = elsewhere.json("doctor", code=5, **away)
    checks = {check["what"]: check for check in document["checks"]}
    assert not document["ok"]
    assert not checks["database"]["ok"]
    assert "ONBOARD_DATABASE_URL" in checks["database"]["remedy"]
    assert checks["base"]["ok"]
    assert "hunter2" not in json.dumps(document)


@pytest.mark.services
def test_a_broker_that_is_away_is_told_and_the_job_is_kept(elsewhere: Place, postgres_url: str) -> None:
    away = {"ONBOARD_DATABASE_URL": postgres_url, "ONBOARD_BROKER_URL": NO_BROKER}
    document = elsewhere.json("doctor", code=5, **away)
    checks = {check["what"]: check for check in document["checks"]}
    assert not checks["broker"]["ok"]
    assert checks["database"]["ok"]
    assert "ONBOARD_BROKER_URL" in checks["broker"]["remedy"]
    assert "hunter2" not in json.dumps(document)
    done = elsewhere.run("submit", "--dataset", elsewhere.write("mood.jsonl", opinions(8)), "--json", **away)
    assert done.returncode == 0, done.stderr  # the row in the database is the job, the broker's message only a doorbell
    assert "127.0.0.1:9" in done.stderr
    assert json.loads(done.stdout)["state"] == "queued"


_AS_NOBODY = """
import os, sys
from cli.main import main

def onboard(*words):
    sys.argv = ["onboard", *words]
    try:
        main()
    except SystemExit as ended:
        return ended.code

home = os.environ["ONBOARD_HOME"]
os.environ["ONBOARD_HOME"] = sys.argv[1]  # a writable one: everything is imported before the user changes
words = sys.argv[2:]
onboard("submit", "--dataset", "missing.jsonl"), onboard("tasks", "list")
os.environ["ONBOARD_HOME"] = home
os.setgroups([]), os.setgid({nobody}), os.setuid({nobody})
print("-" * 8, file=sys.stderr)
sys.exit(onboard(*words))
"""


@pytest.mark.parametrize("words", [["submit", "--dataset", "mood.jsonl"], ["tasks", "list"], ["jobs", "list"]])
def test_a_read_only_home_is_not_allowed(open_base: Path, words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        place = Place(Path(folder), open_base)
        place.write("mood.jsonl", opinions(8))
        place.home.mkdir(mode=0o555)
        done = as_nobody(place, words) if os.geteuid() == 0 else place.run(*words)
        assert done.returncode == 6, done.stderr
        assert str(place.home) in done.stderr
        assert "ONBOARD_HOME" in remedy_of(done)
        assert list(place.home.iterdir()) == []


def as_nobody(place: Place, words: list[str]) -> Finished:
    """To root nothing is read-only. The interpreter may lie where nobody else can read: it is loaded before."""
    program = _AS_NOBODY.format(nobody=NOBODY)
    done = subprocess.run(
        [sys.executable, "-c", program, place.folder / "writable", *words],
        capture_output=True, text=True, cwd=place.folder, env=place.environment, check=False,
    )  # fmt: skip
    return subprocess.CompletedProcess(words, done.returncode, done.stdout, done.stderr.partition("-" * 8)[2])
