"""Statistical and transfer terms in reports, each with a one-sentence explanation as a tooltip."""

from __future__ import annotations

from typing import Final

TERMS: Final = {
    "macro-F1": "The mean of all labels' F1: a rare label counts as much as a common one.",
    "MCC": "Matthews' correlation between answers and labels: 0 is guessing, 1 is always right.",
    "log-loss": "How surprised the version is by the true labels, in nats; it sees how sure it is. Lower is better.",
    "mean squared error": "The mean of the squared distances between answers and numbers: lower is better.",
    "Pearson": "How well answers and numbers lie on one line: 0 not at all, 1 exactly.",
    "Spearman": "How well the order of the answers fits that of the numbers: 0 not at all, 1 exactly.",
    "majority": "Always giving the commonest label: what a version has to beat.",
    "TF-IDF + logistic regression": "A plain model that counts words, trained on the same rows.",
    "TF-IDF + ridge regression": "A plain model that counts words, trained on the same rows.",
    "precision": "Of the rows that were answered so, the share that is labelled so.",
    "recall": "Of the rows that are labelled so, the share that was answered so.",
    "F1": "Precision and recall in one number: their harmonic mean.",
    "starting point": "What training would start from: an earlier task, or numbers that have learned nothing.",
    "loss (95%)": "Mean loss before any training in nats, with its 95% interval: lower is better.",
    "right": "Share of the rows that were answered right before any training.",
    "round": "How far it came: those that fall behind leave after few rows.",
    "tuned": "Mean loss in nats after a little training, on rows held out of that.",
    "padding": "Share of the tokens that only fill up shorter texts of a batch.",
    "of the way taken": "How far from the start to where training went: more can be too much for few rows.",
    "method": "What learned the task: a hypernetwork that makes adapters of an embedding, or the task's own weights.",
    "judged by": "Rows with known labels, or texts on which only the change of the answers is seen.",
    "flipped answers": "Rows or texts that get another answer than before.",
}
