"""Carrying from elsewhere: page by page, and again where an answer was lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_service import FakeService, answer, problem, status
from service_answers import carried_page as page

from onboard.errors import InputError, NotFoundError


def bodies(service: FakeService) -> list[dict[str, Any]]:
    return [json.loads(request.content) for request in service.requests]


def test_all_tasks_come_page_by_page_as_one_document(service: FakeService, tmp_path: Path) -> None:
    answers = [page("a", refused=("b",), following="there"), page("c")]
    service.routes["POST", "/v1/carry"] = lambda _: httpx.Response(200, json=answers.pop(0))
    seen: list[Any] = []
    done = service.client(tmp_path).carry(dry_run=True, on_page=seen.append)
    assert ([task.task for task in done.carried], [task.task for task in done.refused]) == (["a", "c"], ["b"])
    assert done.dry_run
    assert [len(part.carried) for part in seen] == [1, 1]
    assert bodies(service) == [{"dry_run": True}, {"dry_run": True, "cursor": "there"}]


def test_one_task_is_one_request(service: FakeService, tmp_path: Path) -> None:
    service.routes["POST", "/v1/tasks/paws/carry"] = answer(page("paws"))
    assert [task.task for task in service.client(tmp_path).carry("paws").carried] == ["paws"]
    assert bodies(service) == [{"dry_run": False}]


def test_a_lost_answer_and_a_busy_service_are_asked_again(service: FakeService, tmp_path: Path) -> None:
    def cut(_: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("cut off")

    service.routes["POST", "/v1/tasks/paws/carry"] = answer(page())
    service.troubles += [cut, status(503, **{"Retry-After": "5"})]
    assert service.client(tmp_path).carry("paws").document == {"dry_run": False, "carried": [], "refused": []}
    assert len(service.requests) == 3


def test_what_is_no_task_is_an_error(service: FakeService, tmp_path: Path) -> None:
    service.routes["POST", "/v1/tasks/paws/carry"] = lambda _: problem(404, "not_found", "There is no task.")
    with pytest.raises(NotFoundError):
        service.client(tmp_path).carry("paws")
    with pytest.raises(InputError):
        service.client(tmp_path).carry("../jobs")
    assert len(service.requests) == 1
