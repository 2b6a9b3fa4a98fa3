"""How many labels a task needs by the order in which its texts are labelled.

plan.py    tasks, orders, rounds
orders.py  which texts an order takes next
walk.py    labels a task round by round
page.py    bench/results/labelling.md
"""
