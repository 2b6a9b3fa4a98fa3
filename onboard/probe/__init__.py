"""The probe: find the existing task embedding that is the best start for a new task.

The best start is the one with adapters that already fit the new labels best. Every candidate is evaluated under the
head (hypernetwork version) that the new task will train with, on labeled rows that it was not trained on. `Evaluator`
measures candidates on given rows, many in one batch. `prefilter` selects candidates, `racing` decides the number of
rows, `finals` trains the last few, and `choice` decides.
"""
