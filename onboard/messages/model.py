"""Messages about models, checkpoints and their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from onboard.messages.message import Message

MODEL: Final[Mapping[str, Message]] = {
    "adapter-computation-unknown": Message(
        "These adapters are computed with {name} = {argument!r}.", "Only {ours!r} is supported."
    ),
    "adapter-layers-wrong": Message(
        "{stack}_layers of {method} are {named!r}.",
        "Use some of the blocks 0 to {last_block} of this {stack}, each once, or none for the upper part.",
    ),
    "adapters-attached": Message("This backbone already carries adapters.", "Call detach() on the first attachment."),
    "adapters-detached": Message("These adapters are detached from their backbone.", "Call attach(backbone) again."),
    "adapters-misplaced": Message(
        "{method} of this checkpoint is at positions where the paper does not put it.",
        (
            "Only Adapters, Pfeiffer-Adapter, AdapterDrop, Adapter-LowRank, PHM-Adapter, Compacter, Compacter++, "
            "prompt tuning and BitFit can be read."
        ),
    ),
    "adapters-missing-in-blocks": Message(
        "Some blocks of this checkpoint have no adapters, so they are not plain Adapters.",
        (
            "Only Adapters, Pfeiffer-Adapter, AdapterDrop, Adapter-LowRank, PHM-Adapter, Compacter, "
            "Compacter++, prompt tuning and BitFit can be read."
        ),
    ),
    "adapters-of-hyperformer": Message(
        "These adapters have a layer norm: they are Adapters† of rabeehk/hyperformer.",
        (
            "Only Adapters, Pfeiffer-Adapter, AdapterDrop, Adapter-LowRank, PHM-Adapter, Compacter, Compacter++, "
            "prompt tuning and BitFit can be read."
        ),
    ),
    "adapters-of-no-method": Message(
        "The adapters of this checkpoint are in places where no known method puts them.",
        (
            "Only Adapters, Pfeiffer-Adapter, AdapterDrop, Adapter-LowRank, PHM-Adapter, Compacter, "
            "Compacter++, prompt tuning and BitFit can be read."
        ),
    ),
    "backbone-config-missing": Message(
        "There is no config.json in {source}.", "Choose a folder that save_pretrained wrote."
    ),
    "backbone-has-bias": Message("{name} of this backbone has a bias.", "Use a stock T5, which does not have one."),
    "backbone-unreadable": Message(
        "The model in {source} cannot be loaded: {reason}", "It must contain config.json and model.safetensors."
    ),
    "checkpoint-config-wrong": Message("config.json does not describe a T5: {reason}", "Correct or remove it."),
    "checkpoint-json-not-object": Message("{path} does not contain a JSON object.", "Copy the checkpoint again."),
    "checkpoint-json-unreadable": Message("{path} cannot be read as JSON: {reason}", "Copy the checkpoint again."),
    "checkpoint-missing": Message(
        "There is no model.safetensors and no pytorch_model.bin in {folder}.",
        "Pass the folder that the authors' trainer wrote its last checkpoint to (output_dir).",
    ),
    "checkpoint-not-a-t5": Message("config.json says that this is a {kind} model, not a T5.", "{remedy}"),
    "checkpoint-of-several-tasks": Message(
        "The checkpoint contains adapters of several tasks: {tasks}.",
        (
            "Only Adapters, Pfeiffer-Adapter, AdapterDrop, Adapter-LowRank, PHM-Adapter, Compacter, Compacter++, "
            "prompt tuning and BitFit can be read."
        ),
    ),
    "checkpoint-safetensors-unreadable": Message(
        "{path} cannot be read as safetensors: {reason}", "Copy the checkpoint again."
    ),
    "checkpoint-tensors-differ": Message(
        "The checkpoint {trouble} {named}{more}.",
        "Check that it is complete and from an unchanged {repository}. {only}",
    ),
    "dimension-too-large": Message(
        "dimension of {method} is {dimension}, more than the number of weights in the backbone's matrices.",
        "Use 1 to {most}.",
    ),
    "embedding-not-in-checkpoint": Message("No embedding for {unknown}.", "There are: {tasks}."),
    "gamma-start-wrong": Message("gamma_start of {method} is {start!r}.", "Use a number from 0 to 1."),
    "gpu-memory-too-small": Message(
        "The GPU's memory is too small for {work}: {reason}",
        ("Free it (nvidia-smi shows who uses it), use a larger GPU (--queue), a smaller base, or shorter texts."),
    ),
    "hub-model-unavailable": Message(
        "The model {source} cannot be loaded from the hub: {reason}", "Check the name and network, or name a folder."
    ),
    "hypernetwork-file-damaged": Message(
        "{path} does not contain the hypernetwork that it describes: {reason}",
        "Copy the file again from its source.",
    ),
    "hypernetwork-method-unknown": Message(
        "{path} has the method {method!r}, which this version does not know.", "Upgrade Onboard: pip install -U onboard"
    ),
    "label-without-tokens": Message(
        "A task needs at least one label, and each label at least one token.",
        "Use a word that the tokenizer knows for every label.",
    ),
    "label-word-without-tokens": Message(
        "The label word {word!r} has no tokens.", "Choose a word with letters or digits."
    ),
    "labels-share-tokens": Message(
        "Two labels have the same tokens, or one begins with the other.", "Choose other words."
    ),
    "method-only-for-comparison": Message(
        "{method} is only for comparisons: it publishes nothing.", "Submit with another method."
    ),
    "method-seed-wrong": Message(
        "seed of {method} is {seed!r}.", "Use a whole number that is not negative, such as 0."
    ),
    "method-setting-not-divisor": Message(
        "{name} of {method} is {value}, which does not divide {dimension} ({size}).", "Use one of: {divisors}."
    ),
    "method-setting-not-positive": Message(
        "{name} of {method} is {value!r}.", "Use a positive whole number, such as {default}."
    ),
    "not-a-compacter-checkpoint": Message(
        "This is not a checkpoint of a method of rabeehk/compacter: it is {kind}.",
        (
            "Only Adapters, Pfeiffer-Adapter, AdapterDrop, Adapter-LowRank, PHM-Adapter, Compacter, "
            "Compacter++, prompt tuning and BitFit can be read."
        ),
    ),
    "not-a-hyperformer-checkpoint": Message(
        "This is not a HyperFormer or HyperFormer++ checkpoint: it is {kind}.",
        ("Only checkpoints of HyperFormer++ (efficient_unique_hyper_net) and of the paper's HyperFormer can be read."),
    ),
    "not-a-hypernetwork": Message("{path} is not a hypernetwork.", "Pass a hypernetwork.safetensors."),
    "not-a-pytorch-file": Message(
        "{path} is not a PyTorch file, or contains more than tensors; none of it was executed.",
        (
            "On a machine where you trust its origin, save its state_dict as model.safetensors: "
            "safetensors.torch.save_model(model, 'model.safetensors')"
        ),
    ),
    "not-a-state-dict": Message(
        "{path} is not a model's state_dict: it contains more than named tensors.",
        (
            "On a machine where you trust its origin, save its state_dict as model.safetensors: "
            "safetensors.torch.save_model(model, 'model.safetensors')"
        ),
    ),
    "not-a-t5": Message("{source} is a {model_type} model, not a T5.", "Use a t5, v1.1, flan, mt5 or byt5 model."),
    "not-an-encoder-decoder": Message(
        "{name} is not a T5 encoder-decoder.", "Use a t5, v1.1, flan, mt5 or byt5 model."
    ),
    "parameters-not-in-checkpoint": Message("No parameters for {unknown}.", "There is: {task}."),
    "prompt-too-long": Message(
        "A prompt of {tokens} tokens is longer than {method} allows on this backbone.", "Use 1 to {most} tokens."
    ),
    "pytorch-file-unreadable": Message("{path} is not readable as a PyTorch file: {reason}", "Copy it again."),
    "quantised-format-unknown": Message(
        "{path} has the format {format}; this version reads onboard-int8-1.", "Upgrade Onboard: pip install -U onboard"
    ),
    "reduction-factor-differs": Message(
        "The adapters of an embedding have {bottleneck} units, but reduction_factor makes {wanted}.",
        "Use --method-setting reduction_factor={factor}, or leave it out.",
    ),
    "stored-settings-not-object": Message(
        "The settings of the stored {method} are not a JSON object.", "Fetch the version again, or use an earlier one."
    ),
    "stored-settings-unreadable": Message(
        "The settings of the stored {method} cannot be read: {reason!r}",
        "Fetch the version again, or use an earlier one.",
    ),
    "stored-tensor-not-finite": Message(
        "{tensor} of the stored {method} contains values that are not finite.",
        "Fetch the version again, or use an earlier one.",
    ),
    "stored-tensor-shape-differs": Message(
        "{tensor} of the stored {method} has the shape {shape}, not {expected}.",
        "Fetch the version again, or use an earlier one.",
    ),
    "stored-tensors-differ": Message(
        "The stored {method} {trouble} {tensor}.", "Fetch the version again, or use an earlier one."
    ),
    "tensor-missing": Message(
        "There is no tensor {tensor} in {path}.",
        "Copy the base again from its source, or create it again: onboard base train",
    ),
    "tensor-name-taken": Message(
        "The name {name}.scale is reserved for the scale of {name}.", "Rename one of the tensors."
    ),
    "tensor-not-described": Message(
        "The config.json next to {path} does not describe the tensor {tensor}.",
        "Copy the base again from its source, or create it again: onboard base train",
    ),
    "tensor-not-finite": Message(
        "{tensor} contains NaN, infinity or a number too large to be stored.",
        "Train again with a lower learning rate, or from the last checkpoint with a finite loss.",
    ),
    "tensor-not-floating": Message(
        "{name} is {dtype}; only floating-point tensors can be stored.", "Convert it to a floating-point type."
    ),
    "tensor-scale-missing": Message(
        "{tensor} in {source} has no scale.",
        "Copy the base again from its source, or create it again: onboard base train",
    ),
    "tensor-scale-not-positive": Message(
        "The scale of {tensor} in {source} is not a positive number in every row.",
        "Copy the base again from its source, or create it again: onboard base train",
    ),
    "tensor-scale-shape-differs": Message(
        "The scale of {tensor} in {source} is {dtype} {shape}, not {expected_dtype} {expected_shape}.",
        "Copy the base again from its source, or create it again: onboard base train",
    ),
    "tensor-shape-differs": Message(
        "{tensor} in {path} has the shape {shape}, but config.json describes {expected}.",
        "Copy the base again from its source, or create it again: onboard base train",
    ),
    "tensor-type-unknown": Message(
        "{tensor} in {source} has the unexpected type {dtype}.",
        "Copy the base again from its source, or create it again: onboard base train",
    ),
    "tokenizer-lacks-special-tokens": Message(
        "The tokenizer lacks an end-of-sequence or padding token, which T5 tokenizers have.",
        "Use the tokenizer of the T5.",
    ),
    "tokenizer-unreadable": Message(
        "The tokenizer of {called} cannot be loaded: {reason}",
        (
            "The folder must contain tokenizer.json and tokenizer_config.json, as save_pretrained writes them; "
            "for spiece.model alone: pip install sentencepiece protobuf"
        ),
    ),
    "too-few-tokens-for-pairs": Message(
        "A limit of {max_tokens} tokens leaves no room for a pair of texts.", "Allow more tokens."
    ),
    "training-diverged": Message(
        "The training loss became {loss} at step {step}.", "Submit again with another --seed."
    ),
    "unknown-activation": Message("These adapters use the activation {activation!r}.", "Only gelu_new can be read."),
    "unknown-base-method": Message("There is no method {method!r} for a base.", "Use one of: {methods}."),
    "unknown-dtype": Message("A T5 cannot run in {dtype}.", "Use float32 or bfloat16."),
    "unknown-method-setting": Message("{method} has no setting {unknown!r}.", "It has: {defaults}."),
    "unknown-task-method": Message("There is no method {method!r} for a task.", "Use one of: {task_methods}."),
    "weights-file-missing": Message("There is no file {path}.", "Check the path."),
    "weights-file-unreadable": Message(
        "{path} cannot be read as safetensors: {reason}", "Copy the file again from its source."
    ),
    "weights-method-unknown": Message(
        "The weights have the method {method!r}, which this version does not know.",
        "Upgrade Onboard: pip install -U onboard",
    ),
    "weights-not-writable": Message("{path} cannot be written: {reason}", "Free some space, or write elsewhere."),
}
