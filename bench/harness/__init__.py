"""Parts that all benches share.

command.py         their command lines, and where datasets, results and pages lie
rows.py            finished rows as JSON lines, to go on from; right answers, packed
runs.py            the runs of a plan, in several processes
report.py          numbers as JSON, what they were measured on, and the page that shows them
page.py            Markdown: tables, verdicts
plot.py            pictures as SVG
figures.py         means of draws × test rows with intervals, paired differences
intervals.py       intervals over seeds, and over tasks

source_folders.py  source tasks from folders
as_if_new.py       a source task as if it were new
unseen.py          kinds of tasks that the base has nothing like
as_a_job.py        a task learned as a job learns it, or its embedding alone
budgeted.py        multi-task training with a small budget
variants.py        methods and ablations of the paper
adapter_table.py   adapters as plain parameters
generated.py       identity of what a hypernetwork makes of an embedding

programs.py        the program `onboard`, and what processes are given
server.py          a real `onboard serve`, and who asks it
services.py        real PostgreSQL and Redis
deployed.py        both sizes of a deployment
tiny_base.py       a base of a few words
opinions.py        rows that it can tell apart
"""
