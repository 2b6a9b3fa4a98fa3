"""Webhooks go to allowed hosts and public addresses only, and what was checked is what is connected to."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from support.refusals import refused
from support.webhook_receiver import receiving

from onboard.domain.webhook import Endpoint, Webhooks
from onboard.errors import InputError
from onboard.operations.webhooks import request
from onboard.operations.webhooks.addresses import checked_addresses, is_allowed
from onboard.operations.webhooks.request import post
from onboard.settings import Settings

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def resolving_to(*addresses: str) -> Callable[..., list[Any]]:
    return lambda *_asked, **_options: [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses
    ]


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1",
        "100.100.100.200", "168.63.129.16", "192.0.0.192", "224.0.0.1", "255.255.255.255", "198.18.0.1", "240.0.0.1",
        "::", "::1", "fe80::1", "fd00:ec2::254", "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1",
        "::7f00:1", "::a9fe:a9fe", "::ffff:0:7f00:1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::",
        "2001:db8::1", "fe80::1%1",
        "fec0::1", "feff::1", "3fff::1", "3fff:fff:ffff::1", "5f00::1", "4000::1", "192.0.0.8", "fd20:ce::254",
        "2606:4700::5efe:a9fe:a9fe", "2606:4700::200:5efe:10.0.0.1", "64:ff9b:1:a00:1::", "64:ff9b:1:ffff:a:9fe:a9fe::",
    ],
)  # fmt: skip
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_allowed(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "8.8.8.8", "2606:4700::1111", "64:ff9b::808:808"])
def test_a_public_address_is_allowed(address: str) -> None:
    assert is_allowed(address)


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd00:ec2::254%1",
        "fd20:ce::254",
        "fd00:42::42",
        "fe80::1",
        "0.0.0.0",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:a9:fe:a9fe::",
        "64:ff9b:1:0:a9:fea9:fe00:0",
        "2002:a9fe:a9fe::1",
        "2001:0:a9fe:a9fe::",
        "2001:0:8::5601:5601",
        "fc00::5efe:169.254.169.254",
        "::ffff:168.63.129.16",
        "64:ff9b::168.63.129.16",
        "::ffff:100.100.100.200",
    ],
)
def test_metadata_and_link_local_addresses_are_refused_even_in_tests(address: str) -> None:
    assert not is_allowed(address, insecure=True)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1", "fd12::1", "fec0::1", "64:ff9b:1::10.0.0.1"])
def test_private_addresses_are_allowed_in_tests(address: str) -> None:
    assert is_allowed(address, insecure=True)


def test_one_private_address_among_several_refuses_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", resolving_to("8.8.8.8", "169.254.169.254"))
    with refused("webhook-address-private"):
        checked_addresses("hooks.example.com", 443)


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1"])
def test_an_address_that_is_spelt_as_a_number_is_the_address(host: str) -> None:
    endpoint = Endpoint.parse(f"https://{host}/", {host})
    with refused("webhook-address-private"):
        checked_addresses(endpoint.host, endpoint.port)


def test_a_name_that_changes_its_mind_is_asked_once_only(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as receiver:
        asked = []
        answers = iter([resolving_to("127.0.0.1"), resolving_to("127.0.0.2")])
        original = socket.getaddrinfo

        def rebinding(host: str, *words: Any, **options: Any) -> Any:
            if host != "hooks.example.com":
                return original(host, *words, **options)
            asked.append(host)
            return next(answers)()

        monkeypatch.setattr(socket, "getaddrinfo", rebinding)
        url = f"http://hooks.example.com:{receiver.port}/x"
        post(Endpoint.parse(url, {"hooks.example.com"}, insecure=True), b"{}", {}, insecure=True)
        assert receiver.messages[0].headers["host"] == f"hooks.example.com:{receiver.port}"
        assert asked == ["hooks.example.com"]


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with receiving() as receiver:
        post(Endpoint.parse(receiver.url, {"127.0.0.1"}, insecure=True), b"{}", {"x-a": "b"}, insecure=True)
        (message,) = receiver.messages
        assert (message.path, message.headers["x-a"], message.body) == ("/hook?key=secret", "b", b"{}")


def test_a_redirect_is_a_failure_and_not_followed() -> None:
    with receiving() as receiver:
        receiver.status = 302
        endpoint = Endpoint.parse(receiver.url, {"127.0.0.1"}, insecure=True)
        with refused("webhook-refused", status=302):
            post(endpoint, b"{}", {}, insecure=True)
        receiver.status = 410
        with refused("webhook-gone"):
            post(endpoint, b"{}", {}, insecure=True)
        assert len(receiver.messages) == 2


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_endpoint_that_never_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    monkeypatch.setattr(request, "REQUEST_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and says nothing, not even of TLS
        endpoint = Endpoint.parse(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}/", {"127.0.0.1"}, insecure=True)
        with refused("webhook-unanswered"):
            post(endpoint, b"{}", {}, insecure=True)


@pytest.mark.parametrize(
    "beginning", [b"", b"HTTP/1.1 ", b"HTTP/1.1 204 No Content\r\nx-a: ", b"HTTP/1.1 100 Go on\r\n"]
)
def test_an_endpoint_that_answers_byte_by_byte_is_cut_off(monkeypatch: pytest.MonkeyPatch, beginning: bytes) -> None:
    """Every byte comes long before a socket's own timeout, which begins anew with each."""
    monkeypatch.setattr(request, "REQUEST_SECONDS", 0.3)
    with dripping(beginning) as (port, left):
        endpoint = Endpoint.parse(f"http://127.0.0.1:{port}/", {"127.0.0.1"}, insecure=True)
        with refused("webhook-unanswered"):
            post(endpoint, b"{}", {}, insecure=True)
        assert left.wait(30)  # and the connection is closed


def test_an_endless_body_is_not_read() -> None:
    with dripping(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n") as (port, left):
        post(Endpoint.parse(f"http://127.0.0.1:{port}/", {"127.0.0.1"}, insecure=True), b"{}", {}, insecure=True)
        assert left.wait(30)


@contextmanager
def dripping(beginning: bytes, tls: ssl.SSLContext | None = None) -> Iterator[tuple[int, threading.Event]]:
    """A server that says so much, and then a letter now and then; the event tells that nobody listens any more."""
    left, over = threading.Event(), threading.Event()

    def serve(server: socket.socket) -> None:
        accepted = server.accept()[0]
        with accepted if tls is None else tls.wrap_socket(accepted, server_side=True) as connection:
            connection.sendall(beginning)
            for _ in range(1000):
                if over.wait(0.01):
                    return
                try:
                    connection.sendall(b"a")
                except OSError:
                    left.set()
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        try:
            yield server.getsockname()[1], left
        finally:
            over.set()
            thread.join()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for hooks.example.com that was signed by nobody but itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "hooks.example.com")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("hooks.example.com")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.write_bytes(plain + made.public_bytes(Encoding.PEM))
    return file


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """What a server on this machine needs to be hooks.example.com; every name leads here."""
    original = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _host, *words, **more: original("127.0.0.1", *words, **more))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    return tls


def test_an_endpoint_that_answers_byte_by_byte_over_tls_is_cut_off(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "REQUEST_SECONDS", 0.3)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with dripping(b"HTTP/1.1 ", tls) as (port, left):
        endpoint = Endpoint.parse(f"https://hooks.example.com:{port}/", {"hooks.example.com"})
        with refused("webhook-unanswered"):
            post(endpoint, b"{}", {}, insecure=True)
        assert left.wait(30)


def test_a_certificate_must_be_trusted_and_of_that_name(
    tls: ssl.SSLContext, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving(tls) as receiver:
        right, wrong = (
            Endpoint.parse(f"https://{host}:{receiver.port}/x", {host}) for host in ("hooks.example.com", "example.com")
        )
        with refused("webhook-unanswered"):
            post(right, b"{}", {}, insecure=True)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        with refused("webhook-unanswered"):
            post(wrong, b"{}", {}, insecure=True)
        assert receiver.messages == []
        post(right, b"{}", {}, insecure=True)
        assert [message.headers["host"] for message in receiver.messages] == [f"hooks.example.com:{receiver.port}"]


@pytest.mark.parametrize(
    ("url", "types"),
    [
        ("http://hooks.example.com/", "webhook-not-https"),
        ("file:///etc/passwd", "webhook-url-wrong"),
        ("https://other.example.com/", "webhook-host-not-allowed"),
        ("https://hooks.example.com.evil.org/", "webhook-host-not-allowed"),
        ("https://hooks.example.com@evil.org/", "webhook-url-wrong"),
        ("https://hooks.example.com\\@evil.org/", "webhook-url-wrong webhook-host-not-allowed"),
        ("https://hooks.example.com:99999/", "webhook-url-invalid"),
        ("https://[::1/", "webhook-url-invalid"),
        ("https://hooks.examplе.com/", "webhook-url-wrong"),
        ("https://", "webhook-url-wrong"),
    ],
)
def test_a_url_that_may_not_be_told_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, url: str, types: str
) -> None:
    monkeypatch.setenv("ONBOARD_WEBHOOK_URLS", url)
    monkeypatch.setenv("ONBOARD_WEBHOOK_HOSTS", "hooks.example.com")
    monkeypatch.setenv("ONBOARD_WEBHOOK_SECRET", SECRET)
    with pytest.raises(InputError) as caught:
        Settings()
    assert caught.value.type in types.split()


def test_settings_of_webhooks_are_read_and_show_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONBOARD_WEBHOOK_URLS", "https://a.example.com/hook?key=hidden https://B.example.com:8443")
    monkeypatch.setenv("ONBOARD_WEBHOOK_HOSTS", "a.example.com b.EXAMPLE.com")
    monkeypatch.setenv("ONBOARD_WEBHOOK_SECRET", f"{SECRET} {SECRET[:-1]}A")
    webhooks = Settings().webhooks
    assert [(endpoint.host, endpoint.port, endpoint.target) for endpoint in webhooks.endpoints] == [
        ("a.example.com", 443, "/hook?key=hidden"),
        ("b.example.com", 8443, "/"),
    ]
    assert len(webhooks.keys) == 2
    assert "hidden" not in repr(webhooks)
    assert webhooks.endpoints[0].name.startswith("a.example.com/")


@pytest.mark.parametrize(
    "secret", ["", "secret", "whsec_", "whsec_c2hvcnQ=", "whsec_???", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
)
def test_a_secret_that_is_none_is_refused_with_the_command_that_makes_one(secret: str) -> None:
    with pytest.raises(InputError) as caught:
        Webhooks.parse("https://a.example.com/", "a.example.com", secret, insecure=False)
    assert "openssl rand" in caught.value.remedy


def test_a_switch_that_is_neither_true_nor_false_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONBOARD_WEBHOOK_INSECURE", "perhaps")
    with refused("setting-not-boolean", setting="WEBHOOK_INSECURE"):
        Settings()
    monkeypatch.setenv("ONBOARD_WEBHOOK_INSECURE", "")
    assert Settings().webhook_insecure is False


@pytest.mark.parametrize("between", [",", ", ", ";", "|"])
def test_several_urls_or_hosts_in_one_entry_are_refused(between: str) -> None:
    urls = between.join(["https://a.example.com/x", "https://b.example.com/y"])
    with refused("webhook-urls-not-separated"):
        Webhooks.parse(urls, "a.example.com b.example.com", SECRET, insecure=False)
    hosts = between.join(["a.example.com", "b.example.com"])
    with refused("webhook-hosts-not-separated"):
        Webhooks.parse("https://a.example.com/x", hosts, SECRET, insecure=False)


def test_a_comma_within_a_url_is_part_of_it() -> None:
    url = "https://a.example.com/x,y?to=1;2&next=https://b.example.com"
    (endpoint,) = Webhooks.parse(url, "a.example.com", SECRET, insecure=False).endpoints
    assert endpoint.target == "/x,y?to=1;2&next=https://b.example.com"
