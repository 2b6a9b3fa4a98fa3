"""SetFit as a process in its own environment: a line of JSON with rows on standard input, a line with answers back.

    ENVIRONMENT/bin/python bench/heldout/setfit_worker.py MODEL

A request has `texts` and `labels` (indices) to learn from, `asked` texts, `seed`, `device` and `recipe`, what the
training is given next to the release's defaults. The reply has `probabilities`, a row per asked text and a column per
label, and `seconds` of the processor, for learning. It imports nothing of ours: `bench/heldout/setfit_process.py`
starts it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from typing import Any


def main() -> None:
    """Answer requests until the input ends. Libraries print as they like: what they print goes to standard error."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    (model,) = sys.argv[1:]
    for line in sys.stdin:
        replies.write(json.dumps(answer(model, json.loads(line))) + "\n")
        replies.flush()


def answer(model: str, request: dict[str, Any]) -> dict[str, Any]:
    """Fine-tune the sentence encoder on pairs of the rows, fit the head, and answer."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    started = time.process_time()
    learner = SetFitModel.from_pretrained(model, device=request["device"])
    rows = Dataset.from_dict({"text": request["texts"], "label": request["labels"]})
    with tempfile.TemporaryDirectory() as folder:
        quiet = {"output_dir": folder, "report_to": "none", "save_strategy": "no", "show_progress_bar": False}
        arguments = TrainingArguments(seed=request["seed"], **quiet, **request["recipe"])
        Trainer(model=learner, args=arguments, train_dataset=rows).train()
    seconds = time.process_time() - started
    probabilities = learner.predict_proba(request["asked"], as_numpy=True, show_progress_bar=False)
    return {"probabilities": probabilities.tolist(), "seconds": seconds}


if __name__ == "__main__":
    main()
