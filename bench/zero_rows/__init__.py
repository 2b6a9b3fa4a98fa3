"""How far label words get without a single labelled row.

plan.py     the arms
answers.py  what each answers
page.py     bench/results/zero_rows.md
"""
