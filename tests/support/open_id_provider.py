"""A real OpenID provider, in another process, over HTTP."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from support.real_services import free_port, wait_until


@contextmanager
def open_id_provider() -> Iterator[str]:
    """The URL of the provider."""
    port = free_port()
    command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "1"]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert running.poll() is None
        try:
            return httpx.get(f"{url}/.well-known/openid-configuration").is_success
        except httpx.TransportError:
            return False

    try:
        wait_until(answers, 60)
        yield url
    finally:
        running.terminate()
        running.wait(30)


def add_person(issuer: str, sub: str, **claims: object) -> None:
    """Let the provider know somebody."""
    httpx.put(f"{issuer}/users/{sub}", json=claims).raise_for_status()
