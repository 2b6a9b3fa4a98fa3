"""Make bases, and import and export the authors' checkpoints. Only `onboard base` uses it.

curriculum/              training tasks of many kinds, derived from labeled sources
multitask/               hypernetwork and task embeddings trained on any T5, in rounds or in episodes
pretrain/                train a backbone from a teacher and plain text
exchange.py              import of the authors' HyperFormer checkpoints, and export
label_words.py           label words of an imported checkpoint's tasks

Code that a service needs for finished bases is in `onboard.bases`.
"""
