"""Make a base from plain text and labeled sources: a frozen T5 with its hypernetwork and task embeddings.

Stages, each resumable in the work folder: sentences → tokenizer → teacher → inherit → distill → multitask →
hypernetwork → assemble. `run.py` defines the order, and the recipe all settings.
"""
