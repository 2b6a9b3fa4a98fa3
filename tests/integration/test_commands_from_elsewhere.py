"""Every command against a real server process: the same documents and exit codes as beside the database.

A test walks all commands of the program: each one is tried here from elsewhere, or is one that works on the machine of
the service only and says so.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from support.command_line import CommandLine
from support.commands import leaves
from support.real_jobs import DOCUMENT
from support.real_services import wait_until
from support.served_past import SIDES, Remote

from onboard.bases import Base
from onboard.domain.job import Job, JobState
from onboard.registry.claims import ClaimRepository

Said = Callable[..., tuple[int, str]]


@pytest.fixture
def said(remote: Remote, monkeypatch: pytest.MonkeyPatch, command_line: CommandLine) -> Said:
    """Exit code and standard output of a command."""

    def run(side: str, *words: object, given: str = "", as_json: bool = True) -> tuple[int, str]:
        command_line.on_side(side, remote.service)
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(given.encode()), encoding="utf-8"))
        return command_line(*words, *["--json"] * as_json)[:2]

    return run


@dataclass(frozen=True)
class Case:
    """A command that is run beside the database and from elsewhere.

    Args:
        words: {side} is here or there, {mood} a task of its own, {data} a dataset, {queued} and the like are jobs.
        code: how it ends.
        changes: it changes something, so that both say the same of two things: only the keys are compared.
        given: standard input.
    """

    words: str
    code: int = 0
    changes: bool = False
    given: str = ""


CASES = (
    Case("check {data}"),
    Case("check {data} --labels bad,good --shots 8 --task moods --seed 3"),
    Case("check {data} --unlabelled {pool}"),
    Case("check {data} --unlabelled {data}", 2, changes=True),
    Case("check {bad}", 2, changes=True),
    Case("submit --dataset {data} --task new-{side} --shots 16 --priority 3 --queue slow --key {side}", changes=True),
    Case("submit --dataset {bad}", 2, changes=True),
    Case("submit --dataset {data} --init nothing", 2),
    Case("submit --dataset {data} --task tuned-{side} --tune-hypernetwork always", changes=True),
    Case("submit --dataset {data} --tune-hypernetwork perhaps", 2),
    Case("submit --dataset {data} --queue ..", 2, changes=True),
    Case("submit --dataset /nothing.jsonl", 2, changes=True),
    Case("jobs list"),
    Case("jobs list --state failed --state queued --task colours --limit 2"),
    Case("jobs list --state odd", 2),
    Case("jobs list --sort oldest --limit 2"),
    Case("jobs list --sort task-backwards"),
    Case("jobs list --sort sideways", 2),
    Case("jobs show {running}"),
    Case("jobs show {waiting}"),
    Case("jobs show nothing", 3),
    Case("jobs show {succeeded} --report {report}"),
    Case("jobs logs {running}"),
    Case("jobs logs {running} --attempt 1"),
    Case("jobs logs {running} --attempt 7", 3),
    Case("jobs logs nothing", 3),
    Case("jobs watch {succeeded}"),
    Case("jobs watch {failed}", 1, changes=True),
    Case("jobs watch nothing", 3),
    Case("jobs cancel {queued}", changes=True),
    Case("jobs cancel {succeeded}", 4),
    Case("jobs retry {failed} --time-limit 60", changes=True),
    Case("jobs retry {running}", 4),
    Case("jobs retry {failed} --time-limit 0", 2, changes=True),
    Case("queue show"),
    Case("queue pause other"),
    Case("queue resume other"),
    Case("queue pause ..", 2, changes=True),
    Case("workers list"),
    Case("workers drain w2"),
    Case("workers drain nobody", 3),
    Case("tasks list"),
    Case("tasks list --label good --metric accuracy"),
    Case("tasks map"),
    Case("tasks map --output {picture}"),
    Case("tasks map --output map.svg", 2),
    Case("tasks show mood"),
    Case("tasks show nothing", 3),
    Case("tasks show ..", 2, changes=True),
    Case("tasks carry mood"),
    Case("tasks carry --all --dry-run"),
    Case("tasks carry", 2),
    Case("tasks carry mood --all", 2),
    Case("tasks carry nothing", 3),
    Case("tasks delete old-{side} --dry-run", changes=True),
    Case("tasks delete old-{side} --unlearn", changes=True),
    Case("tasks delete sst2 --unlearn", 4),
    Case("tasks delete nothing", 3),
    Case("labels {source}"),
    Case("labels nothing", 3),
    Case("labels {source} rename yes no", 4),
    Case("labels {source} turn yes", 2),
    Case("add nothing {data}", 3),
    Case("add {source} {data}", 4),
    Case("versions mood"),
    Case("versions mood --limit 1"),
    Case("versions mood --before 2"),
    Case("versions nothing", 3),
    Case("drift mood"),
    Case("drift nothing", 3),
    Case("compare mood@v1 mood@v2"),
    Case("compare mood@v1 mood@v2 --if-better", 4),
    Case("compare mood@v1 {source}", 2),
    Case("compare mood@v1 mood@v9", 3),
    Case("promote mood@v1 --alias made-{side}", changes=True),
    Case("promote mood@made-{side} --alias copied-{side}", changes=True),
    Case("promote mood@v1 --alias latest --if-better", 4),
    Case("promote mood@v9 --alias made-{side}", 3),
    Case("promote mood@v1 --alias nowhere --share 10%", 4),
    Case("promote mood@v1 --alias nowhere --share 10", 2),
    Case("promote mood@v1 --alias v7", 2),
    Case("rollback mood --alias made-{side}", 4, changes=True),
    Case("rollback mood --alias nothing", 3),
    Case("push mood nowhere", 2),
    Case("pull nowhere", 2),
    Case("predict {source} --text atext"),
    Case("predict {source} --input -", given='{"text": "one"}\n{"text": "two"}\n'),
    Case("predict {source} --text-a a", 2),
    Case("predict nothing --text atext", 3),
    Case("hypernetwork list"),
    Case("hypernetwork list --base mini", 3, changes=True),
    Case("hypernetwork list --base nothing", 3, changes=True),
    Case("hypernetwork show 1"),
    Case("hypernetwork show 9", 3),
    Case("hypernetwork revert 1"),
    Case("hypernetwork revert 9", 3),
    Case("prior list"),
    Case("prior show single", 3),
    Case("prior show odd", 2),
    Case("evaluate mood@v1 {data}"),
    Case("evaluate mood@v1 {bad}", 2, changes=True),
    Case("evaluate nothing {data}", 3),
    Case("base list"),
    Case("base show mini"),
    Case("base show nothing", 3, changes=True),
    Case("token create key-{side} --scope read --scope submit --expires 2d", changes=True),
    Case("token create key --scope everything", 2),
    Case("token create few-{side} --scope submit --max-jobs 20 --max-bytes 1GB", changes=True),
    Case("token create few --scope submit --max-jobs -1", 2),
    Case("token create few --scope submit --max-bytes many", 2),
    Case("token limit few-{side} --max-jobs none --max-bytes 0", changes=True),
    Case("token limit few-{side}", 2, changes=True),
    Case("token limit nobody --max-jobs 1", 3),
    Case("token list"),
    Case("token list --all"),
    Case("token revoke key-{side}", changes=True),
    Case("token revoke nothing", 3),
    Case("token sessions"),
    Case("token sign-out nothing", 3),
    Case("audit"),
    Case("audit --limit 2"),
    Case("audit --before 2"),
)
TESTED_APART = {("fetch",), ("doctor",), ("mlflow", "log"), ("compare-methods",)}  # the last: test_comparing_methods
NEEDED = {  # by commands that work on the machine of the service only
    ("backup",): "folder", ("restore",): "folder", ("base", "lessons"): "mini --sources folder",
    ("base", "export"): "mini --output folder",
    ("base", "import"): "folder --tokenizer t --labels l.json --name n", ("export",): "sst2 --format adapters",
}  # fmt: skip
ENDS_OF_VOLATILE = ("_at", "_seconds", "_per_hour")
VOLATILE = ("at", "secret", "id", "message", "actor", "folder")
LEAVES = leaves()
LOCAL = {path for path, command in LEAVES.items() if getattr(command.callback, "local_only", False)}


def test_every_command_works_from_elsewhere_or_is_known_not_to() -> None:
    tried = {path for path in LEAVES for case in CASES if tuple(case.words.split()[: len(path)]) == path}
    assert (tried | TESTED_APART) & LOCAL == set()
    assert tried | TESTED_APART | LOCAL == LEAVES.keys()
    assert {" ".join(path) for path in LOCAL} == {
        "worker", "serve", "gc", "backup", "restore", "db upgrade", "db check", "base train", "base import",
        "base export", "base lessons", "export", "prior refit",
    }  # fmt: skip
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "use-the-client.md").read_text(encoding="utf-8")
    (listed,) = [line for line in page.splitlines() if line.startswith("These commands work only on")]
    assert set(re.findall(r"`onboard ([^`]+)`", listed)) == {" ".join(path) for path in LOCAL}


@pytest.mark.parametrize("path", sorted(LOCAL), ids=" ".join)
def test_what_works_on_the_machine_of_the_service_only_says_so(said: Said, path: tuple[str, ...]) -> None:
    code, out = said("there", *path, *NEEDED.get(path, "").split())
    error = json.loads(out)["error"]
    assert (code, error["code"]) == (6, "not_allowed")
    assert error["message"].startswith(f"onboard {' '.join(path)} only works on the machines of a service")
    assert error["remedy"].endswith("unset ONBOARD_API_URL")


@pytest.mark.parametrize("case", CASES, ids=[case.words for case in CASES])
def test_a_command_says_the_same_here_and_there(
    remote: Remote, tiny_base: Base, tmp_path: Path, said: Said, case: Case
) -> None:
    data, bad, pool = tmp_path / "moods.jsonl", tmp_path / "bad.jsonl", tmp_path / "pool.jsonl"
    rows = [{"text": f"text {n}", "label": ("bad", "good")[n % 2]} for n in range(40)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    bad.write_text('{"text": "", "label": 1}\n{"text": "x"}\n')
    pool.write_text("".join(json.dumps({"text": f"unlabelled {n}"}) + "\n" for n in range(1200)))
    report = tmp_path / "report.html"
    files = {
        "data": data,
        "bad": bad,
        "pool": pool,
        "report": report,
        "picture": tmp_path / "map.png",
        "source": tiny_base.sources[0].name,
    }
    answers = []
    for side in SIDES:
        jobs = {name.split()[0]: job for name, job in remote.jobs.items() if side in name.split() or " " not in name}
        words = [word.format(side=side, **files, **jobs) for word in case.words.split()]
        code, out = said(side, *words, given=case.given)
        assert code == case.code, out
        answers.append(json.loads(out))
    here, there = (stable(answer) for answer in answers)
    if case.changes:
        assert keys(there) == keys(here)
    else:
        assert there == here
    assert not remote.service.elsewhere.exists()


def stable(document: Any) -> Any:
    """Without what differs from one moment to the next."""
    if isinstance(document, dict):
        return {
            name: stable(value)
            for name, value in document.items()
            if not name.endswith(ENDS_OF_VOLATILE) and name not in VOLATILE
        }
    if isinstance(document, float):
        return round(document, 5)  # batches of other sizes
    return [stable(entry) for entry in document] if isinstance(document, list) else document


def keys(document: Any) -> Any:
    """The keys, and what kind of value each has; of an error its code alone."""
    if isinstance(document, dict):
        if "error" in document and len(document) == 1:
            return document["error"]["code"]
        return {name: keys(value) for name, value in document.items()}
    return [keys(document[0])] if isinstance(document, list) and document else type(document).__name__


@pytest.mark.parametrize(
    "words",
    ["tasks list", "tasks show mood", "versions mood", "compare mood@v1 mood@v2", "base list", "queue show",
     "workers list", "jobs list", "jobs show {succeeded}", "jobs logs {succeeded}", "token list", "hypernetwork list",
     "hypernetwork show 1"],
)  # fmt: skip
def test_people_read_the_same_here_and_there(remote: Remote, said: Said, words: str) -> None:
    asked = [word.format(succeeded=remote.jobs["succeeded"]) for word in words.split()]
    here, there = SIDES
    before, elsewhere, after = (said(side, *asked, as_json=False) for side in (here, there, here))
    assert [code for code, _ in (before, elsewhere, after)] == [0, 0, 0]
    timeless = [re.sub(r"\d", "", text) for _, text in (before, elsewhere, after)]
    assert timeless[1] in (timeless[0], timeless[2])  # times go on: "59 s" may be "1 min" a moment later
    assert said("there", "base", "show", "mini", as_json=False)[0] == 0


@pytest.mark.parametrize("words", ["jobs watch", "queue show --watch", "workers list --watch"])
def test_what_is_watched_is_one_document_a_line_until_ctrl_c(
    monkeypatch: pytest.MonkeyPatch, said: Said, words: str
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.live.time.sleep", interrupt)
    answers = [said(side, *words.split()) for side in SIDES]
    assert [code for code, _ in answers] == [130, 130]
    here, there = (json.loads(out) for _, out in answers)
    assert stable(there) == stable(here)


def test_the_files_of_a_version_and_its_base_are_the_same_from_elsewhere(tmp_path: Path, said: Said) -> None:
    for side in SIDES:
        code, out = said(side, "fetch", "mood@latest", "--bundle", "--output", tmp_path / side)
        assert code == 0
        assert [Path(file).name for file in json.loads(out)["files"]] == ["embedding.safetensors", "card.md", "base"]
    here, there = ({file.relative_to(tmp_path / side): file for file in (tmp_path / side).rglob("*")} for side in SIDES)
    assert here.keys() == there.keys()
    assert [file for file in here if here[file].is_file() and here[file].read_bytes() != there[file].read_bytes()] == []
    assert said("there", "fetch", "mood@v1", "--bundle", "--output", tmp_path / "there")[0] == 0  # the base stays
    (tmp_path / "there" / "base" / "base.json").write_text("{}")
    assert said("there", "fetch", "mood@v1", "--bundle", "--output", tmp_path / "there")[0] == 4
    assert said("there", "fetch", "mood@v9", "--output", tmp_path / "there")[0] == 3


def test_doctor_says_what_can_be_told_from_outside(remote: Remote, said: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out = said("there", "doctor")
    checks = {check["what"]: check for check in json.loads(out)["checks"]}
    assert (code, list(checks)) == (0, ["service", "ready", "token", "version", "workers", "queues"])
    assert checks["token"]["found"] == "tests may submit, read, promote, ops, admin"
    assert checks["workers"]["found"].startswith("w1 on cpu")
    token, remote.service.token = remote.service.token, "wrong"
    try:
        code, out = said("there", "doctor")
    finally:
        remote.service.token = token
    wrong = [check["what"] for check in json.loads(out)["checks"] if not check["ok"]]
    assert (code, wrong) == (6, ["token", "version", "workers", "queues"])


@pytest.mark.parametrize(("url", "expected"), [("http://127.0.0.1:9", 5), ("onboard.example.org", 2)])
def test_a_service_that_is_not_there_is_told(
    remote: Remote, tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch, url: str, expected: int
) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"text": "x", "label": 1}\n')
    monkeypatch.setattr(remote.service, "url", url)
    monkeypatch.setattr("onboard.client.connection._FIRST_PAUSE_SECONDS", 0.0)
    for words in (("jobs", "list"), ("check", data), ("token", "list")):
        code, out = said("there", *words)
        assert (code, bool(json.loads(out)["error"]["remedy"])) == (expected, True)
    assert said("there", "doctor")[0] == expected


def test_submit_waits_for_the_version_and_says_what_became_of_it(
    remote: Remote, tmp_path: Path, said: Said, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "waited.jsonl"
    data.write_text("".join(f'{{"text": "text {n}", "label": {n % 2}}}\n' for n in range(40)))
    answers = []
    for state, result in ((JobState.SUCCEEDED, {"version": 3, "metrics": {"test": {}}}), (JobState.FAILED, None)):
        worker = threading.Thread(target=_worked, args=(remote, state, result))
        worker.start()
        code, out = said("there", "submit", "--dataset", data, "--queue", f"q-{state.value}", "--wait")
        worker.join()
        answers.append((code, json.loads(out)))
    (done, document), (failed, error) = answers
    assert (done, document["state"], document["version"]) == (0, "succeeded", 3)
    assert set(document) == DOCUMENT
    assert (failed, error["error"]["code"]) == (1, "job_failed")


def _worked(remote: Remote, state: JobState, result: dict[str, Any] | None) -> None:
    """Claim the job that is about to come, and end it."""
    with remote.service.place.services() as services:

        def claim() -> Job | None:
            with services.database.write() as session:
                return ClaimRepository(session).claim("w1", [f"q-{state.value}"])

        claimed = wait_until(claim, 30, "the job")
        with services.database.write() as session:
            error = None if result else {"message": "No."}
            ClaimRepository(session).finish(claimed.id, claimed.attempt, state, result=result, error=error)
