"""Every change leaves one line in the log of changes: who did what to what, and when. By HTTP and by command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from submitting import submit
from support.audited import OF_PAGES, changing
from support.command_line import CommandLine
from support.tuned_heads import tuned_head
from typer.main import get_command_name

from cli.main import app as program
from onboard.api.access import routes_of
from onboard.bases import Base
from onboard.operations.access import offer_code, sign_in_by_code
from onboard.registry.clock import read_clock
from onboard.registry.services import Services

HERE: Final = {"Origin": "http://localhost"}
CHANGES: Final = {  # method and path of every route that changes something, and what its line says
    ("POST", "/v1/jobs"): "job.submit",
    ("POST", "/v1/jobs/{job}/cancel"): "job.cancel",
    ("POST", "/v1/jobs/{job}/retry"): "job.retry",
    ("POST", "/v1/queue/pause"): "queue.pause",
    ("POST", "/v1/queue/resume"): "queue.resume",
    ("POST", "/v1/workers/{worker}/drain"): "worker.drain",
    ("PUT", "/v1/tasks/{task}/aliases/{alias}"): "alias.promote",
    ("POST", "/v1/tasks/{task}/aliases/{alias}/rollback"): "alias.rollback",
    ("POST", "/v1/tasks/{task}/carry"): "task.carry",
    ("POST", "/v1/carry"): "task.carry",
    ("POST", "/v1/hypernetworks/{version}/revert"): "hypernetwork.revert",
    ("DELETE", "/v1/tasks/{task}"): "task.delete",
    ("POST", "/v1/tokens"): "token.create",
    ("PATCH", "/v1/quotas/{owner}"): "quota.set",
    ("DELETE", "/v1/tokens/{token}"): "token.revoke",
    ("DELETE", "/v1/sessions/{session}"): "session.end",
    ("POST", "/login"): "session.open",
    ("POST", "/logout"): "session.end",
}
CHANGE_NOTHING: Final = {
    ("POST", "/v1/check"), ("POST", "/v1/predict"), ("POST", "/v1/tasks/{task}/compare"),
    ("POST", "/v1/tasks/{task}/evaluate"), ("POST", "/v1/label-studio/{task}/setup"),
    ("POST", "/v1/label-studio/{task}/predict"),
}  # fmt: skip
OF_STORED_ROWS: Final = {  # see test_changed_tasks, of tasks that were learned here, and test_label_studio_backend
    ("POST", "/v1/tasks/{task}/rows"), ("POST", "/v1/tasks/{task}/labels"), ("POST", "/v1/label-studio/{task}/webhook"),
}  # fmt: skip


def test_every_route_that_is_no_look_is_in_one_of_the_tables(app: FastAPI) -> None:
    """Those of the pages are in the tables of test_audit_of_pages."""
    assert changing(routes_of(app)) - OF_PAGES == CHANGES.keys() | CHANGE_NOTHING | OF_STORED_ROWS


def test_every_change_over_http_leaves_one_line_that_says_who_what_and_when(
    door: TestClient,
    rows: bytes,
    stage: Services,
    tiny_base: Base,
    new_lines: Callable[[], list[dict[str, Any]]],
) -> None:
    actor = door.get("/v1/me").json()["actor"]
    new_lines()
    with stage.database.read() as session:
        began = read_clock(session)
    done: dict[str, str] = {}

    def check(method: str, path: str, subject: str, answer: Any, by: str = actor) -> Any:
        assert answer.status_code < 400, answer.text
        (line,) = new_lines()
        assert (line["action"], line["subject"], line["actor"]) == (CHANGES[method, path], subject, by)
        assert line["at"] >= done.get("at", "")
        done.update({f"{method} {path}": line["action"], "at": line["at"]})
        return answer

    submitted = submit(door, rows)
    job = submitted.json()["job"]
    check("POST", "/v1/jobs", job, submitted)
    check("POST", "/v1/jobs/{job}/cancel", job, door.post(f"/v1/jobs/{job}/cancel"))
    check("POST", "/v1/jobs/{job}/retry", job, door.post(f"/v1/jobs/{job}/retry"))
    check("POST", "/v1/queue/pause", "nightly", door.post("/v1/queue/pause", json={"queue": "nightly"}))
    check("POST", "/v1/queue/resume", "nightly", door.post("/v1/queue/resume", json={"queue": "nightly"}))
    check("POST", "/v1/workers/{worker}/drain", "w1", door.post("/v1/workers/w1/drain"))
    alias = "/v1/tasks/mood/aliases/good"
    for version, condition in ((1, {"If-None-Match": "*"}), (2, {"If-Match": '"v1"'})):
        moved = door.put(alias, json={"version": version}, headers=condition)
        check("PUT", "/v1/tasks/{task}/aliases/{alias}", "mood@good", moved)
    back = door.post(f"{alias}/rollback", headers={"If-Match": '"v2"'})
    check("POST", "/v1/tasks/{task}/aliases/{alias}/rollback", "mood@good", back)
    tuned_head(stage, tiny_base, scale=0)
    check("POST", "/v1/tasks/{task}/carry", "mood", door.post("/v1/tasks/mood/carry"))
    check("POST", "/v1/carry", "sst2", door.post("/v1/carry", json={"limit": 1}))
    first = f"{tiny_base.name} v1"
    check("POST", "/v1/hypernetworks/{version}/revert", first, door.post("/v1/hypernetworks/1/revert"))
    check("DELETE", "/v1/tasks/{task}", "mood", door.delete("/v1/tasks/mood"))
    made = door.post("/v1/tokens", json={"name": "shop", "scopes": ["read"]})
    token, secret = made.json()["id"], made.json()["secret"]
    check("POST", "/v1/tokens", token, made)
    with TestClient(door.app, "http://localhost", headers=HERE, follow_redirects=False) as browser:
        by = f"shop ({token})"
        check("POST", "/login", token, browser.post("/login", data={"token": secret}), by)
        check("POST", "/logout", token, browser.post("/logout"), by)
    sign_in_by_code(stage.database, offer_code(stage.database))
    new_lines()
    (local,) = door.get("/v1/sessions").json()["sessions"]
    check("DELETE", "/v1/sessions/{session}", "local", door.delete(f"/v1/sessions/{local['id']}"))
    check("PATCH", "/v1/quotas/{owner}", "shop", door.patch("/v1/quotas/shop", json={"max_jobs": 3}))
    check("DELETE", "/v1/tokens/{token}", token, door.delete("/v1/tokens/shop"))
    assert {f"{method} {path}" for method, path in CHANGES} == done.keys() - {"at"}
    with stage.database.read() as session:
        assert read_clock(session) >= began


def test_a_dataset_that_a_child_process_checks_is_submitted_by_whoever_sent_it(
    door: TestClient,
    rows: bytes,
    new_lines: Callable[[], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    actor = door.get("/v1/me").json()["actor"]
    new_lines()
    monkeypatch.setattr("onboard.api.intake.SMALL_BYTES", 0)
    job = submit(door, rows).json()["job"]
    assert [(line["action"], line["subject"], line["actor"]) for line in new_lines()] == [("job.submit", job, actor)]


def test_what_was_refused_or_changes_nothing_leaves_no_line(
    door: TestClient, rows: bytes, stage: Services, new_lines: Callable[[], list[dict[str, Any]]]
) -> None:
    new_lines()
    answers = [
        door.post("/v1/check", files={"dataset": ("weather.jsonl", rows)}),
        door.post("/v1/jobs", files={"dataset": ("weather.jsonl", b"{}\n")}),
        door.post("/v1/jobs/0123456789ab/cancel"),
        door.post("/v1/queue/pause", json={"queue": "Not A Name"}),
        door.post("/v1/workers/nobody/drain"),
        door.put("/v1/tasks/mood/aliases/good", json={"version": 9}, headers={"If-None-Match": "*"}),
        door.put("/v1/tasks/mood/aliases/latest", json={"version": 1}, headers={"If-Match": '"v1"'}),
        door.post("/v1/tasks/mood/aliases/latest/rollback"),
        door.delete("/v1/tasks/nothing"),
        door.post("/v1/tokens", json={"scopes": ["all"]}),
        door.delete("/v1/tokens/nobody"),
        door.post("/login", data={"token": "wrong"}, headers=HERE),
        door.get("/login", params={"code": "wrong"}),
    ]
    assert [answer.status_code < 400 for answer in answers] == [True] + [False] * 12


def test_the_same_request_again_leaves_no_second_line(
    door: TestClient, rows: bytes, stage: Services, new_lines: Callable[[], list[dict[str, Any]]]
) -> None:
    token = door.post("/v1/tokens", json={"name": "shop", "scopes": ["read"]}).json()["id"]
    for _ in range(2):
        assert submit(door, rows, key="once").status_code == 202
        assert door.delete(f"/v1/tokens/{token}").status_code == 200
    assert [line["action"] for line in new_lines()] == ["token.create", "job.submit", "token.revoke"]


GROUPS: Final = {group.name for group in program.registered_groups}
COMMANDS: Final = (  # {job} and {token} are those that earlier lines made
    ("job.submit", "{job}", "submit --dataset {rows} --task weather"),
    ("job.cancel", "{job}", "jobs cancel {job}"),
    ("job.retry", "{job}", "jobs retry {job}"),
    ("queue.pause", "nightly", "queue pause nightly"),
    ("queue.resume", "nightly", "queue resume nightly"),
    ("worker.drain", "w1", "workers drain w1"),
    ("alias.promote", "mood@good", "promote mood@v1 --alias good"),
    ("alias.promote", "mood@good", "promote mood@v2 --alias good"),
    ("alias.rollback", "mood@good", "rollback mood --alias good"),
    ("task.carry", "mood", "tasks carry mood"),
    ("hypernetwork.revert", "{base} v1", "hypernetwork revert 1"),
    ("task.delete", "mood", "tasks delete mood"),
    ("token.create", "{token}", "token create shop --scope read"),
    ("quota.set", "shop", "token limit shop --max-jobs 3"),
    ("token.revoke", "{token}", "token revoke shop"),
)
# Those that look, or work on this machine alone; and the upkeep, which only the owner of the machine can do.
LOOK: Final = {
    "evaluate", "prior list", "prior show",
    "audit", "base export", "base import", "base list", "base show", "base train", "check", "compare", "db check",
    "doctor", "drift", "export", "fetch", "hypernetwork list", "hypernetwork show", "jobs list", "jobs logs",
    "jobs show", "jobs watch", "mlflow log", "predict", "pull", "push", "queue show", "serve", "tasks list",
    "tasks map", "tasks show", "token list", "token sessions", "versions", "worker", "workers list",
}  # fmt: skip
UPKEEP: Final = {"backup", "base lessons", "db upgrade", "gc", "prior refit", "restore"}
# Tests of their own: jobs that it queues leave lines, and it follows them; changes of a task need one that was learned
# here; signing out needs a browser.
SEVERAL: Final = {"add", "compare-methods", "labels", "token sign-out"}


def commands() -> set[str]:
    names = {
        get_command_name(command.name or getattr(command.callback, "__name__", ""))
        for command in program.registered_commands
    }
    for group in program.registered_groups:
        assert group.typer_instance is not None
        for subcommand in group.typer_instance.registered_commands:
            name = get_command_name(subcommand.name or getattr(subcommand.callback, "__name__", ""))
            names.add(f"{group.name} {name}")
    return names


def test_every_command_is_in_one_of_the_tables() -> None:
    one_line = {" ".join(words.split()[: 1 + (words.split()[0] in GROUPS)]) for _, _, words in COMMANDS}
    assert commands() == one_line | SEVERAL | LOOK | UPKEEP


@pytest.fixture
def weather(
    stage: Services, rows: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: CommandLine
) -> Path:
    """A dataset that commands of the stage's home submit, where no worker starts."""
    (tmp_path / "weather.jsonl").write_bytes(rows)
    command_line.at_home(stage.settings)
    monkeypatch.setenv("ONBOARD_START_WORKER", "false")
    return tmp_path / "weather.jsonl"


def test_every_command_that_changes_something_leaves_one_line(
    stage: Services,
    tiny_base: Base,
    weather: Path,
    new_lines: Callable[[], list[dict[str, Any]]],
    command_line: CommandLine,
) -> None:
    tuned_head(stage, tiny_base, scale=0)
    known = {"rows": str(weather), "base": tiny_base.name, "job": "", "token": ""}
    for action, subject, words in COMMANDS:
        said = command_line(*words.format(**known).split(), "--json")
        assert not said.code, said
        document = said.document
        known["job"] = document.get("job") or known["job"]
        known["token"] = document.get("id") or known["token"]
        (line,) = new_lines()
        assert (line["action"], line["subject"]) == (action, subject.format(**known)), words
        assert "@" in line["actor"]  # the user and the machine


def test_methods_that_are_compared_leave_a_line_for_each_job(
    weather: Path,
    new_lines: Callable[[], list[dict[str, Any]]],
    monkeypatch: pytest.MonkeyPatch,
    command_line: CommandLine,
) -> None:
    # there is no worker to wait for
    monkeypatch.setattr("cli.watch.follow", lambda service, job: service.job(job).document)
    said = command_line("compare-methods", weather, "--methods", "default,linear,adapters", "--json")
    states = [result["state"] for result in said.document["results"]]
    assert states == ["queued", "queued", "refused"], said  # adapters do not fit the tiny base
    lines = new_lines()
    assert [line["action"] for line in lines] == ["job.submit"] * 2
    assert [line["subject"] for line in lines] == [result["job"] for result in said.document["results"][:2]]
    assert all("@" in line["actor"] for line in lines)
