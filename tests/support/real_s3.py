"""A real S3-compatible server for tests: moto's, a process of its own on a free port."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from dataclasses import dataclass, replace
from typing import Any, Self

import boto3
from botocore.config import Config

from support.real_services import free_port, wait_until

_REGION = "us-east-1"
_KEYS = ("test", "test")  # moto takes any until it is told to look at them


@dataclass(frozen=True)
class Credentials:
    """What a client of the server has in its environment, and nothing of the machine's own."""

    endpoint: str
    key: str = _KEYS[0]
    secret: str = _KEYS[1]

    @property
    def environment(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": _REGION,
            "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def with_secret(self, secret: str) -> Credentials:
        return replace(self, secret=secret)


class S3Server:
    """A throw-away server that keeps everything in memory."""

    def __enter__(self) -> Self:
        self.port = free_port()
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, what="the S3 server")
        self.credentials = Credentials(f"http://127.0.0.1:{self.port}")
        return self

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()

    def client(self, service: str = "s3") -> Any:
        """A client that is not ours, to make buckets and to look into them."""
        return boto3.client(
            service,
            endpoint_url=self.credentials.endpoint,
            region_name=_REGION,
            aws_access_key_id=_KEYS[0],
            aws_secret_access_key=_KEYS[1],
            config=Config(s3={"addressing_style": "path"}),
        )

    def wipe(self) -> None:
        """Forget all buckets and users, and take any credentials again."""
        self._ask("/moto-api/reset", b"")
        self._ask("/moto-api/reset-auth", b"Infinity")

    def make_user(self, policy: str) -> Credentials:
        """A user who may do what `policy` (a JSON document) says; from now on all credentials are checked."""
        iam = self.client("iam")
        iam.create_user(UserName="onboard")
        iam.put_user_policy(UserName="onboard", PolicyName="artifacts", PolicyDocument=policy)
        made = iam.create_access_key(UserName="onboard")["AccessKey"]
        self._ask("/moto-api/reset-auth", b"0")
        return Credentials(self.credentials.endpoint, made["AccessKeyId"], made["SecretAccessKey"])

    def _ask(self, path: str, data: bytes) -> None:
        request = urllib.request.Request(
            self.credentials.endpoint + path, data, {"Content-Type": "application/octet-stream"}
        )
        urllib.request.urlopen(request, timeout=10).close()

    def _answers(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/moto-api/data.json", timeout=10).close()
        except OSError:
            return False
        return True
