"""Deleting a task through the client: what is asked, and a service that can only hide it."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from fake_service import FakeService, answer, problem, status
from support.refusals import refused

from onboard.errors import ConflictError, InputError, UnavailableError

TASK = ("DELETE", "/v1/tasks/mood")
DELETED = {"task": "mood", "deleted": True}


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ({}, b""),
        ({"unlearn": True}, b"unlearn=true"),
        ({"unlearn": True, "dry_run": True}, b"unlearn=true&dry_run=true"),
    ],
)
def test_only_what_is_wanted_is_asked(
    service: FakeService, tmp_path: Path, options: dict[str, bool], query: bytes
) -> None:
    service.routes[TASK] = answer(DELETED)
    assert service.client(tmp_path).delete_task("mood", **options) == DELETED
    (request,) = service.requests
    assert request.url.query == query


def test_a_deletion_that_may_have_happened_is_not_sent_twice(service: FakeService, tmp_path: Path) -> None:
    service.troubles = [status(503)]
    service.routes[TASK] = answer(DELETED)
    with pytest.raises(UnavailableError):
        service.client(tmp_path).delete_task("mood")
    assert len(service.requests) == 1


def test_what_cannot_be_unlearned_is_the_same_error_here(service: FakeService, tmp_path: Path) -> None:
    service.routes[TASK] = lambda _: problem(409, "conflict", "A base was trained on 'mood'.")
    with pytest.raises(ConflictError, match="trained on 'mood'"):
        service.client(tmp_path).delete_task("mood", unlearn=True)


def test_a_service_that_only_hides_tasks_is_told_of(service: FakeService, tmp_path: Path) -> None:
    service.routes[TASK] = lambda request: httpx.Response(204, request=request)
    with refused("task-only-hidden"):
        service.client(tmp_path).delete_task("mood")
    with pytest.raises(InputError):
        service.client(tmp_path).delete_task("..")
