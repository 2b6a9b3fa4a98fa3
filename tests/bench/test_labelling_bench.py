"""The bench of orders: texts are labeled round by round, and the page says which order is ahead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.labelling.orders import Pool, taken
from bench.labelling.page import page
from bench.labelling.plan import ORDERS, RANDOM, ROUND, SHIPPED, SHOWN
from bench.labelling.walk import Texts, accuracies


@pytest.fixture(scope="module")
def texts() -> Texts:
    """120 texts of three kinds, far apart, and labels whose words say nothing."""
    draw = np.random.default_rng(0)
    middles = 3 * draw.normal(size=(3, 12))
    truth = draw.integers(3, size=120)
    features = (middles[truth] + draw.normal(size=(120, 12))).astype(np.float32)
    names = draw.normal(size=(3, 12)).astype(np.float32)
    return Texts(features, truth, features[:40], truth[:40], names)


@pytest.mark.parametrize("order", ORDERS)
def test_labels_make_answers_right_in_every_order(texts: Texts, order: str) -> None:
    found = accuracies(texts, order, None, 0)
    assert tuple(found) == SHOWN
    assert found[SHOWN[-1]] > 90 > found[0]


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_takes_texts_that_have_no_label_once(texts: Texts, order: str) -> None:
    answers = np.random.default_rng(1).dirichlet(np.ones(3), size=120)
    pool = Pool(texts.pool, answers, [0, 1, 2], np.random.default_rng(2))
    chosen = taken(order, pool, ROUND)
    assert len(set(chosen)) == len(chosen) == ROUND
    assert not {0, 1, 2} & set(chosen)


def test_the_page_compares_every_order_with_random_and_names_the_best() -> None:
    def run(order: str, task: str, draw: int) -> dict[str, Any]:
        right = {str(count): 50.0 + count / 10 + (2 if order == SHIPPED else 0) for count in SHOWN}
        return {"task": task, "labels": 3, "draw": draw, "order": order, **right}

    runs = [run(order, task, draw) for order in (RANDOM, SHIPPED) for task in ("a", "b") for draw in (0, 1)]
    machine = {"cores": 2, "processor": "a processor"}
    written = page(
        {"command": "python -m bench.labelling", "machine": machine, "base": "mini", "seconds": 9, "runs": runs}
    )
    assert "It has the highest mean" in written
    assert "measurably" not in written
    assert "+2.0 (+2.0 to +2.0)" in written
    for one in runs:
        if one["order"] == SHIPPED:
            one.update({str(count): 40.0 for count in SHOWN})
    document = {"command": "python -m bench.labelling", "machine": machine, "base": "mini", "seconds": 9, "runs": runs}
    assert f"another one: {ORDERS[RANDOM]}" in page(document)
