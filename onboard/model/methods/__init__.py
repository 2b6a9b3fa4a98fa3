"""What the hypernetworks are compared with, on the same frozen T5, hooks and scoring.

    adapter_table.py    one set of adapters per task, as plain parameters

Full fine-tuning needs no module: the backbone's parameters are trained, and `Engine.bare_log_probabilities` scores.
"""
