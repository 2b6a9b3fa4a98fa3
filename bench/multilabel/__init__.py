"""Tasks with several labels per text: our readout beside one-vs-rest regressions on TF-IDF and on MiniLM.

plan.py     the arms and runs
arms.py     what each answers
page.py     docs/results/multilabel.md
"""
