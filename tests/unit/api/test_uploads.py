from __future__ import annotations

import asyncio
import gzip
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from support.full_disk import full
from support.refusals import refused as error_of

from onboard.api import uploads
from onboard.api.upload_places import Sender
from onboard.api.uploads import ReceivedUpload, received, safe_name
from onboard.data.limits import MAX_FILE_BYTES
from onboard.errors import InputError, StorageError, TooLargeError
from onboard.registry.services import Services

HEAD = b'--x\r\nContent-Disposition: form-data; name="dataset"; filename="a.jsonl"\r\n\r\n'
TAIL = b"\r\n--x--\r\n"


def take(folder: Path, *pieces: bytes, cut: bool = False, **headers: str) -> tuple[dict[str, list[str]], list[bytes]]:
    """Receive a body in pieces: its fields, and the bytes of its files. With `cut` the client goes away after them."""
    upload, files = arrive(folder, *pieces, cut=cut, **headers)
    return upload.fields, files


def arrive(folder: Path, *pieces: bytes, cut: bool = False, **headers: str) -> tuple[ReceivedUpload, list[bytes]]:
    """As `take`, with the whole upload."""
    messages: Iterator[dict[str, Any]] = iter(
        [
            {"type": "http.request", "body": piece, "more_body": cut or number < len(pieces)}
            for number, piece in enumerate(pieces, 1)
        ]
        + [{"type": "http.disconnect"}]
    )

    async def receive() -> dict[str, Any]:
        return next(messages)

    given = {"content-type": "multipart/form-data; boundary=x", **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()]
    request = Request({"type": "http", "method": "POST", "headers": raw}, receive)

    async def run() -> tuple[ReceivedUpload, list[bytes]]:
        async with received(request, folder, Sender(0.0)) as upload:
            return upload, [path.read_bytes() for path in upload.files.values()]

    return asyncio.run(run())


def test_a_file_and_fields_arrive_whatever_the_pieces(tmp_path: Path) -> None:
    body = HEAD + b"some rows" + b'\r\n--x\r\nContent-Disposition: form-data; name="task"\r\n\r\npaws' + TAIL
    for size in (1, 7, len(body)):
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        assert take(tmp_path, *pieces) == ({"task": ["paws"]}, [b"some rows"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("cut", [True, False])
def test_an_upload_that_is_cut_off_is_told_and_leaves_nothing(tmp_path: Path, cut: bool) -> None:
    with error_of("upload-cut-off"):
        take(tmp_path, HEAD, b"some ro", cut=cut)
    assert list(tmp_path.iterdir()) == []


def test_an_upload_that_says_it_is_too_large_is_not_even_read(tmp_path: Path) -> None:
    with pytest.raises(TooLargeError):
        take(tmp_path, content_length=str(uploads.MAX_UPLOAD_BYTES + 1))


def test_an_upload_that_does_not_say_so_is_stopped_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_UPLOAD_BYTES", 1000)
    with pytest.raises(TooLargeError):
        take(tmp_path, HEAD, *[b"x" * 100] * 20, TAIL)
    assert list(tmp_path.iterdir()) == []


def test_a_bomb_of_gzip_is_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(b'{"text": "a", "label": "b"}\n' * 1_000_000)
    with error_of("gzip-ratio-too-large", limit=100):
        take(tmp_path, HEAD, bomb, TAIL)
    assert list(tmp_path.iterdir()) == []


def test_a_bomb_in_many_members_is_refused(tmp_path: Path) -> None:
    member = gzip.compress(b"a" * (1 << 20))
    with error_of("gzip-ratio-too-large", limit=100):
        take(tmp_path, HEAD, member * 20, TAIL)


@pytest.mark.parametrize("zeros", [8, 200_000])
def test_a_bomb_behind_zeros_is_refused_as_readers_pass_over_them(tmp_path: Path, zeros: int) -> None:
    bomb = gzip.compress(b"") + bytes(zeros) + gzip.compress(bytes((zeros * 100) + (32 << 20)))
    with error_of("gzip-ratio-too-large", limit=100):
        take(tmp_path, HEAD, bomb, TAIL)


@pytest.mark.parametrize("between", [b"", bytes(8), bytes(200_000)])
def test_honest_gzip_is_measured_by_its_content(tmp_path: Path, between: bytes) -> None:
    content = gzip.compress(b"rows\n" * 1000) + between + gzip.compress(b"more") + between
    upload, _ = arrive(tmp_path, HEAD, content, TAIL)
    assert upload.content_bytes == len(gzip.decompress(content)) == 5004


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(gzip.compress(b"rows") + b"more rows", id="what follows is no gzip"),
        pytest.param(b"\x1f\x8b\x08\x20" + gzip.compress(b"rows")[4:], id="a flag that readers ignore"),
        pytest.param(gzip.compress(b"P") + gzip.compress(b"AR1 and so on"), id="Parquet in small members"),
        pytest.param(b"PAR1 and so on", id="Parquet"),
        pytest.param(b"ARROW1 and so on", id="an Arrow file"),
        pytest.param(b"\xff\xff\xff\xff and so on", id="an Arrow stream"),
        pytest.param(gzip.compress(b"\xff\xff\xff\xff and so on"), id="an Arrow stream in gzip"),
    ],
)
def test_what_cannot_be_measured_is_as_large_as_can_be(tmp_path: Path, content: bytes) -> None:
    assert arrive(tmp_path, HEAD, content, TAIL)[0].content_bytes == MAX_FILE_BYTES


def test_members_without_number_are_refused_and_those_of_bgzip_are_not(tmp_path: Path) -> None:
    empty = gzip.compress(b"")
    assert arrive(tmp_path, HEAD, empty * 16_384, TAIL)[0].content_bytes == 0
    with error_of("too-many-gzip-members") as caught:
        take(tmp_path, HEAD, empty * 20_001, TAIL)
    assert caught.value.data == {"field": "dataset", "limit": 20_000}


@pytest.mark.parametrize(
    ("given", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/cron.d/job.jsonl", "job.jsonl"),
        ("..", "upload"),
        ("", "upload"),
        ("a\x00b.jsonl", "a_b.jsonl"),
        ("‥∕paws.jsonl", "_paws.jsonl"),
        ("%2e%2e%2fpaws.csv.gz", "_2e_2e_2fpaws.csv.gz"),
        ("x" * 10_000 + ".jsonl", "x" * 94 + ".jsonl"),
    ],
)
def test_a_name_of_a_file_is_never_a_path(given: str, safe: str) -> None:
    assert safe_name(given) == safe


@given(st.text(max_size=300))
def test_whatever_a_file_is_called_it_lies_in_its_folder(name: str) -> None:
    safe = safe_name(name)
    assert safe
    assert not safe.startswith(".")
    assert Path("/folder", safe).resolve().parent == Path("/folder")
    assert len(safe) <= 100


def test_damaged_forms_are_input_errors(tmp_path: Path) -> None:
    for body in (
        b"--y\r\n\r\n",
        b"nothing",
        b"--x\r\nbroken\r\n\r\n",
        b"--x\r\nContent-Disposition: form-data\r\n\r\na" + TAIL,
    ):
        with pytest.raises(InputError):
            take(tmp_path, body)
    assert list(tmp_path.iterdir()) == []


def test_a_zip_is_refused_by_name_of_its_problem(door: TestClient) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("rows.jsonl", b"0" * 10_000_000)
    answer = door.post("/v1/jobs", files={"dataset": ("rows.jsonl", content.getvalue())})
    assert (answer.status_code, answer.json()["code"]) == (422, "dataset")
    assert answer.json()["problems"][0]["code"] == "binary"


def test_nothing_of_an_upload_is_left_after_the_answer(
    door: TestClient, app: FastAPI, tiny_services: Services, rows: bytes
) -> None:
    assert app.state.uploads.parent == tiny_services.settings.resolved_home / "uploads"
    assert door.post("/v1/check", files={"dataset": ("weather.jsonl", rows)}).status_code == 200
    assert list(app.state.uploads.iterdir()) == []


def test_a_disk_that_is_full_is_told_and_may_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert StorageError.retryable
    for module, name in ((Path, "open"), (uploads.tempfile, "mkdtemp")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, full)
            with error_of("upload-not-stored"):
                take(tmp_path, HEAD, b"some rows", TAIL)
    assert list(tmp_path.iterdir()) == []
