"""The README of an export, with everything needed to use the folder."""

from __future__ import annotations

from typing import Final

from onboard.bases import Base
from onboard.data.regression import Buckets
from onboard.domain.dataset import label_text
from onboard.domain.task import EmbeddingVersion, texts_taken
from onboard.model.adapter import LAYER_NORM_EPS
from onboard.model.engine import Engine

_ADAPTERS: Final = """\
# Adapters of {version.reference}

Adapter weights for the sub-layers of a frozen T5, which make it answer this task.
They belong to the T5 of the base `{base.name}` with the digest `{version.backbone_digest}`.

`adapters.safetensors` contains float32 tensors named `STACK.block.LAYER.POSITION.PART`:

- STACK: `encoder` ({sizes[encoder_layers]} layers), `decoder` ({sizes[decoder_layers]} layers)
- POSITION: `feed_forward`, `self_attention` (the decoder's cross-attention has none)
- PART: `down` (b, h), `down_bias` (b), `up` (h, b), `up_bias`, `gamma`, `beta` (h each); \
h = {sizes[d_model]}, b = {sizes[bottleneck]}

The output y of the sub-layer, before its dropout and its skip connection, becomes

    y + layer_norm(up · gelu(down · y + down_bias) + up_bias) · gamma + beta

with the tanh form of GELU, and a layer norm over h (epsilon {epsilon:g}).

{asking}
The answer is the most likely of these words, each followed by end-of-sequence. At every step, the softmax is only \
over tokens that continue one of the words; if there is only one, its probability is 1.
{number}
{words}
{temperature}{readout}"""
_TEMPERATURE: Final = """
Probabilities p become p^(1/{temperature:g}), normalized{after}: this calibrates the answers.
"""
_READOUT: Final = """
## The readout

`readout.safetensors` complements the adapters: softmax(scale · root_weights · r + bias), where r = sign(x)·√|x| of \
the means x over the tokens of the encoder's states, without adapters: the last ones, those halfway up and those \
before the last layer; of a pair then the same of the second text's tokens less those of the first's. `share` of the \
probabilities is the readout's, the rest that of the words. (Older versions have `weights`, for x itself, without the \
states before the last layer.)
"""
_ONNX: Final = """\
# {version.reference} as one ONNX model

`model.onnx` takes int64 `input_ids` and `attention_mask` (rows, tokens), the mask 1 for tokens and 0 for padding, and \
returns float32 `log_probabilities` (rows, labels), in the order of `labels.json`.
The T5 of the base `{base.name}` (`{version.backbone_digest}`), the task's adapters, its words{readout} are in it. \
When it was written its answers were compared with those of the service: they agree to {agrees:g}.

{asking}
```python
import json
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

facts = json.load(open("labels.json"))
tokens = Tokenizer.from_file("tokenizer.json").encode("A text.", add_special_tokens=False).ids
ids = np.array([tokens[: facts["max_tokens"] - 1] + [facts["end_of_sequence"]]])
session = onnxruntime.InferenceSession("model.onnx")
(logs,) = session.run(None, {{"input_ids": ids, "attention_mask": np.ones_like(ids)}})
print(dict(zip(facts["labels"] or facts["words"], np.exp(logs[0]))))
```
{number}
{words}
"""
_ASKING: Final = """\
## Asking

The task takes {takes}.
Its tokens are those of the text and the end-of-sequence token, without a prefix; of a pair those of the first text, \
of `{encoder.pair_separator}`, of the second, and end-of-sequence.
More than {encoder.max_tokens} are cut, the longer text first.
"""
_NUMBER: Final = "The number is the mean of the answers, weighted by their probabilities.\n"


def adapters_readme(version: EmbeddingVersion, base: Base, engine: Engine) -> str:
    """Return the README of `--format adapters`."""
    readout = "" if version.readout is None else _READOUT
    sizes, epsilon = engine.hypernetwork.sizes, LAYER_NORM_EPS
    after = "" if version.readout is None else ", after the readout was added"
    line = _TEMPERATURE.format(temperature=version.temperature, after=after)
    temperature = "" if version.temperature == 1.0 else line
    return _filled(
        _ADAPTERS, version, base, engine, readout=readout, temperature=temperature, sizes=sizes, epsilon=epsilon
    )


def onnx_readme(version: EmbeddingVersion, base: Base, engine: Engine, agrees: float) -> str:
    """Return the README of `--format onnx`. `agrees`: maximum difference of log-probabilities."""
    readout = "" if version.readout is None else " and its readout"
    return _filled(_ONNX, version, base, engine, readout=readout, agrees=agrees)


def _filled(text: str, version: EmbeddingVersion, base: Base, engine: Engine, **more: object) -> str:
    takes = "one text or two" if version.pairs is None else texts_taken(version.pairs).partition(":")[0]
    asking = _ASKING.format(takes=takes, encoder=engine.encoder)
    number = "" if version.labels else _NUMBER
    return text.format(version=version, base=base, asking=asking, number=number, words=_words(version), **more)


def _words(version: EmbeddingVersion) -> str:
    if version.labels:
        answers = [" ".join(label_text(label).split()).replace("|", "&#124;") for label in version.labels]
    else:
        assert version.low is not None
        assert version.high is not None
        answers = [f"{value:.6g}" for value in Buckets(version.low, version.high).values]
    rows = [f"| {answer} | {word} |" for answer, word in zip(answers, version.words, strict=True)]
    return "\n".join(["| answer | word |", "|---|---|", *rows])
