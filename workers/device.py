"""Check in a separate process whether a worker's device exists: a worker's parent never loads torch."""

from __future__ import annotations

import json
import subprocess
import sys

from onboard.domain.names import require_device_name
from onboard.errors import InputError, OnboardError, UnavailableError


def require_device(device: str) -> None:
    """Nothing is asked of `auto` and `cpu`, which every machine has.

    Raises:
        InputError: not the name of a device.
        UnavailableError: this machine, or its torch, has no such device.
    """
    require_device_name(device)
    if not device.startswith("cuda"):
        return
    asked = [sys.executable, "-m", "workers.device", device]
    done = subprocess.run(asked, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == InputError.exit_code:
        raise InputError.reported(*json.loads(done.stdout))
    if done.returncode == UnavailableError.exit_code:
        raise UnavailableError.reported(*json.loads(done.stdout))


def main(device: str) -> int:
    """Look for the device; where it is missing, the error goes to standard output."""
    from onboard.bases.load import resolve_device

    try:
        resolve_device(device)
    except OnboardError as error:
        sys.stdout.write(json.dumps([error.type, error.message, error.remedy, error.data]))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
