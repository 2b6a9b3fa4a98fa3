"""Any number of tasks answered from one frozen base, compared with other ways to serve many tasks.

drawing.py   whose task each row of a batch is
loras.py     LoRA of many tasks, all in memory or the recent ones only
arms.py      what answers a batch
measure.py   the arms in turn, and a service of so many tasks
page.py      bench/results/serve.md, and its picture
"""
