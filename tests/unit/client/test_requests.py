"""How the client asks: again where that does no harm, with its token; refusals are the errors of the commands."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from fake_service import Answer, FakeService, answer, problem, real_server, status
from support.refusals import refused

from onboard import errors
from onboard.bases import folder_digest
from onboard.client import Onboard
from onboard.client.answers import digest_of_file

QUEUED = {"job": "0" * 12, "task": "paws", "state": "queued"}
DONE = {**QUEUED, "state": "succeeded", "version": 1}
JOB = "/v1/jobs/" + "0" * 12


def cut(request: httpx.Request) -> httpx.Response:
    raise httpx.ReadError("cut off", request=request)


@pytest.mark.parametrize("trouble", [status(503), status(502), status(429), cut], ids=["503", "502", "429", "cut off"])
def test_what_may_be_asked_twice_is_asked_again(service: FakeService, tmp_path: Path, trouble: Answer) -> None:
    service.routes["GET", JOB] = answer(QUEUED)
    service.troubles = [trouble, trouble]
    assert service.client(tmp_path).job("0" * 12).state == "queued"
    assert len(service.requests) == 3


def test_a_refusal_by_a_quota_is_final_and_says_what_is_left(service: FakeService, tmp_path: Path) -> None:
    full = problem(429, "quota", "shop may have 1 queued and running jobs and has 1.", jobs_left=0)
    service.troubles = [lambda _: full]
    with pytest.raises(errors.QuotaError) as caught:
        service.client(tmp_path).retry("0" * 12)
    assert (caught.value.exit_code, caught.value.data["jobs_left"]) == (4, 0)
    assert len(service.requests) == 1


def test_attempts_come_to_an_end_and_pauses_grow_but_not_for_ever(service: FakeService, tmp_path: Path) -> None:
    pauses: list[float] = []
    service.troubles = [status(503)] * 10
    client = Onboard("https://service.test", attempts=9, transport=httpx.MockTransport(service), sleep=pauses.append)
    with pytest.raises(errors.UnavailableError):
        client.job("0" * 12)
    assert len(service.requests) == 9
    assert 0.1 <= pauses[0] <= 0.25
    assert max(pauses) <= 10.0
    assert pauses[-1] > 4.0


def test_the_pause_that_a_service_asks_for_is_kept(service: FakeService) -> None:
    pauses: list[float] = []
    service.routes["GET", JOB] = answer(QUEUED)
    service.troubles = [status(429, **{"Retry-After": "3"}), status(503, **{"Retry-After": "99999"})]
    client = Onboard("https://service.test", transport=httpx.MockTransport(service), sleep=pauses.append)
    client.job("0" * 12)
    assert pauses == [3.0, 10.0]


def test_a_change_is_not_sent_twice_when_it_may_have_arrived(service: FakeService, tmp_path: Path) -> None:
    service.troubles = [cut, cut]
    with refused("service-unreachable", reason="cut off"):
        service.client(tmp_path).cancel("0" * 12)
    assert len(service.requests) == 1


def test_a_change_that_never_left_is_sent_again(service: FakeService, tmp_path: Path) -> None:
    service.away = True
    with refused("service-unreachable", reason="refused"):
        service.client(tmp_path).cancel("0" * 12)
    assert len(service.requests) == 4


def test_a_submission_that_is_repeated_carries_the_same_key_and_the_whole_file(
    service: FakeService, tmp_path: Path
) -> None:
    data = tmp_path / "paws.jsonl"
    data.write_text('{"text": "x", "label": 1}\n' * 5000)
    service.troubles = [cut, status(503)]
    service.routes["POST", "/v1/jobs"] = answer(QUEUED, 202)
    service.client(tmp_path).submit(data, shots=32, text_field=["a", "b"], new_labels=True, init=None)
    keys = set()
    for request in service.requests:
        body = request.read()
        assert body.count(b'"label": 1') == 5000
        assert b'name="dataset"; filename="paws.jsonl"' in body
        assert b'name="shots"\r\n\r\n32\r\n' in body
        assert body.count(b'name="text_field"') == 2
        assert b'name="new_labels"\r\n\r\ntrue\r\n' in body
        assert b'name="init"' not in body
        keys.add(request.headers["idempotency-key"])
    assert len(service.requests) == 3
    assert len(keys) == 1
    assert len(keys.pop()) == 32


def test_texts_without_labels_are_sent_beside_the_dataset(service: FakeService, tmp_path: Path) -> None:
    service.routes["POST", "/v1/jobs"] = answer(QUEUED, 202)
    for name in ("rows.jsonl", "more.csv"):
        (tmp_path / name).write_text("text\nx\n", encoding="utf-8")
    service.client(tmp_path).submit(tmp_path / "rows.jsonl", "rows", unlabelled=tmp_path / "more.csv")
    (request,) = service.requests
    assert b'name="unlabelled"; filename="more.csv"' in request.read()
    with refused("upload-file-unreadable", file=str(tmp_path / "nothing.csv")):
        service.client(tmp_path).submit(tmp_path / "rows.jsonl", unlabelled=tmp_path / "nothing.csv")


def test_a_dataset_of_the_hub_is_named_and_read_by_the_service(service: FakeService, tmp_path: Path) -> None:
    service.routes["POST", "/v1/jobs"] = answer(QUEUED, 202)
    service.client(tmp_path).submit("hf://glue/rte", "rte")
    (request,) = service.requests
    assert request.headers["content-type"].startswith("multipart/form-data")
    assert b'name="dataset"\r\n\r\nhf://glue/rte\r\n' in request.read()


def test_a_file_that_is_missing_is_told_before_anything_is_sent(service: FakeService, tmp_path: Path) -> None:
    with refused("upload-file-unreadable", file=str(tmp_path / "nothing.jsonl")):
        service.client(tmp_path).submit(tmp_path / "nothing.jsonl")
    assert service.requests == []


def test_the_token_is_sent_and_never_follows_a_redirect(service: FakeService, tmp_path: Path) -> None:
    service.troubles = [status(302, Location="https://elsewhere.test/")]
    with pytest.raises(errors.UnavailableError):
        service.client(tmp_path).job("0" * 12)
    assert [request.url.host for request in service.requests] == ["service.test"]
    assert service.requests[0].headers["authorization"] == "Bearer secret"


def kinds(root: type[errors.OnboardError]) -> list[type[errors.OnboardError]]:
    return [kind for error in root.__subclasses__() for kind in (error, *kinds(error))]


@pytest.mark.parametrize("kind", kinds(errors.OnboardError))
def test_every_error_of_the_service_is_the_same_error_here(
    service: FakeService, tmp_path: Path, kind: type[errors.OnboardError]
) -> None:
    refusal = problem(kind.http_status, kind.code, "It is wrong.", remedy="mend it", row=3, self="x", message_="y")
    service.troubles = [lambda _: refusal] * 4
    with pytest.raises(errors.OnboardError) as caught:
        service.client(tmp_path).job("0" * 12)
    same = [
        other
        for other in kinds(errors.OnboardError)
        if (other.code, other.http_status) == (kind.code, kind.http_status)
    ]
    assert type(caught.value) is same[0], "kinds that only a worker tells apart come as the kind above them"
    assert issubclass(kind, same[0])
    assert caught.value.message == "It is wrong."
    assert caught.value.remedy.startswith("Set ONBOARD_TOKEN" if kind.http_status == 401 else "mend it")
    assert caught.value.data["row"] == 3


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (401, errors.NotAllowedError),
        (404, errors.NotFoundError),
        (412, errors.ConflictError),
        (422, errors.InputError),
        (500, errors.OnboardError),
        (504, errors.UnavailableError),
    ],
)
@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"{", b'{"code": "unheard-of"}'])
def test_an_answer_of_something_in_between_falls_back_to_its_status(
    service: FakeService, tmp_path: Path, code: int, kind: type[errors.OnboardError], body: bytes
) -> None:
    service.troubles = [lambda _: httpx.Response(code, content=body, headers={"Content-Type": "application/json"})] * 4
    with pytest.raises(kind, match=str(code)):
        service.client(tmp_path).job("0" * 12)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"nul"])
def test_a_page_that_is_no_document_means_that_the_url_is_wrong(
    service: FakeService, tmp_path: Path, body: bytes
) -> None:
    service.routes["GET", JOB] = lambda _: httpx.Response(200, content=body)
    with refused("answer-not-object" if body == b"[]" else "answer-not-json", place="service.test"):
        service.client(tmp_path).job("0" * 12)


@pytest.mark.parametrize(
    "url", ["", "onboard.test", "ftp://onboard.test", "http://", "file:///etc/passwd", "http://[::1"]
)
def test_what_is_no_url_of_a_service_is_refused(url: str) -> None:
    with pytest.raises(errors.InputError):
        Onboard(url)


@pytest.mark.parametrize(
    "url", ["http://onboard.test", "http://10.0.0.7:8000", "http://[2001:db8::1]", "HTTP://a.test"]
)
def test_plain_http_to_another_machine_needs_a_word(url: str, service: FakeService, tmp_path: Path) -> None:
    with refused("http-not-safe", url=url.lower()) as caught:
        Onboard(url, "onb_topsecret", cache=tmp_path)
    assert "ONBOARD_API_INSECURE=true" in caught.value.remedy
    service.routes["GET", JOB] = answer(QUEUED)
    transport = httpx.MockTransport(service)
    with Onboard(url, "onb_topsecret", cache=tmp_path, insecure=True, transport=transport) as client:
        assert client.job("0" * 12).state == "queued"


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "127.9.9.9:1", "[::1]:80", "api.localhost"])
def test_plain_http_to_this_machine_needs_none(host: str, tmp_path: Path) -> None:
    Onboard(f"http://{host}", "onb_topsecret", cache=tmp_path).close()


@pytest.mark.parametrize("token", ["two words", "a\r\nHost: b", "ä"])
def test_what_is_no_token_is_refused(token: str) -> None:
    with refused("token-characters-invalid"):
        Onboard("https://service.test", token)


def stream(*documents: dict[str, object]) -> Answer:
    text = ": alive\n\n" + "".join(f"id: {event['id']}\ndata: {json.dumps(event)}\n\n" for event in documents)
    return lambda _: httpx.Response(200, text=text, headers={"Content-Type": "text/event-stream"})


def event(number: int) -> dict[str, object]:
    return {"id": number, "kind": "note", "stage": "train", "message": f"step {number}"}


def test_waiting_follows_the_events_through_cuts_and_tells_each_once(service: FakeService, tmp_path: Path) -> None:
    service.troubles = [stream(event(1), event(2)), answer(QUEUED), cut, stream(event(3)), answer(DONE), answer(DONE)]
    seen: list[int] = []
    done = service.client(tmp_path).wait("0" * 12, on_event=lambda event: seen.append(event.id))
    assert (done.version, seen) == (1, [1, 2, 3])
    asked = [request.headers["last-event-id"] for request in service.requests if "last-event-id" in request.headers]
    assert asked == ["0", "2", "2"]


@pytest.mark.parametrize(("state", "kind"), [("failed", errors.JobFailedError), ("cancelled", errors.CancelledError)])
def test_waiting_for_a_job_that_does_not_succeed_raises(
    service: FakeService, tmp_path: Path, state: str, kind: type[errors.OnboardError]
) -> None:
    service.routes["GET", JOB] = answer({**QUEUED, "state": state, "error": {"message": "no memory"}})
    service.routes["GET", JOB + "/events"] = stream()
    with pytest.raises(kind, match="no memory"):
        service.client(tmp_path).wait("0" * 12)


def test_waiting_ends_when_its_time_is_over(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", JOB] = answer(QUEUED)
    service.routes["GET", JOB + "/events"] = stream()
    with refused("job-not-ended", timeout_seconds=0):
        service.client(tmp_path).wait("0" * 12, timeout_seconds=0)


def test_the_client_needs_neither_torch_nor_a_database() -> None:
    heavy = (
        "torch", "transformers", "sklearn", "scipy", "sqlalchemy", "alembic", "celery", "fastapi", "pyarrow", "pandas",
        "onboard.registry", "onboard.model", "onboard.data", "typer",
    )  # fmt: skip
    program = f"import sys, onboard.client; print(*[name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_redirection_says_where_to_and_is_not_obeyed(service: FakeService, tmp_path: Path) -> None:
    service.troubles = [status(301, Location="https://service.test/v1/jobs/x?token=secret")]
    with pytest.raises(errors.UnavailableError, match=r"https://service\.test") as caught:
        service.client(tmp_path).job("x")
    assert "secret" not in caught.value.message
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    "url", ["http://user:hush@service.test", "https://service.test/?key=hush", "http://a.test#hush"]
)
def test_a_url_that_holds_a_secret_is_refused_without_telling_it(url: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        Onboard(url)
    assert "hush" not in f"{caught.value.message} {caught.value.remedy}"


def test_the_token_is_in_no_message_and_no_representation(service: FakeService, tmp_path: Path) -> None:
    client = Onboard(
        "https://service.test", "onb_topsecret", cache=tmp_path, transport=httpx.MockTransport(service), attempts=1
    )
    shown = [repr(client), repr(vars(client)), repr(vars(client._connection)), repr(client._connection._client.headers)]
    refusal = {"code": "input", "detail": "It is wrong."}
    for trouble in (
        status(401),
        status(500),
        cut,
        answer(refusal, 422),
        lambda _: httpx.Response(200, content=b"<html>"),
    ):
        service.troubles = [trouble]
        with pytest.raises(errors.OnboardError) as caught:
            client.job("x")
        shown += ["".join(traceback.format_exception(caught.value)), json.dumps(caught.value.to_json(), default=str)]
    assert [text for text in shown if "topsecret" in text] == []
    assert service.requests[0].headers["authorization"] == "Bearer onb_topsecret"


def test_a_certificate_that_nobody_vouches_for_is_told_at_once(service: FakeService, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.pem"
    certificate.write_bytes(self_signed())
    pauses: list[float] = []
    with (
        real_server(service, certificate) as url,
        Onboard(url, "secret", cache=tmp_path, sleep=pauses.append) as client,
        refused("certificate-not-trusted", url=url) as caught,
    ):
        client.job("x")
    assert "SSL_CERT_FILE" in caught.value.remedy
    assert (pauses, service.requests) == ([], [])


def self_signed() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
    return built.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM) + key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )


def test_bytes_that_cannot_be_unpacked_are_an_answer_that_did_not_come(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", JOB] = answer(QUEUED)
    service.troubles = [lambda request: (_ for _ in ()).throw(httpx.DecodingError("no gzip", request=request))]
    assert service.client(tmp_path).job("0" * 12).state == "queued"


def test_a_wait_ends_in_time_though_only_signs_of_life_come(service: FakeService, tmp_path: Path) -> None:
    service.routes["GET", JOB] = answer(QUEUED)
    service.routes["GET", JOB + "/events"] = lambda _: httpx.Response(200, content=Endless())
    with refused("job-not-ended", timeout_seconds=0):
        service.client(tmp_path).wait("0" * 12, timeout_seconds=0)


class Endless(httpx.SyncByteStream):
    """A stream that keeps the line open and says nothing, as long as it is read."""

    def __iter__(self) -> Iterator[bytes]:
        for _ in range(1000):
            yield b": still there\n\n"
        raise AssertionError("nobody looked at the clock")


@pytest.mark.parametrize("name", ["../base.json", "/etc/passwd", "a/../../b", "..\\b", "", "b\0"])
def test_a_base_writes_nothing_outside_of_its_folder(service: FakeService, tmp_path: Path, name: str) -> None:
    digest = "sha256:" + "0" * 64
    service.routes["GET", f"/v1/bases/{digest}"] = answer({"files": [{"name": name, "digest": "sha256:0"}]})
    with pytest.raises(errors.DamagedError):
        service.client(tmp_path / "cache").base(digest, tmp_path / "bases" / "base")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_base_with_a_wrong_byte_is_not_kept(service: FakeService, tmp_path: Path) -> None:
    files = {"base.json": b"{}", "backbone/config.json": b"{ }"}
    whole = tmp_path / "whole"
    for name, content in files.items():
        (whole / name).parent.mkdir(parents=True, exist_ok=True)
        (whole / name).write_bytes(content)
    digest = folder_digest(whole)
    listed = [{"name": name, "digest": digest_of_file(content)} for name, content in files.items()]
    service.routes["GET", f"/v1/bases/{digest}"] = answer({"files": listed})
    for name, content in files.items():
        service.routes["GET", f"/v1/bases/{digest}/{name}"] = lambda _, content=content: httpx.Response(
            200, content=content
        )
    client = service.client(tmp_path / "cache")
    assert folder_digest(client.base(digest, tmp_path / "base")) == digest
    service.routes["GET", f"/v1/bases/{digest}/base.json"] = lambda _: httpx.Response(200, content=b"[]")
    with pytest.raises(errors.DamagedError):
        client.base(digest, tmp_path / "another")
    service.routes["GET", f"/v1/bases/{digest}"] = answer({"files": listed[1:]})
    with pytest.raises(errors.DamagedError):
        client.base(digest, tmp_path / "another")
    assert not (tmp_path / "another").exists()
    with pytest.raises(errors.ConflictError):
        client.base("sha256:" + "1" * 64, tmp_path / "base")
