"""Statistical and transfer terms in reports, each with a one-sentence explanation as a tooltip."""

from __future__ import annotations

from typing import Final

TERMS: Final = {
    "macro-F1": "The mean of all labels' F1: a rare label counts as much as a common one.",
    "MCC": "Matthews' correlation between answers and labels: 0 is guessing, 1 is always right.",
    "log-loss": "The mean negative log-probability of the true labels, in nats. Lower is better.",
    "mean squared error": "The mean of the squared distances between answers and numbers: lower is better.",
    "Pearson": "How close answers and numbers are to a line: 0 not at all, 1 exactly.",
    "Spearman": "How well the order of the answers matches that of the numbers: 0 not at all, 1 exactly.",
    "majority": "Always giving the most frequent label, which a version has to beat.",
    "TF-IDF + logistic regression": "A plain model that counts words, trained on the same rows.",
    "TF-IDF + ridge regression": "A plain model that counts words, trained on the same rows.",
    "precision": "The share of rows with this answer that have this label.",
    "recall": "The share of rows with this label that got this answer.",
    "F1": "Precision and recall in one number: their harmonic mean.",
    "starting point": "A candidate to start from: an earlier task, or untrained numbers.",
    "loss (95%)": "Mean loss before any training in nats, with its 95% interval: lower is better.",
    "right": "Share of the rows that were answered right before any training.",
    "round": "The round that it reached: those that fall behind drop out after a few rows.",
    "tuned": "Mean loss in nats after a short training, on held-out rows.",
    "padding": "The share of tokens that only pad shorter texts in a batch.",
    "share of the distance": "The share of the way from the start to the end of training. More can hurt with few rows.",
    "method": "The method that learned the task: adapters generated from an embedding, or task-specific weights.",
    "judged by": "Rows with known labels, or texts on which only changes of the answers are measured.",
    "flipped answers": "Rows or texts with a different answer than before.",
}
