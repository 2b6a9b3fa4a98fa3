"""Whether Compacter's adapters are computed faster without ever making their matrices, or with them.

    python -m bench.kronecker --rounds 30            T5-base's and T5-small's widths on the CPU, float32

One task's adapters of a whole stack, down and up at every place, over the tokens of a batch: once with D and U made of
A and the fast weights, all of a stack in one operation as the hooks do it; once by `kronecker_product`, which makes
none of them. Answering is the forward pass, training forward and backward to the input and to every parameter. Both are
taken in turn, in a new order each round, so that a disturbance of the machine meets both alike; what counts are their
ratios. Both are first held against one another.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from bench.harness.command import command_line
from bench.harness.in_turn import seconds_in_turn
from bench.harness.page import made_on, table
from bench.harness.report import made_by, report

WARM_UP: Final = 2  # steps of each way before those that are counted
CLEAR: Final = 0.9  # of the time: anything faster than that in every setup is faster


@dataclass(frozen=True)
class Setup:
    """A stack and a batch: h, b, n, places with an adapter, and rows times tokens."""

    d_model: int
    bottleneck: int
    n: int
    places: int
    rows: int
    tokens: int


SETUPS: Final = {
    "T5-base, n = 4": Setup(768, 24, 4, 24, 16, 64),
    "T5-base, n = 12": Setup(768, 24, 12, 24, 16, 64),
    "T5-small, n = 4": Setup(512, 16, 4, 12, 16, 64),
    "T5-small, n = 4, one row": Setup(512, 16, 4, 12, 1, 64),
}
TINY: Final = {"tiny": Setup(16, 4, 2, 2, 2, 3)}  # for the test of this file


def tensors(setup: Setup) -> tuple[Any, dict[str, Any]]:
    """The input (rows, tokens, h), and A and the fast weights of all places; all require a gradient."""
    import torch

    torch.manual_seed(0)
    n, wide, narrow, places = setup.n, setup.d_model // setup.n, setup.bottleneck // setup.n, setup.places
    shapes = {
        "rule": (n, n, n),
        "down_left": (places, n, wide, 1), "down_right": (places, n, 1, narrow),
        "up_left": (places, n, narrow, 1), "up_right": (places, n, 1, wide),
    }  # fmt: skip
    weights = {
        name: (torch.randn(shape) * (0.05 if name == "rule" else 0.5)).requires_grad_(
            True
        )  # the sum stays of the size of x
        for name, shape in shapes.items()
    }
    return torch.randn(setup.rows, setup.tokens, setup.d_model, requires_grad=True), weights


def made(x: Any, weights: Mapping[str, Any]) -> Any:
    """All places one after the other, with D and U made for all of them before."""
    from torch.nn import functional

    from onboard.model.kronecker import kronecker_sum

    downs = kronecker_sum(weights["rule"], weights["down_left"] @ weights["down_right"]).mT.unbind(0)
    ups = kronecker_sum(weights["rule"], weights["up_left"] @ weights["up_right"]).mT.unbind(0)
    for down, up in zip(downs, ups, strict=True):
        x = x + functional.linear(functional.gelu(functional.linear(x, down), approximate="tanh"), up)
    return x


def unmade(x: Any, weights: Mapping[str, Any]) -> Any:
    """The same without any of these matrices."""
    from torch.nn import functional

    from bench.harness.kronecker_product import kronecker_product

    factors = [weights[name].unbind(0) for name in ("down_left", "down_right", "up_left", "up_right")]
    for down_left, down_right, up_left, up_right in zip(*factors, strict=True):
        inner = functional.gelu(kronecker_product(x, weights["rule"], down_left, down_right), approximate="tanh")
        x = x + kronecker_product(inner, weights["rule"], up_left, up_right)
    return x


WAYS: Final = {"made": made, "unmade": unmade}


def answering(way: Callable[..., Any], x: Any, weights: Mapping[str, Any]) -> Any:
    """A forward pass."""
    import torch

    with torch.inference_mode():
        return way(x, weights)


def training(way: Callable[..., Any], x: Any, weights: Mapping[str, Any]) -> Any:
    """Forward and backward, to the input and to every parameter."""
    import torch

    return torch.autograd.grad(way(x, weights).square().mean(), [x, *weights.values()])


PASSES: Final = {"answering": answering, "training": training}


def agree(setup: Setup) -> None:
    """Raise AssertionError unless both ways give the same and have the same gradients."""
    import torch

    x, weights = tensors(setup)
    torch.testing.assert_close(unmade(x, weights), made(x, weights), rtol=1e-3, atol=1e-3)
    for ours, reference in zip(training(unmade, x, weights), training(made, x, weights), strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-3, atol=1e-3)


def measure(setup: Setup, rounds: int) -> dict[str, Any]:
    """Both ways of a setup, both passes: milliseconds, and how much of the time of `made` the other takes."""
    agree(setup)
    x, weights = tensors(setup)
    passes: dict[str, Any] = {}
    for name, one in PASSES.items():
        steps = {way: partial(one, function, x, weights) for way, function in WAYS.items()}
        seconds = seconds_in_turn(steps, rounds, WARM_UP)
        ratios = [ours / other for ours, other in zip(seconds["unmade"], seconds["made"], strict=True)]
        passes[name] = {
            "made_milliseconds": round(1e3 * statistics.median(seconds["made"]), 3),
            "unmade_milliseconds": round(1e3 * statistics.median(seconds["unmade"]), 3),
            "unmade_to_made": round(statistics.median(ratios), 3),
            "unmade_to_made_of_minima": round(min(seconds["unmade"]) / min(seconds["made"]), 3),
        }
    return {"setup": asdict(setup), **passes}


def verdict(rows: Sequence[Mapping[str, Any]]) -> str:
    """Which way is clearly faster: in every setup and both passes, by a tenth of the time at least."""
    ratios = [row[name]["unmade_to_made"] for row in rows for name in PASSES]
    if max(ratios) < CLEAR:
        return "the product that makes no matrix is faster everywhere"
    if min(ratios) > 1 / CLEAR:
        return "the product with the matrix is faster everywhere"
    return "neither is faster everywhere"


def page(document: dict[str, Any]) -> str:
    """The page of the results."""
    rows = [
        (name, word, one["made_milliseconds"], one["unmade_milliseconds"], one["unmade_to_made"])
        for name, row in document["setups"].items()
        for word in PASSES
        for one in (row[word],)
    ]
    head = "adapters of one stack | pass | with the matrices, ms | without, ms | without / with"
    lines = ["# Sums of Kronecker products", "", f"{made_on(document)}: {document['verdict']}.", "", *table(head, rows)]
    return "\n".join(
        [*lines, "", "Medians; the ratio is the median of the ratios of steps that were taken in turn.", ""]
    )


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, and write the results."""
    parser = command_line(__doc__, "kronecker")
    parser.add_argument("--rounds", type=int, default=30, help="steps of each way that are counted")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)

    import torch

    torch.set_num_threads(asked.threads)
    setups = {name: measure(setup, asked.rounds) for name, setup in (TINY if asked.tiny else SETUPS).items()}
    command = f"python -m bench.kronecker --rounds {asked.rounds} --threads {asked.threads}"
    document = {**made_by(command), "verdict": verdict([*setups.values()]), "setups": setups}
    return report(document, asked, page)


if __name__ == "__main__":
    sys.exit(main())
