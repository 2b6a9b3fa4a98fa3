"""The frame of a small hub on this machine; what it takes and gives is each test module's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

from support.small_server import SilentHandler, serving

COMMIT: Final = "0123456789abcdef0123456789abcdef01234567"


class HubHandler(SilentHandler):
    """Answers in the hub's place."""

    def send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def hub_of(handler: type[HubHandler], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address at which it answers meanwhile; the hub's library may ask it."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    with serving(handler) as server:
        yield f"http://127.0.0.1:{server.server_port}"
