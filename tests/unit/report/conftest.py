from typing import Any

import pytest


def metric(value: float, low: float | None, high: float | None, n: int = 30, **more: Any) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "n": n, **more}


@pytest.fixture
def document() -> dict[str, Any]:
    """A succeeded job with every key that there is."""
    labels = ["billing", "cancel", "delivery"]
    return {
        "job": "3f9a1c0be77d",
        "state": "succeeded",
        "task": "tickets",
        "version": 3,
        "embedding_digest": "sha256:5b0e7a1f2c",
        "hypernetwork_version": 1,
        "init": {
            "chosen": "trec@v1",
            "rows": 60,
            "overlap": 4,
            "reason": None,
            "candidates": [
                {"embedding": "random", "loss": 1.62, "low": 1.6, "high": 1.64},
                {
                    "embedding": "trec@v1",
                    "loss": 1.213,
                    "low": 1.05,
                    "high": 1.38,
                    "words": ["money", "human", "place"],
                    "round": 2,
                    "tuned": 1.105,
                    "accuracy": 0.31,
                },
            ],
        },
        "metric": "accuracy",
        "validation_kind": "held-out",
        "metrics": {
            "validation": None,
            "test": {
                "accuracy": metric(0.8125, 0.73, 0.87),
                "macro_f1": metric(0.79, 0.7, 0.86),
                "log_loss": metric(0.62, 0.45, 0.79),
            },
        },
        "baselines": {
            "test": {
                "majority": {"accuracy": metric(0.2, 0.1, 0.37), "mcc": metric(0.0, None, None, note="undefined")},
                "tfidf_logistic_regression": {"accuracy": metric(0.66, 0.48, 0.8)},
            }
        },
        "weak": False,
        "latest": {"alias": "latest", "moved": True, "reason": "first version"},
        "guard": {
            "verdict": "accepted",
            "tasks": [
                {"task": "sst2", "verdict": "unharmed", "increase": 0.001, "low": -0.002, "high": 0.004, "rows": 872}
            ],
        },
        "confusion": {"labels": labels, "matrix": [[8, 1, 3], [0, 10, 0], [2, 0, 6]], "split": "test"},
        "dataset": {
            "name": "tickets.jsonl",
            "kind": "classification",
            "rows": {"train": 60, "validation": 0, "test": 30},
            "labels": [{"label": label, "word": label, "count": 20} for label in labels],
            "digest": "sha256:c0ffee",
            "warnings": [
                {"code": "conflicts", "message": "2 rows conflict.", "remedy": "Decide.", "examples": [{"row": 12}]}
            ],
        },
        "training": {
            "method": "hyperformer++",
            "steps": 40,
            "learning_rate": 0.03,
            "loss": [2.0 / (1 + step) for step in range(40)],
            "z_norm": [8.0 + 0.01 * step for step in range(40)],
            "padding_share": 0.118,
        },
        "label_next": {
            "rows": [
                {
                    "text": "where is my money",
                    "uncertainty": 0.97,
                    "answers": [{"label": "billing", "probability": 0.41}, {"label": "delivery", "probability": 0.38}],
                },
                {"text_a": "one", "text_b": "two", "uncertainty": 0.9, "value": 1.5, "spread": 0.5},
            ],
            "read": 900,
            "known": 2,
            "repeated": 8,
            "considered": 890,
        },
        "seconds": {"check": 0.4, "probe": 11.2, "train": 75.0},
        "pins": {"backbone_digest": "sha256:beef", "seeds": [0, 1]},
        "created_at": "2026-01-31T12:00:00.000Z",
        "finished_at": "2026-01-31T12:01:30.000Z",
        "events": [{"at": "2026-01-31T12:00:00.100Z", "stage": "check", "message": "60 rows"}],
    }
