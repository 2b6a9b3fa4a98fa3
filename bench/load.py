"""A service that answers many tasks for minutes: is its memory flat, does it err, how long is the slowest answer?

    python -m bench.load --output bench/results/load.json --table bench/results/load.md

A real `onboard serve` on `mini` with 1,000 tasks. Clients ask one after another for one to eight texts of tasks drawn
by Zipf's law, some with labels left out or with every label's probability; tasks and embeddings are fetched between.
Its resident memory is read every second. Wanted: memory within 2% from the first quarter of the time on, no error, a
99th percentile of at most three medians.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from bench.harness.command import asked_sizes, command_line
from bench.harness.page import VERDICTS, made_on, met, table
from bench.harness.programs import resident
from bench.harness.report import made_by, report
from bench.harness.served_tasks import services_of, store_tasks
from bench.harness.server import Asker, serving
from bench.serve.drawing import drawn
from onboard.domain.access import ALL_SCOPES
from onboard.operations.access import create_token

WANTED_GROWTH: Final = 0.02
WANTED_SPREAD: Final = 3.0  # 99th percentile of medians
MOST_TEXTS: Final = 8  # of a request
_BETWEEN: Final = 10  # every so many predictions something else is fetched
_EARLY: Final = 0.25  # share of the time after which memory has to stay flat
_LABELS: Final = (("bad", "good"), ("no", "perhaps", "yes"), ("other", "same"), ("happy", "plain", "sad"))
_WORDS: Final = "a the film plot weather today was is good bad great dull rain sun very not long short it"


@dataclass(frozen=True)
class Sizes:
    """How much is asked."""

    minutes: float = 10.0
    tasks: int = 1_000
    clients: int = 4


@dataclass(frozen=True)
class Found:
    """The observations of the clients, and the server's memory.

    Args:
        seconds: of every prediction, by when it was asked.
        errors: how often which message came.
        resident: bytes, second by second.
    """

    seconds: list[tuple[float, float]]
    errors: Counter[str]
    resident: list[int]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results; 1 where a wish was not kept."""
    parser = command_line(__doc__)
    parser.add_argument("--base", default="mini", help="name or folder")
    asked, sizes = asked_sizes(parser, Sizes(), arguments)
    document = {**made_by("python -m bench.load"), "base": Path(asked.base).name, **asdict(sizes)}
    document |= figures(measure(asked.base, sizes))
    return report(document, asked, page)


def measure(base_name: str, sizes: Sizes) -> Found:
    """A server with tasks, asked by clients until the time is over."""
    from onboard.bases import find_base

    base = find_base(base_name)
    with tempfile.TemporaryDirectory(prefix="onboard-load-") as name:
        folder = Path(name)
        with closing(services_of(base, folder / "home", "cpu")) as services:
            names = store_tasks(services, base, sizes.tasks, _LABELS)
            token = create_token(services.database, "load", list(ALL_SCOPES))[1]
            with serving(services.settings, folder / "server.log") as server:
                return _asked(server.url, token, server.process.pid, names, sizes)


def _asked(url: str, token: str, pid: int, names: list[str], sizes: Sizes) -> Found:
    seen = Found([], Counter(), [])
    with closing(Asker(url, token)) as first:
        _predict(first, {"inputs": [{"task": names[0], "text": "a film"}]})  # the base is loaded by now
    end = time.monotonic() + 60 * sizes.minutes
    clients = [
        threading.Thread(target=_client, args=(url, token, requests(names, seed), seen, end))
        for seed in range(sizes.clients)
    ]
    for client in clients:
        client.start()
    process = psutil.Process(pid)
    while time.monotonic() < end:
        seen.resident.append(resident(process))
        time.sleep(1.0)
    for client in clients:
        client.join()
    return seen


def requests(names: list[str], seed: int) -> Iterator[dict[str, Any] | str]:
    """The request of a client: bodies of predictions, and addresses between them."""
    rng, tasks_of = random.Random(seed), np.random.default_rng(seed)
    while True:
        for _ in range(_BETWEEN):
            tasks = drawn("zipf", len(names), rng.randint(1, MOST_TEXTS), tasks_of).tolist()
            inputs = [_input(names[task], _LABELS[task % len(_LABELS)], rng) for task in tasks]
            yield {"inputs": inputs, "probabilities": rng.random() < 0.2}
        task = names[int(drawn("zipf", len(names), 1, tasks_of)[0])]
        yield rng.choice((f"/v1/tasks/{task}/embeddings/latest", f"/v1/tasks/{task}", "/v1/tasks?limit=20"))


def _input(task: str, labels: tuple[str, ...], rng: random.Random) -> dict[str, Any]:
    text = " ".join(rng.choices(_WORDS.split(), k=rng.randint(3, 40)))
    fewer = {"labels": list(labels[:2])} if len(labels) > 2 and rng.random() < 0.1 else {}
    return {"task": task, "text": text, **fewer}


def _client(url: str, token: str, asked: Iterator[dict[str, Any] | str], seen: Found, end: float) -> None:
    with closing(Asker(url, token)) as asker:
        for request in asked:
            started = time.monotonic()
            if started >= end:
                return
            try:
                if isinstance(request, str):
                    asker.ask(request)
                else:
                    _predict(asker, request)
            except (OSError, RuntimeError) as error:
                seen.errors[str(error)[:200]] += 1
            else:
                if isinstance(request, dict):
                    seen.seconds.append((started, time.monotonic() - started))


def _predict(asker: Asker, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(content))}
    answers = asker.post("/v1/predict", headers=headers, body=[content])["predictions"]
    wrong = [answer["error"] for answer in answers if "error" in answer]
    if wrong or len(answers) != len(body["inputs"]):
        raise RuntimeError(f"{len(answers)} answers to {len(body['inputs'])} texts; {wrong[:1]}")


def figures(seen: Found) -> dict[str, Any]:
    """The report."""
    seconds = [taken for _, taken in sorted(seen.seconds)]
    early = seen.resident[int(_EARLY * len(seen.resident)) :]
    growth = statistics.median(early[-10:]) / statistics.median(early[:10]) - 1
    p50, p99 = (1e3 * float(np.quantile(seconds, share)) for share in (0.5, 0.99))
    errors = sum(seen.errors.values())
    return {
        "predictions": len(seconds), "errors": errors, "what": dict(seen.errors.most_common(5)),
        "p50_milliseconds": round(p50, 2), "p99_milliseconds": round(p99, 2), "p99_of_p50": round(p99 / p50, 2),
        "growth": round(growth, 5), "resident_bytes_every_10_seconds": seen.resident[::10],
        "kept": growth <= WANTED_GROWTH and not errors and p99 <= WANTED_SPREAD * p50,
    }  # fmt: skip


def page(document: dict[str, Any]) -> str:
    """The figures for people, in Markdown."""
    spread, growth = document["p99_of_p50"], document["growth"]
    course = document["resident_bytes_every_10_seconds"]
    shown = course[:: max(len(course) // 10, 1)]
    parts = [(f"{100 * at / max(len(shown) - 1, 1):.0f}%", f"{size / 2**20:.1f}") for at, size in enumerate(shown)]
    times = f"{document['p50_milliseconds']:.0f} and {document['p99_milliseconds']:.0f} ms"
    lines = [
        "# Minutes of mixed load", "",
        f"One `onboard serve` on `{document['base']}` with {document['tasks']:,} tasks; {document['clients']} clients "
        f"ask one request after another for {document['minutes']:g} minutes: one to {MOST_TEXTS} texts of tasks drawn "
        "by Zipf's law, some with labels left out or with every label's probability; tasks and embeddings between.", "",
        f"{made_on(document)}. [Numbers](load.json).", "",
        *table(VERDICTS, [
            (f"memory within {WANTED_GROWTH:.0%} from the first quarter to the end", f"{growth:+.2%}",
             met(growth <= WANTED_GROWTH)),
            ("no error", f"{document['errors']} of {document['predictions']:,}", met(not document["errors"])),
            (f"99th percentile at most {WANTED_SPREAD:g} medians", f"{spread:.2f}: {times}",
             met(spread <= WANTED_SPREAD)),
        ]), "",
        *table("part of the time | resident MiB", parts),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
