"""What can make or hold adapters, on the same frozen T5, hooks and scoring.

    hyperformer_plus_plus.py    HyperFormer++: adapters of a task embedding, one hypernetwork a stack
    open_start.py               a start of it from which the task embedding reaches far
    hyperformer.py              plain HyperFormer: one hypernetwork in every layer and position
    adapter_table.py            one set of adapters per task, as plain parameters; what the others are compared with

Full fine-tuning needs no module: the backbone's parameters are trained, and `Engine.bare_log_probabilities` scores.
"""
