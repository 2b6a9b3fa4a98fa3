"""How well a base learns kinds that it has not seen, against the number and variety of its training tasks.

curricula.py  the curricula, and one run: train on one of them, then learn new tasks
few_shot.py   a new task with few rows
page.py       bench/results/curriculum.md
"""
