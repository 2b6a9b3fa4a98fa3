"""Making a base: from plain text and labelled sources to a frozen T5 with its hypernetwork and task embeddings.

Stages, each resumable in the work folder: sentences → tokenizer → teacher → inherit → distill → multitask →
hypernetwork → assemble. The order stands in `run.py`; every number in the recipe.
"""
