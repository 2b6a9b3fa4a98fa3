"""nginx before a server on this machine: over plain HTTP and TLS, at the top and below a path."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Template
from typing import Final

import pytest

from support.real_services import free_port, wait_until

NAME: Final = "onboard.example"
_PROGRAM: Final = shutil.which("nginx") or "/usr/sbin/nginx"  # where Debian has it, outside the PATH of users
_DAYS: Final = "2"
_CONFIG: Final = Template("""
daemon off; worker_processes 1; pid $folder/pid; error_log $folder/error.log;
events {}
http {
  access_log off;
  client_body_temp_path $folder/body; proxy_temp_path $folder/proxy; fastcgi_temp_path $folder/fastcgi;
  uwsgi_temp_path $folder/uwsgi; scgi_temp_path $folder/scgi;
  server {
    listen 127.0.0.1:$plain; listen 127.0.0.1:$tls ssl;
    server_name $name;
    ssl_certificate $folder/cert.pem; ssl_certificate_key $folder/key.pem;
    location $root/ {
      proxy_pass http://127.0.0.1:$upstream$passed;
      proxy_http_version 1.1;
      proxy_set_header Host $$http_host;
      proxy_set_header X-Forwarded-For $$remote_addr;
      proxy_set_header X-Forwarded-Proto $$scheme;
      proxy_request_buffering off;
      proxy_buffering off;
      client_max_body_size 1100m;
    }
  }
}
""")


def require() -> None:
    """A missing nginx skips on a laptop and fails in CI."""
    if Path(_PROGRAM).exists() and shutil.which("openssl"):
        return
    if os.environ.get("CI") == "true":
        pytest.fail("nginx or openssl is not installed, and CI=true")
    pytest.skip("nginx or openssl is not installed (apt-get install nginx-light openssl)")


@contextmanager
def proxied(folder: Path, upstream: int, root: str = "", *, cuts: bool = False) -> Iterator[tuple[str, str]]:
    """The addresses over HTTP and HTTPS at which nginx offers the server.

    Args:
        folder: for its files.
        upstream: the server's port; it may start later.
        root: the path below which it is offered.
        cuts: whether nginx takes that path off.
    """
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", _DAYS, "-subj", f"/CN={NAME}",
         "-addext", f"subjectAltName=DNS:{NAME}"],
        check=True, capture_output=True,
    )  # fmt: skip
    plain, tls = free_port(), free_port()
    config = folder / "nginx.conf"
    config.write_text(
        _CONFIG.substitute(
            folder=folder, name=NAME, plain=plain, tls=tls, root=root, upstream=upstream, passed="/" if cuts else ""
        )
    )
    serving = subprocess.Popen([_PROGRAM, "-c", config, "-p", folder], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _answers(plain) and _answers(tls), 30)
        yield f"http://{NAME}:{plain}{root}", f"https://{NAME}:{tls}{root}"
    finally:
        serving.terminate()
        serving.wait(30)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
