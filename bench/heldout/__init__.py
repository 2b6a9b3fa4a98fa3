"""The version that the default publishes on tasks that no base and no rule has seen, compared with alternatives.

plan.py        which runs there are, in the order of their worth
families.py    the family of a task, and of what a training starts from
material.py    the rows of a run, the same for all arms
features.py    texts as the bare encoder and the teacher see them, each read once
readouts.py    our readout on features, of the rows alone
setfit_process.py  SetFit in its own environment; setfit_worker.py runs there
linear.py      logistic and ridge regression on features
learned.py     a job as it is submitted, run by the pipeline in a separate home
arms.py        what each arm answers to the test rows
measures.py    accuracy, macro-F1, loss, calibration, labels that are never answered
sharing.py     finished runs in a file
figures.py     means over draws, paired differences over tasks
verdicts.py    the targets
suites.py      which tasks: those that designs are chosen by, or the seven targets
tables.py      the tables of the page
page.py        bench/results/heldout.md and targets.md
"""
