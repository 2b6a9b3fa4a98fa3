"""Which existing task embedding is the best start for a new task? The one whose adapters already fit its labels best.

Every candidate is evaluated under the head (hypernetwork version) that the new task will train with, on labelled rows
that it has not been trained on. `Evaluator` measures candidates on chosen rows, many in one batch. `prefilter` says
which are worth it, `racing` on how many rows, `finals` how the last few do after some training, and `choice` decides.
"""
