"""The model: a frozen stock T5, adapters that a hypernetwork generates for each task, and scoring of label words.

Symbols of dimensions for the whole project (HyperFormer++ is arXiv 2106.04489):

    B  rows of a batch                      T  tasks of a batch (or of a base)
    S  tokens of a source text              L  blocks of one stack (encoder or decoder)
    N  decoder positions of a label trie    K  labels of a task
    h  d_model of the backbone              H  attention heads of the backbone
    b  bottleneck of an adapter (the paper's d = h / r, r the reduction factor)
    t  size of a task embedding z, and of the layer-id and position embeddings
    e  width of the projector's hidden layer
    c  size of the conditioning vector I (equal to t unless specified)

Positions of a block are numbered 0 = feed-forward, 1 = self-attention, as in the authors' code.
"""
