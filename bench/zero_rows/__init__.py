"""How far label words get without a single labelled row.

plan.py     the arms
answers.py  what each answers
page.py     docs/results/zero_rows.md
"""
