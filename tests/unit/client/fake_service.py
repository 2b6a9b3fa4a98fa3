"""A service behind httpx.MockTransport: versions with ETags, jobs, problems; it counts what it is asked."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from support.small_server import SilentHandler, serving

from onboard.client import Onboard
from onboard.client.answers import digest_of_file
from onboard.storage.embedding import embedding_digest, pack_embedding, unpack_embedding

Answer = Callable[[httpx.Request], httpx.Response]


def packed(task: str, version: int, seed: int = 0) -> bytes:
    facts = {
        "task": task, "version": version, "kind": "classification", "low": None, "high": None, "backbone": "sha256:b",
        "base": "sha256:a", "hypernetwork_version": 1, "hypernetwork": "sha256:h", "labels": [0, 1],
        "words": ["no", "yes"], "dataset": "sha256:d", "metrics": {"test": {}}, "weak": False, "init": "random",
        "seeds": [0], "onboard": "1",
    }  # fmt: skip
    return pack_embedding(np.random.default_rng(seed + version).standard_normal(8).astype(np.float32), facts)


class FakeService:
    """Answers with what is put into `versions` and `aliases`; while `troubles` has answers, with those first."""

    def __init__(self) -> None:
        self.versions: dict[tuple[str, int], bytes] = {}
        self.aliases: dict[tuple[str, str], int] = {}
        self.troubles: list[Answer] = []
        self.away = False
        self.requests: list[httpx.Request] = []
        self.routes: dict[tuple[str, str], Answer] = {}

    def add(self, task: str, version: int, alias: str = "latest") -> bytes:
        content = packed(task, version)
        self.versions[task, version] = content
        self.aliases[task, alias] = version
        return content

    def client(self, folder: Path, **options: Any) -> Onboard:
        return Onboard(
            "https://service.test/", "secret", cache=folder, transport=httpx.MockTransport(self), sleep=lambda _: None,
            **options,
        )  # fmt: skip

    def asked(self, method: str = "GET") -> list[str]:
        return [request.url.path for request in self.requests if request.method == method]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.away:
            raise httpx.ConnectError("refused", request=request)
        if self.troubles:
            return self.troubles.pop(0)(request)
        if (request.method, request.url.path) in self.routes:
            return self.routes[request.method, request.url.path](request)
        parts = request.url.path.split("/")[1:]
        if parts[:2] == ["v1", "embeddings"]:
            return self._listing(request)
        if parts[3:4] == ["embeddings"]:
            return self._embedding(request, parts[2], parts[4].removesuffix(".safetensors"))
        return problem(404, "not_found", "There is nothing.")

    def _embedding(self, request: httpx.Request, task: str, ref: str) -> httpx.Response:
        number = self.aliases.get((task, ref), int(ref[1:]) if ref[1:].isdecimal() else 0)
        if (task, number) not in self.versions:
            return problem(404, "not_found", f"There is no {task}@{ref}.")
        content = self.versions[task, number]
        return _with_etag(request, content, digest_of_file(content))

    def _listing(self, request: httpx.Request) -> httpx.Response:
        latest = [(task, number) for (task, alias), number in sorted(self.aliases.items()) if alias == "latest"]
        listed = [
            _listed(task, number, self.versions[task, number], request.url.params.get("files") == "true")
            for task, number in latest
        ]
        content = json.dumps({"embeddings": listed}).encode()
        return _with_etag(request, content, digest_of_file(content))


def _listed(task: str, number: int, content: bytes, with_file: bool) -> dict[str, Any]:
    return {
        "task": task,
        "version": number,
        "embedding_digest": embedding_digest(unpack_embedding(content)),
        "artifact": digest_of_file(content),
        "file": base64.b64encode(content).decode() if with_file else None,
    }


def _with_etag(request: httpx.Request, content: bytes, digest: str) -> httpx.Response:
    etag = f'"{digest}"'
    if request.headers.get("if-none-match") == etag:
        return httpx.Response(304, headers={"ETag": etag})
    return httpx.Response(200, content=content, headers={"ETag": etag})


def problem(status: int, code: str, detail: str, **more: Any) -> httpx.Response:
    document = {"type": "about:blank", "title": "…", "status": status, "detail": detail, "code": code, **more}
    return httpx.Response(status, json=document, headers={"Content-Type": "application/problem+json"})


def status(code: int, **headers: str) -> Answer:
    return lambda _: httpx.Response(code, headers=headers)


def answer(document: dict[str, Any], code: int = 200) -> Answer:
    return lambda _: httpx.Response(code, json=document)


@contextmanager
def real_server(service: FakeService, certificate: Path | None = None) -> Iterator[str]:
    """The same behind a real socket, with TLS where a certificate (with its key) is given; gives the URL."""

    class Handler(SilentHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            request = httpx.Request("GET", f"https://service.test{self.path}", headers=dict(self.headers))
            response = service(request)
            self.send_response(response.status_code)
            for name, value in response.headers.items():
                if name != "content-length":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(response.content)))
            self.end_headers()
            self.wfile.write(response.content)

    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    with serving(Handler, context) as server:
        yield f"http{'' if certificate is None else 's'}://127.0.0.1:{server.server_port}"
