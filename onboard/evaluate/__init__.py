"""The evaluate stage: metrics with intervals, baselines on the same rows, and the verdicts drawn from them."""

from onboard.evaluate.baselines import cross_validate_baselines, score_baselines
from onboard.evaluate.crossvalidation import cross_validated, merge_folds
from onboard.evaluate.evaluation import evaluate_classification, evaluate_regression, headline_metric
from onboard.evaluate.intervals import Metric
from onboard.evaluate.metrics import confusion
from onboard.evaluate.paired import Comparison, compare_classification, compare_regression
from onboard.evaluate.verdicts import Weakness, may_replace, weakness

__all__ = [
    "Comparison",
    "Metric",
    "Weakness",
    "compare_classification",
    "compare_regression",
    "confusion",
    "cross_validate_baselines",
    "cross_validated",
    "evaluate_classification",
    "evaluate_regression",
    "headline_metric",
    "may_replace",
    "merge_folds",
    "score_baselines",
    "weakness",
]
