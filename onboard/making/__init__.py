"""How a base is made, and how one comes from and goes to the authors' checkpoints. Only `onboard base` uses it.

curriculum/              training tasks of many kinds, made from labelled sources
multitask/               hypernetwork and task embeddings trained on any T5, in rounds or in episodes
pretrain/                a backbone of our own from a teacher and plain text
exchange.py              import of the authors' HyperFormer checkpoints, and export
label_words.py           label words of an imported checkpoint's tasks

What a service needs of a finished base is in `onboard.bases`.
"""
