"""The quality of the guard: how often it refuses harmless changes, how often it misses a loss, and its cost.

material.py  earlier tasks with many labelled rows that nobody has trained on: what they truly lose can be measured
changes.py   changes of the hypernetwork of planted size: at random, by tuning without a rein, by tuning with one
measured.py  every change on every task, row by row
rates.py     false alarms and misses, by drawing from those rows what a guard would have seen; the spread κ
timing.py    a hundred tasks in mixed batches against one after the other
page.py      bench/results/guard.md
"""
