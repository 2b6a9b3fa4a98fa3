"""Over HTTP remedies are requests and fields; the command line, which asks over HTTP too, hears of commands."""

from __future__ import annotations

import httpx
import pytest
from fastapi.testclient import TestClient

from onboard.api.problems import of_error
from onboard.api.remedies import in_requests
from onboard.client.problems import problem_of
from onboard.errors import DatasetError, InputError, NotFoundError, OnboardError


@pytest.mark.parametrize(
    ("remedy", "request_"),
    [
        ("List them with: onboard tasks list", "List them with: GET /v1/tasks"),
        ("List its versions with: onboard versions mood", "List its versions with: GET /v1/tasks/mood/versions"),
        ("--init auto, --init random, or: onboard tasks list", "init=auto, init=random, or: GET /v1/tasks"),
        ("Name the task: --task my-reviews", "Name the task: task=my-reviews"),
        ("Give the new task another name with --task, or say --new-labels.",
         "Give the new task another name with task, or say new_labels."),
        ("Say so: --label-field NAME. For numbers: --kind regression",
         "Say so: label_field=NAME. For numbers: kind=regression"),
        ("Use another --key.", "Use another Idempotency-Key."),
        ("onboard compare a@v1 a@v2; or go back: onboard rollback a --alias latest",
         "GET /v1/tasks/a/compare?a=v1&b=v2; or go back: POST /v1/tasks/a/aliases/latest/rollback"),
        ("onboard jobs retry 01 --time-limit SECONDS", 'POST /v1/jobs/01/retry with {"time_limit": SECONDS}'),
        ("Send it again.", "Send it again."),
    ],
)  # fmt: skip
def test_commands_become_requests_and_options_fields(remedy: str, request_: str) -> None:
    assert in_requests(remedy) == request_


@pytest.mark.parametrize(
    "error",
    [
        NotFoundError("There is no task 'mod'.", "List them with: onboard tasks list", task="mod"),
        InputError("It has no name.", "Send it again."),
        InputError("--rows 3 has no meaning without labeled rows.", "Leave out --rows."),
        DatasetError(
            "rows.csv has no label.", "--label-field NAME",
            problems=[{"message": "has no label", "remedy": "--label-field NAME"}, {"message": "is empty"}],
        ),
    ],
)  # fmt: skip
def test_the_client_hears_of_the_commands_again(error: OnboardError) -> None:
    answer = of_error(error)
    response = httpx.Response(
        answer.status_code, content=bytes(answer.body), headers=dict(answer.headers),
        request=httpx.Request("GET", "http://service.test/"),
    )  # fmt: skip
    received = problem_of(response)
    assert received.to_json() == error.to_json()
    assert "onboard " not in response.json()["remedy"]
    assert "--" not in str([problem.get("remedy") for problem in response.json().get("problems", [])])


def test_no_remedy_of_a_real_answer_is_a_command(door: TestClient, rows: bytes) -> None:
    answers = [
        door.get("/v1/tasks/nobody"), door.get("/v1/jobs/nobody"), door.get("/v1/tasks/sst2/embeddings/v9"),
        door.post("/v1/workers/nobody/drain"), door.get("/v1/hypernetworks/9"),
        door.post("/v1/predict", json={"inputs": [{"task": "stt2", "text": "a"}]}),
        door.post("/v1/jobs", files={"dataset": ("moods.jsonl", rows)}, data={"init": "stt2"}),
        door.post("/v1/jobs", files={"dataset": ("moods.jsonl", rows)}, data={"metric": "spearman"}),
        door.post("/v1/check", files={"dataset": ("moods.jsonl", rows)}, data={"text_field": "body"}),
    ]  # fmt: skip
    for answer in answers:
        problem = answer.json()
        assert answer.status_code >= 400, problem
        assert "onboard " not in problem["remedy"], problem
        assert "--" not in problem["remedy"], problem
