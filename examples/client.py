# ruff: noqa: T201 - an example prints
"""An example of a downstream service: fetch the latest embedding of a task, verify it, and request a prediction.

ONBOARD_API_URL=http://127.0.0.1:8000 ONBOARD_TOKEN=onb_… python examples/client.py sst2 "A joy to use."
"""

from __future__ import annotations

import os
import sys

from onboard.client import Onboard


def main(task: str, text: str) -> None:
    """Print the version that `latest` names for a task, and its answer to a text."""
    with Onboard(os.environ["ONBOARD_API_URL"], os.environ["ONBOARD_TOKEN"]) as service:
        embedding = service.embedding(task)  # verified by its digest, and cached in ~/.cache/onboard
        age = f"from the cache, {embedding.age_seconds:.0f} s old" if embedding.stale else "just confirmed"
        print(f"{embedding.reference}: {embedding.vector.size} numbers, {embedding.digest[:19]}…, {age}")
        print(
            f"only for hypernetwork v{embedding.pins.hypernetwork_version} of base {embedding.pins.base_digest[:19]}…"
        )
        (answer,) = service.predict([{"task": task, "ref": f"v{embedding.version}", "text": text}])
        print(f"{text!r} is {answer.label!r} ({answer.probability:.2f})")


if __name__ == "__main__":
    main(*sys.argv[1:])
