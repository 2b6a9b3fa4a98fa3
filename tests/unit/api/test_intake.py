"""Children that check datasets: large ones one at a time, ended at a deadline or when nobody waits for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
import uvicorn
import waiting_child
from fastapi import FastAPI
from support.real_services import wait_until
from support.refusals import refused as error_of

from onboard.api import intake, serve
from onboard.api.child import Bounds, call_in_child
from onboard.api.intake import Intake
from onboard.domain.access import acting
from onboard.domain.submission import Submission
from onboard.errors import DatasetError, OnboardError, TooLargeError, UnavailableError
from onboard.jobs.submission import check
from onboard.settings import Settings

LARGE_ENOUGH = 1 << 30  # memory of a child
LARGE = intake.SMALL_BYTES + 1


def stays() -> bool:
    return False


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    path = tmp_path / "weather.jsonl"
    path.write_text("".join(f'{{"text": "day {day}", "label": "{day % 2}"}}\n' for day in range(20)))
    return str(path)


@pytest.fixture
def taking(tmp_path: Path) -> Iterator[Intake]:
    with Intake(Settings(home=tmp_path / "home")) as taking:
        yield taking


def in_the_background(call: Callable[[], object]) -> tuple[threading.Thread, list[OnboardError]]:
    errors: list[OnboardError] = []

    def run() -> None:
        try:
            call()
        except OnboardError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def test_after_a_child_that_died_the_next_dataset_is_checked(
    taking: Intake, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake.submissions, "check", waiting_child.die)
    with error_of("check-died"):
        taking.check(Submission(dataset), LARGE, stays)
    monkeypatch.setattr(intake.submissions, "check", check)
    assert taking.check(Submission(dataset), LARGE, stays)["rows"]["train"] == 20


def test_errors_of_a_child_are_those_of_the_check(taking: Intake, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text('{"text": "", "label": "a"}\n')
    with pytest.raises(DatasetError) as caught:
        taking.check(Submission(str(wrong)), LARGE, stays)
    assert caught.value.data["problems"][0]["row"] == 1


def test_a_client_that_leaves_ends_its_child_and_frees_the_place(
    taking: Intake, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake.submissions, "check", waiting_child.wait_for_ever)
    marker, left = tmp_path / "there", threading.Event()
    thread, errors = in_the_background(lambda: taking.check(Submission(dataset, task=str(marker)), LARGE, left.is_set))
    wait_until(marker.exists, 60)
    child = int(marker.read_text())
    assert psutil.pid_exists(child)
    left.set()
    thread.join()
    assert errors[0].type == "client-went-away"
    assert not psutil.pid_exists(child)
    monkeypatch.setattr(intake.submissions, "check", check)
    assert taking.check(Submission(dataset), LARGE, stays)["task"] == "weather"


def test_who_waits_for_a_turn_may_leave_and_the_fifth_is_sent_away(
    taking: Intake, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake.submissions, "check", waiting_child.wait_for_ever)
    marker, left = tmp_path / "there", threading.Event()
    orders = [Submission(dataset, task=str(marker))] * 4

    def checked(order: Submission, who: str) -> object:
        with acting(who):  # one token has half of the places
            return taking.check(order, LARGE, left.is_set)

    waiting = [in_the_background(partial(checked, order, "ab"[place % 2])) for place, order in enumerate(orders)]
    wait_until(lambda: taking._places.held == 4, 30)
    with pytest.raises(UnavailableError, match="Too many") as refused:
        taking.check(Submission(dataset), LARGE, stays)
    assert refused.value.data["retry_after_seconds"] > 0
    left.set()
    for thread, errors in waiting:
        thread.join()
        assert errors[0].type == "client-went-away"
    monkeypatch.setattr(intake.submissions, "check", check)
    assert taking.check(Submission(dataset), LARGE, stays)["task"] == "weather"


def test_a_service_that_ends_does_not_wait_for_a_child(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake.submissions, "check", waiting_child.wait_for_ever)
    marker = tmp_path / "there"
    with Intake(Settings(home=tmp_path / "home")) as taking:
        thread, errors = in_the_background(lambda: taking.check(Submission(dataset, task=str(marker)), LARGE, stays))
        wait_until(marker.exists, 60)
    thread.join()
    assert isinstance(errors[0], UnavailableError)


_PARENT = """
import sys
sys.path.insert(0, sys.argv[1])
from waiting_child import wait_for_ever
from onboard.api.child import Bounds, call_in_child
from onboard.domain.submission import Submission
if __name__ == "__main__":
    call_in_child(lambda: False, Bounds(1 << 30, 60), wait_for_ever, Submission("none", task=sys.argv[2]))
"""


def test_a_child_ends_with_a_service_that_is_killed(tmp_path: Path) -> None:
    script, marker = tmp_path / "parent.py", tmp_path / "there"
    script.write_text(_PARENT)
    environment = {**os.environ, "PYTHONPATH": str(Path(waiting_child.__file__).parents[3])}
    parent = subprocess.Popen([sys.executable, script, Path(waiting_child.__file__).parent, marker], env=environment)
    try:
        wait_until(marker.exists, 60)
        child = psutil.Process(int(marker.read_text()))
    finally:
        parent.kill()
        parent.wait()
    child.wait(30)


_CHECKING = """
import sys
from pathlib import Path
import onboard.api.preloaded
before = set(sys.modules)
from onboard.api import intake
from onboard.domain.submission import Submission
from onboard.jobs.submission import Outside
from onboard.settings import Settings
dataset, home = sys.argv[1:]
settings = Settings(home=home, base="mini")
outside = Outside(settings.hub_terms, Path(home).parent)
intake.submissions.check(Submission(dataset), settings.base, outside=outside)
intake._submit(settings, Submission(dataset), "somebody", None, outside)
print(*(name for name in set(sys.modules) - before if name.split(".")[0] in ("onboard", "workers", "migrations")))
print(*({"torch", "transformers", "sklearn", "pandas"} & set(sys.modules)))
"""


def test_a_child_imports_nothing_of_ours_that_the_server_it_is_forked_of_could_have(
    dataset: str, tmp_path: Path
) -> None:
    words = [sys.executable, "-c", _CHECKING, dataset, tmp_path / "home"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["", ""]


def test_what_a_child_returns_comes_back() -> None:
    assert call_in_child(stays, Bounds(LARGE_ENOUGH, 60), os.getpid) != os.getpid()


def test_a_child_that_takes_too_much_memory_is_told_as_too_large(
    taking: Intake, dataset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "CHILD_BYTES", LARGE_ENOUGH)
    monkeypatch.setattr(intake.submissions, "check", waiting_child.take_two_gigabytes)
    with pytest.raises(TooLargeError) as caught:
        taking.check(Submission(dataset), LARGE, stays)
    assert caught.value.data["limit"] == LARGE_ENOUGH


@pytest.mark.parametrize("content_bytes", [1, LARGE])
def test_a_check_that_takes_too_long_is_ended(
    taking: Intake, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content_bytes: int
) -> None:
    monkeypatch.setattr(intake, "CHECK_SECONDS", 1.0)
    monkeypatch.setattr(intake.submissions, "check", waiting_child.wait_for_ever)
    marker = tmp_path / "there"
    with error_of("check-needs-time") as caught:
        taking.check(Submission(dataset, task=str(marker)), content_bytes, stays)
    assert caught.value.data["limit_seconds"] == 1.0
    assert not (marker.exists() and psutil.pid_exists(int(marker.read_text())))  # on a busy machine it is never there
    monkeypatch.setattr(intake.submissions, "check", check)
    monkeypatch.setattr(intake, "CHECK_SECONDS", 240.0)
    assert taking.check(Submission(dataset), content_bytes, stays)["rows"]["train"] == 20


def test_small_datasets_are_checked_while_a_large_one_is(
    taking: Intake, dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake.submissions, "check", waiting_child.wait_for_ever)
    marker, left = tmp_path / "there", threading.Event()
    thread, _ = in_the_background(lambda: taking.check(Submission(dataset, task=str(marker)), LARGE, left.is_set))
    wait_until(marker.exists, 60)
    monkeypatch.setattr(intake.submissions, "check", check)
    assert taking.check(Submission(dataset), 1, stays)["rows"]["train"] == 20
    left.set()
    thread.join()


def test_a_small_dataset_has_less_memory(taking: Intake, dataset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake.submissions, "check", waiting_child.take_two_gigabytes)
    with pytest.raises(TooLargeError) as caught:
        taking.check(Submission(dataset), 1, stays)
    assert caught.value.data["limit"] == intake.SMALL_CHILD_BYTES


def test_a_service_that_is_told_to_leave_ends_its_checks_within_seconds(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake.submissions, "check", waiting_child.wait_for_ever)
    app, marker = FastAPI(), tmp_path / "there"
    with Intake(Settings(home=tmp_path / "home")) as taking:
        app.state.intake = taking
        server = serve._Server(uvicorn.Config(app, log_config=None))
        thread, errors = in_the_background(lambda: taking.check(Submission(dataset, task=str(marker)), 1, stays))
        wait_until(marker.exists, 60)
        began = time.monotonic()
        server.handle_exit(signal.SIGTERM, None)
        thread.join(30)
        assert isinstance(errors[0], UnavailableError)
        assert time.monotonic() - began < 10
        assert not psutil.pid_exists(int(marker.read_text()))
