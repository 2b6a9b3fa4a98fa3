"""What a request brings, whatever it is: it is read, or refused by an error of ours that can be shown as JSON."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bounded import bounded
from fastapi.exceptions import RequestValidationError
from hypothesis import example, given
from hypothesis import strategies as some
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.requests import Request

from onboard.api import guarding, problems
from onboard.api.deps import decode_cursor, encode_cursor
from onboard.api.etags import etag, matches
from onboard.api.forms import DatasetForm, JobForm
from onboard.api.receiving import read_form
from onboard.api.upload_places import Sender
from onboard.api.uploads import FILE_FIELDS, ReceivedUpload, received, safe_name
from onboard.contract.requests import parse_requests
from onboard.domain.job import JobSpec
from onboard.domain.submission import Submission
from onboard.domain.webhook import Endpoint, Webhooks
from onboard.errors import InputError, OnboardError
from onboard.jobs.submission import split_labels, task_name

TEXTS = some.text(max_size=60)
JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=12),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def require_ours(read: Callable[[], object]) -> None:
    """It is read or refused; a refusal can be answered as a problem."""
    try:
        read()
    except OnboardError as error:
        document = json.loads(problems.of_error(error).body)
        assert document["code"] != "error"
        assert document["detail"]


# --- multipart ---

NAMES = some.sampled_from([*FILE_FIELDS, "task", "labels", "", 'a"b', "é", "x" * 300]) | TEXTS
HEADERS = some.sampled_from(
    [
        b"Content-Type: text/plain", b"Content-Transfer-Encoding: base64", b"no colon", b": empty",
        b"A: " + b"b" * 9000,
        b'Content-Disposition: form-data; name="dataset"; filename="../../a"; filename*=utf-8\'\'%2e%2e%2fb',
        b'Content-Disposition: attachment; name="task"', b"\xff\xfe: x", b"Content-Disposition:", b"X: a\r\n b",
    ]
)  # fmt: skip


@some.composite
def parts(draw: Any) -> bytes:
    disposition = b'Content-Disposition: form-data; name="%s"' % draw(NAMES).encode("utf-8", "surrogatepass")
    if draw(some.booleans()):
        disposition += b'; filename="%s"' % draw(TEXTS).encode("utf-8", "surrogatepass")
    head = b"\r\n".join([disposition, *draw(some.lists(HEADERS, max_size=2))])
    content = draw(
        some.binary(max_size=80) | some.sampled_from([b"\r\n--x", b"\r\n--x-", b"--x--", b"\x1f\x8b\x08", b"PAR1"])
    )
    return b"--x\r\n" + head + b"\r\n\r\n" + content + b"\r\n"


@some.composite
def bodies(draw: Any) -> list[bytes]:
    """Whole and damaged forms, in pieces."""
    body = b"".join(draw(some.lists(parts(), max_size=4))) + draw(
        some.sampled_from([b"--x--\r\n", b"--x--", b"", b"--x"])
    )
    if draw(some.booleans()):
        at = draw(some.integers(0, len(body)))
        body = body[:at] + draw(some.binary(max_size=6)) + body[at + draw(some.integers(0, 6)) :]
    size = draw(some.integers(1, max(1, len(body))))
    return [body[start : start + size] for start in range(0, len(body), size)]


@bounded(250)
@given(bodies(), some.sampled_from(["multipart/form-data; boundary=x", 'multipart/form-data; boundary="x"']))
@example([b"some rows"], "multipart/form-data; boundary=" + "y" * 300)
@example([b""], "text/plain")
def test_any_form_is_received_or_refused_and_leaves_nothing(pieces: list[bytes], kind: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        require_ours(lambda: asyncio.run(received_form(pieces, kind, place)))
        assert list(place.iterdir()) == []


async def received_form(pieces: list[bytes], kind: str, place: Path) -> None:
    messages = iter([{"type": "http.request", "body": piece, "more_body": True} for piece in pieces])

    async def receive() -> dict[str, Any]:
        return next(messages, {"type": "http.request", "body": b"", "more_body": False})

    request = Request({"type": "http", "method": "POST", "headers": [(b"content-type", kind.encode())]}, receive)
    async with received(request, place, Sender(0.0)) as upload:
        assert all(path.resolve().is_relative_to(place.resolve()) for path in upload.files.values())
        assert upload.content_bytes >= 0
        read_any(JobForm, upload)


# --- forms and orders ---


def read_any(form: type[BaseModel], upload: ReceivedUpload) -> None:
    try:
        submission = read_form(form, upload).submission()
    except RequestValidationError as error:
        document = json.loads(problems.of_error(problems._of_validation(error)).body)
        assert any(document["field"].startswith(name) for name in upload.fields)
        return
    assert task_name(submission)


VALUES = some.lists(TEXTS | some.sampled_from(["0", "-1", "1e400", "nan", "true", "hf://x", "auto", "a,b"]), max_size=3)


@bounded(250)
@given(some.dictionaries(some.sampled_from([*JobForm.model_fields, "dataset", "surprise"]), VALUES, max_size=5))
@example({"dataset": ["hf://../../etc"], "labels": ["a,"]})
@example({"dataset": ["hf://x"], "time_limit": ["inf"]})
@example({"dataset": ["/etc/passwd"]})
def test_any_fields_of_a_form_are_an_order_or_refused(fields: dict[str, list[str]]) -> None:
    upload = ReceivedUpload(Path("/nowhere"), {name: values for name, values in fields.items() if values})
    for form in (DatasetForm, JobForm):
        require_ours(lambda form=form: read_any(form, upload))


@bounded(250)
@given(TEXTS)
@example('"')
@example(",")
@example("a\nb")
@example('a,"b\nc"')
@example("\0")
@example("a" * 200_000)
def test_any_text_is_a_label_set_or_refused(text: str) -> None:
    require_ours(lambda: split_labels(text))


@bounded(150)
@given(TEXTS, some.none() | TEXTS)
def test_any_name_of_a_dataset_gives_a_tasks_name_or_is_refused(dataset: str, task: str | None) -> None:
    require_ours(lambda: task_name(Submission(dataset, task=task)))


@bounded(150)
@given(some.text(max_size=300))
def test_whatever_a_file_is_called_it_lies_in_its_folder(name: str) -> None:
    safe = safe_name(name)
    assert Path("/folder", safe).resolve().parent == Path("/folder")
    assert 0 < len(safe) <= 100


# --- cursors, tags, hosts ---


@bounded(250)
@given(
    TEXTS | some.binary(max_size=40).map(lambda data: data.hex()) | JSON.map(lambda edge: encode_cursor("jobs", edge))
)
@example("W10")
@example("[" * 400)
@example("\ud800")
@example(encode_cursor("tasks", "a"))
def test_any_text_is_a_cursor_or_refused(cursor: str) -> None:
    require_ours(lambda: decode_cursor("jobs", cursor))


@bounded(150)
@given(JSON.filter(lambda edge: r"\u0000" not in json.dumps(edge)))  # no database holds it, so no listing ends there
def test_a_cursor_leads_where_it_was_made_and_nowhere_else(edge: Any) -> None:
    cursor = encode_cursor("jobs", edge)
    assert json.dumps(decode_cursor("jobs", cursor)) == json.dumps(edge)
    with pytest.raises(InputError):
        decode_cursor("tasks", cursor)


@bounded(250)
@given(some.none() | some.text('W/"*v1,\\ \t', max_size=40) | TEXTS, some.integers(1, 10**9))
@example('"v1", "v2"', 2)
@example('W/"v2"', 2)
@example('"' * 100_000, 1)
def test_a_tag_matches_when_it_stands_in_the_header_and_else_never(header: str | None, version: int) -> None:
    tag = etag(f"v{version}")
    if matches(header, tag):
        assert header is not None
        assert header.strip() == "*" or tag in header


@bounded(250)
@given(some.text(max_size=60) | some.from_regex(r"(localhost|127\.0\.0\.1|\[::1\]|evil\.example)[:@/?#.a-z0-9]{0,12}"))
@example("localhost@evil.example")
@example("[::1")
@example("localhost:99999999999")
def test_any_host_is_ours_or_refused(host: str) -> None:
    raw = [(b"host", host.encode("latin-1", "replace"))]
    require_ours(lambda: guarding.require_host(Headers(raw=raw), {"localhost"}))
    guarding.session_cookie(Headers(raw=[(b"cookie", host.encode("latin-1", "replace"))]))


# --- documents ---

_PARTS = some.dictionaries(some.sampled_from(["task", "ref", "text", "text_a", "text_b", "more"]), JSON, max_size=6)


@bounded(250)
@given(some.lists(_PARTS | JSON, max_size=4))
@example([{"task": "a", "text": "b", "text_a": "c"}])
@example([{"task": "a@b", "text": "c"}])
@example([{"task": "a", "ref": "\ud800", "text": "b"}])
@example([{"task": "a", "text": "\ud800"}])
def test_any_documents_are_requests_for_predictions_or_refused(documents: list[Any]) -> None:
    require_ours(lambda: parse_requests(documents))


URLS = TEXTS | some.from_regex(r"https?://[a-z0-9.@:\[\]%/?#_-]{0,40}", fullmatch=True)


@bounded(250)
@given(URLS, TEXTS)
@example("https://[::1", "whsec_")
@example("https://a:b@shop.example/", "")
@example("https://shop.example:0/", "whsec_AAAA")
@example("https://shop.example\\@evil.example/", "")
@example("https://shop.example/\ud800", "")
def test_any_url_of_a_webhook_is_an_allowed_host_or_refused(url: str, secret: str) -> None:
    def read() -> None:
        endpoint = Endpoint.parse(url, {"shop.example"})
        assert (endpoint.host, endpoint.https) == ("shop.example", True)

    require_ours(read)
    require_ours(lambda: Webhooks.parse(url, "shop.example", secret, insecure=False))


@bounded(150)
@given(some.dictionaries(some.sampled_from(["task", "dataset", "init", "shots", "seed", "options", "x"]), JSON))
def test_a_specification_is_written_and_read_alike(document: dict[str, Any]) -> None:
    spec = JobSpec(task="a", dataset="b", options={"given": document})
    assert json.dumps(JobSpec.from_json(json.loads(json.dumps(spec.to_json()))).to_json()) == json.dumps(spec.to_json())
