"""A field that is added to the declaration of a submission is an option, a form's field, an argument and documented."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
import typer
from support.refusals import refused
from typer.testing import CliRunner

from cli.options import check_options, submit_options
from onboard.api.forms import described, form_of
from onboard.client import Onboard
from onboard.client.asking import upload
from onboard.client.json_object import JsonObject
from onboard.client.steps import Steps, operation
from onboard.client.uploads import Upload, taking
from onboard.domain.submission import Option, Submission, asked, table
from onboard.jobs.submission import job_spec

ROOT = Path(__file__).parent.parent.parent


@dataclass(frozen=True, slots=True)
class Copy(Submission):
    colour: Annotated[str | None, Option("Colour of the ink.", limits={"max_length": 7})] = None


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "x", "label": 1}\n')
    return path


def run(command: Any, *arguments: str) -> str:
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(command)
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_files_may_be_given_as_texts() -> None:
    assert Submission("rows.jsonl", test="test.jsonl") == Submission("rows.jsonl", test=Path("test.jsonl"))


def test_it_is_an_option_of_the_command() -> None:
    seen: list[Copy] = []

    @submit_options(Copy)
    def submit(submission: Copy) -> None:
        """Submit a dataset."""
        seen.append(submission)

    assert "Colour of the ink." in run(submit, "--help")
    run(submit, "--dataset", "rows.jsonl", "--colour", "blue", "--text-field", "a", "--text-field", "b")
    assert seen == [Copy("rows.jsonl", colour="blue", text_field=["a", "b"])]


def test_it_is_a_field_of_the_form_and_of_its_description() -> None:
    form = form_of(Copy, "CopyForm", "A copy.", checked=False)
    assert form.model_validate({"colour": "blue"}).model_dump()["colour"] == "blue"
    with pytest.raises(ValueError, match="at most 7 characters"):
        form.model_validate({"colour": "ultramarine"})
    schema = described(form, Copy)["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert schema["properties"]["colour"]["description"] == "Colour of the ink."
    assert schema["properties"]["colour"]["maxLength"] == 7


@pytest.fixture
def client(tmp_path: Path) -> Iterator[tuple[Any, list[bytes]]]:
    bodies: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(request.read())
        return httpx.Response(200, json={"job": "0" * 12, "task": "rows", "state": "queued"})

    class Other(Onboard):
        @operation
        @taking(Copy)
        def order(self, submission: Copy) -> Steps[JsonObject]:
            return (yield from upload("/v1/jobs", Upload.of(submission)))

    with Other("https://service", "onb_x", cache=tmp_path, transport=httpx.MockTransport(answer)) as other:
        yield other, bodies


def test_it_is_an_argument_of_the_client_and_is_sent(client: tuple[Any, list[bytes]], rows: Path) -> None:
    other, bodies = client
    assert inspect.signature(type(other).order).parameters["colour"].default is None
    other.order(rows, colour="blue")
    assert b'name="colour"\r\n\r\nblue\r\n' in bodies[0]
    with pytest.raises(TypeError, match="flavour"):
        other.order(rows, flavour="sour")


def test_it_is_documented() -> None:
    assert "| `--colour` | `colour` |  |  | Colour of the ink. |" in table(Copy)


def test_a_job_finds_it_among_its_options(rows: Path) -> None:
    assert asked(Copy(str(rows), colour="blue")) == {"dataset": str(rows), "colour": "blue"}
    spec = job_spec(Copy(str(rows), colour="blue", probe="exhaustive", shots=3, queue="other"), "mini")
    assert spec.options == {"probe": "exhaustive", "colour": "blue"}
    assert job_spec(Copy(str(rows)), "mini").options == {}


def test_what_says_what_the_rows_are_is_an_option_of_the_check_too() -> None:
    @check_options(Copy)
    def check(submission: Copy) -> None:
        """Check a dataset."""

    text = run(check, "--help")
    assert "--unlabelled" in text
    assert "--colour" not in text


def test_a_former_name_is_taken_and_not_shown(client: tuple[Any, list[bytes]], rows: Path) -> None:
    seen: list[Submission] = []

    @submit_options()
    def submit(submission: Submission) -> None:
        """Submit a dataset."""
        seen.append(submission)

    shown = run(submit, "--help")
    assert "--rows" in shown
    assert "--shots" not in shown
    run(submit, str(rows), "--shots", "3")
    run(submit, str(rows), "--rows", "3")
    assert [job_spec(submission, "mini").shots for submission in seen] == [3, 3]
    form = form_of(Submission, "Form", "A form.", checked=False)
    assert Submission(str(rows), **form.model_validate({"shots": "3"}).model_dump(exclude_none=True)).training_rows == 3
    described_as = described(form)["requestBody"]["content"]["multipart/form-data"]["schema"]["properties"]
    assert (described_as["shots"].get("deprecated"), described_as["rows"].get("deprecated")) == (True, None)
    other, bodies = client
    other.submit(rows, rows=3)
    assert b'name="rows"\r\n\r\n3\r\n' in bodies[0]
    with refused("rows-and-shots", rows=3, shots=4):
        Submission(str(rows), rows=3, shots=4)


def test_the_documentation_has_the_table_of_today() -> None:
    assert table() in (ROOT / "docs" / "reference" / "http-api.md").read_text(encoding="utf-8")
