"""The benefit of every earlier task for a new one: 0 to 127 source tasks, held-out tasks.

plan.py   which runs there are
arms.py   what a readout with a prior, and the whole default, answer after so many tasks
page.py   bench/results/accumulation.md
"""
