"""The test sets that SetFit's authors publish figures of, learned from as many rows per class.

plan.py   the sets, the published results, and which runs there are
page.py   bench/results/setfit_sets.md
"""
