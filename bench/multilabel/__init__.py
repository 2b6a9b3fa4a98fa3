"""Tasks with several labels per text: our readout next to one-vs-rest regressions on TF-IDF and on MiniLM.

plan.py     the arms and runs
arms.py     what each answers
page.py     bench/results/multilabel.md
"""
