"""The benefit of earlier tasks of an installation for later ones: series of related tasks.

plan.py      which runs there are
material.py  the tasks of a series, and the rows of a run
arms.py      answers with and without the first half of a series
page.py      bench/results/series.md
"""
