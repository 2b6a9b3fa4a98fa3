"""Which existing task embedding is the best start for a new task? The one whose adapters already fit its labels best.

Every candidate is evaluated under the head (hypernetwork version) that the new task will train with, on labelled rows
that it has not been trained on. `Evaluator` measures one candidate on chosen rows; a strategy decides which candidates
are measured on which rows (`exhaustive` here; racing fits the same interface).
"""
