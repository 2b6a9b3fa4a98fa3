"""Tasks with several labels per text: our readout next to one-vs-rest regressions and LoRA.

plan.py     the arms and runs
arms.py     what each answers
lora.py     LoRA with independent scores
page.py     bench/results/multilabel.md
"""
