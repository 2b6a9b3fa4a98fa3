"""What of an order is sent to a service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_service import FakeService, answer
from service_answers import CHECKED, WARNING

from cli.output import say_warnings
from onboard.domain.submission import Submission, asked

ACCEPTED: dict[str, Any] = {"job": "j", "state": "queued", "task": "rows", "warning": None, "warnings": []}
Ask = Callable[[FakeService, Path, Submission], Any]


def asked_to_check(service: FakeService, folder: Path, order: Submission) -> None:
    service.routes["POST", "/v1/check"] = answer(CHECKED)
    assert service.client(folder).check(**asked(order)).document == CHECKED


def asked_to_submit(service: FakeService, folder: Path, order: Submission) -> None:
    service.routes["POST", "/v1/jobs"] = answer(ACCEPTED, 202)
    service.client(folder).submit(**asked(order))


def test_warnings_come_back_in_the_words_of_the_command_line(
    service: FakeService, tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service.routes["POST", "/v1/check"] = answer({**CHECKED, "warnings": [WARNING]})
    (warning,) = service.client(tmp_path).check(data).document["warnings"]
    assert (warning["message"], warning["remedy"]) == ("Numbers.", "Say: --kind regression")
    assert "command" not in warning
    service.routes["POST", "/v1/jobs"] = answer({**ACCEPTED, "warnings": [WARNING]}, 202)
    say_warnings(service.client(tmp_path).submit(data).document)
    assert "warning: Numbers. Say: --kind regression" in capsys.readouterr().err


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "x", "label": 1}\n')
    return path


@pytest.mark.parametrize("ask", [asked_to_check, asked_to_submit])
def test_texts_without_labels_go_with_the_dataset(service: FakeService, tmp_path: Path, data: Path, ask: Ask) -> None:
    ask(service, tmp_path, Submission(str(data), unlabelled=data, shots=3, seed=0))
    (request,) = service.requests
    body = request.read()
    assert b'name="unlabelled"; filename="rows.jsonl"' in body
    assert b'name="shots"\r\n\r\n3\r\n' in body


@pytest.mark.parametrize("ask", [asked_to_check, asked_to_submit])
def test_nothing_is_asked_that_an_earlier_service_need_not_know(
    service: FakeService, tmp_path: Path, data: Path, ask: Ask
) -> None:
    ask(service, tmp_path, Submission(str(data)))
    (request,) = service.requests
    assert request.read().count(b"Content-Disposition") == 1  # the dataset


def test_a_strategy_of_the_probe_is_sent_where_it_is_wanted(service: FakeService, tmp_path: Path, data: Path) -> None:
    asked_to_submit(service, tmp_path, Submission(str(data), probe="exhaustive"))
    (request,) = service.requests
    assert b'name="probe"\r\n\r\nexhaustive\r\n' in request.read()


@pytest.mark.parametrize("ask", [asked_to_check, asked_to_submit])
def test_labels_alone_are_sent_as_a_form_without_files(service: FakeService, tmp_path: Path, ask: Ask) -> None:
    described = ["praise=thanks, well done", "complaint=it does not work"]
    ask(service, tmp_path, Submission(task="tone", labels="praise,complaint", label_description=described))
    (request,) = service.requests
    body = request.read()
    assert request.headers["content-type"].startswith("multipart/form-data")
    assert b'name="dataset"' not in body
    assert b"filename" not in body
    for name, value in (
        ("task", "tone"),
        ("labels", "praise,complaint"),
        *(("label_description", d) for d in described),
    ):
        assert f'name="{name}"\r\n\r\n{value}\r\n'.encode() in body
