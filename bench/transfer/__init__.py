"""The paper's Table 2 on real data: what a new task gains here, next to what else could be done with its few rows.

cells.py     which runs there are, in the order of their worth
material.py  the rows of a run, and where an embedding may start
recipes.py   hyper-parameters: ours chosen on the source tasks, two of each baseline
methods.py   the trained parts, next to embeddings, by one plain loop
runs.py      one run: train, test, one row
sharing.py   finished rows in a file, parts for several processes, a budget of time
estimate.py  what the plan costs
figures.py   means, paired differences, regret, Holm's correction; what methods are called
plot.py      the curves as SVG
verdicts.py  the numbers that were wanted
page.py      bench/results/transfer.md
"""
