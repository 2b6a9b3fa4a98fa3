"""The methods side by side: what a step costs, what few rows come to, what a task takes, what a batch may mix.

plan.py        which trainings there are
lessons.py     one training as a job does it, with what rows that it has not seen say, and its answers
choosing.py    what the rule of `--method auto` makes of them
figures.py     means over tasks, and bytes a task with the shared part spread over many
efficiency.py  step time, memory and bytes of each method on the T5-small shape
throughput.py  a batch of many tasks, of one method and of several
page.py        bench/results/methods.md, and its picture
"""
