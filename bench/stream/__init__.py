"""Fifteen tasks in a row: the learning of each, and the fate of the earlier ones, by five methods.

tasks.py     the tasks, and the rows that each of them has
methods.py   the compared methods
state.py     where a stream stands: the head, and the learned tasks
learning.py  one task more: probe, train, tune, guard, test
sharing.py   finished steps in a file, hypernetworks of streams under way
estimate.py  what the plan costs
figures.py   R[T,i], average accuracy, BWT, FWT, forgetting, worst task
sizes.py     bytes per task
heat.py      R as a heat map (SVG)
page.py      bench/results/stream.md
"""
