"""Tasks of different methods in one batch: each row gets exactly what it gets alone."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from support.small_methods import SETTINGS
from torch import Tensor

from onboard.model.adapter import AdapterWeights, adapt, adapt_rows
from onboard.model.attach import attach
from onboard.model.batched import mixed_log_probabilities
from onboard.model.engine import Engine
from onboard.model.methods import TASK_METHODS, new_task
from onboard.model.t5_parts import norms_of
from onboard.model.task_weights import OwnParts, TaskWeights, Weights, generated_weights

MIXED = [name for name, method in TASK_METHODS.items() if method.MIXES]
WORDS = (["w1", "w2"], ["w3", "w4 w5", "w4 w6"])


def moved(method: str, backbone: Any, seed: int = 0) -> Any:
    """A task with every parameter away from its start."""
    torch.manual_seed(seed)
    module = new_task(method, backbone, SETTINGS.get(method))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return module


def all_kinds(engine: Engine) -> list[Weights]:
    """Two generated tasks in one part, and one task of every method that mixes."""
    torch.manual_seed(9)
    own = [moved(method, engine.backbone, seed).weights() for seed, method in enumerate(MIXED)]
    return [engine.hypernetwork(torch.randn(2, 12)), *own]


def alone(part: Weights) -> list[Weights]:
    return [part.of([task]) for task in range(part.tasks)]


def texts(rows: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(4)
    lengths = torch.randint(2, 9, (rows,), generator=generator).tolist()
    return [torch.randint(4, 300, (length,), generator=generator).tolist() for length in lengths]


@pytest.mark.parametrize("family", ["t5", "v1.1-untied", "byt5"])
def test_every_row_of_a_batch_of_all_methods_gets_what_it_gets_alone(
    family: str, engine_of: Callable[[str], Engine]
) -> None:
    engine = engine_of(family)
    parts = all_kinds(engine)
    single = [one for part in parts for one in alone(part)]
    joined = TaskWeights.joined(parts)
    assert joined.tasks == len(single) == len(MIXED) + 2
    tries = [engine.trie(WORDS[task % 2]) for task in range(len(single))]
    rows = [*range(len(single)), 3, 0]
    ids = texts(len(rows))
    with torch.no_grad():
        mixed = engine.score(ids, joined, tries, torch.tensor(rows))
        for place, task in enumerate(rows):
            expected = engine.score([ids[place]], single[task], [tries[task]])
            labels = expected.shape[1]
            torch.testing.assert_close(mixed[place, :labels], expected[0], atol=1e-5, rtol=0)
            bare = engine.bare_log_probabilities([ids[place]], [tries[task]])
            assert (expected - bare).abs().max() > 1e-3, task  # every task does something


def test_rows_in_batches_of_like_length_are_answered_as_each_alone(engine: Engine) -> None:
    parts = all_kinds(engine)
    joined = TaskWeights.joined(parts)
    tries = [engine.trie(WORDS[task % 2]) for task in range(joined.tasks)]
    tasks = np.arange(40) % joined.tasks
    ids = texts(40)
    answers = mixed_log_probabilities(engine, ids, joined, tries, tasks)
    for row in (0, 17, 39):
        own = joined.of([int(tasks[row])])
        with torch.no_grad():
            expected = engine.score([ids[row]], own, [tries[tasks[row]]])[0].numpy()
        np.testing.assert_allclose(answers[row, : len(expected)], expected, atol=1e-5)


def test_the_whole_model_with_its_head_mixes_too(engine: Engine) -> None:
    backbone, parts = engine.backbone, all_kinds(engine)
    joined = TaskWeights.joined(parts)
    single = [one for part in parts for one in alone(part)]
    torch.manual_seed(2)
    ids, labels = torch.randint(4, 300, (len(single), 6)), torch.randint(4, 300, (len(single), 3))
    mask = torch.ones_like(ids)
    mask[::3, 4:] = 0
    with torch.no_grad():
        with engine.attachment.using(joined, torch.arange(len(single))):
            mixed = backbone(input_ids=ids, attention_mask=mask, labels=labels).logits
        for row, weights in enumerate(single):
            own = slice(row, row + 1)
            with engine.attachment.using(weights):
                expected = backbone(input_ids=ids[own], attention_mask=mask[own], labels=labels[own]).logits
            torch.testing.assert_close(mixed[own], expected, atol=1e-5, rtol=0)


def test_gradients_of_a_mixed_batch_are_those_of_each_task_alone(engine: Engine) -> None:
    modules = [moved(method, engine.backbone, seed) for seed, method in enumerate(MIXED)]
    tries, ids = [engine.trie(WORDS[0])] * len(modules), texts(len(modules))
    joined = TaskWeights.joined([module.weights() for module in modules])
    engine.score(ids, joined, tries, torch.arange(len(modules)))[:, 0].sum().backward()
    for place, module in enumerate(modules):
        mixed = {name: parameter.grad.clone() for name, parameter in module.named_parameters()}
        module.zero_grad()
        engine.score([ids[place]], module.weights(), [tries[0]])[:, 0].sum().backward()
        for name, parameter in module.named_parameters():
            torch.testing.assert_close(mixed[name], parameter.grad, atol=1e-4, rtol=1e-3)


def test_generated_adapters_alone_are_computed_bit_for_bit_as_before_and_without_more_hooks(engine: Engine) -> None:
    def hooks() -> int:
        modules = [*engine.backbone.modules()]
        return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in modules)

    generated, tries, ids = engine.hypernetwork(torch.randn(3, 12)), [engine.trie(WORDS[0])] * 3, texts(5)
    rows, before = torch.tensor([0, 1, 2, 1, 0]), hooks()
    with torch.no_grad():
        as_ever = engine.score(ids, generated, tries, rows)
        assert torch.equal(engine.score(ids, generated_weights(generated), tries, rows), as_ever)
        assert hooks() == before == 2 * (3 + 2)
        engine.score(ids[:1], moved("bitfit", engine.backbone).weights(), tries[:1])
        assert hooks() > before
        assert torch.equal(engine.score(ids, generated, tries, rows), as_ever)
    engine.attachment.detach()
    assert hooks() == 0


def test_adapters_without_a_layer_norm_are_plain_sums() -> None:
    torch.manual_seed(0)
    h, b = 10, 3
    weights = AdapterWeights(*(torch.randn(2, *shape) for shape in ((b, h), (b,), (h, b), (h,), (h,), (h,))))
    y, rows = torch.randn(3, 5, h), torch.tensor([1, 0, 1])

    def plain(y: Tensor, task: int) -> Tensor:
        inner = torch.nn.functional.gelu(y @ weights.down[task].T + weights.down_bias[task], approximate="tanh")
        return y + inner @ weights.up[task].T + weights.up_bias[task]

    first = AdapterWeights(*(weight[0] for weight in weights))
    torch.testing.assert_close(adapt(y, first, normed=False), plain(y, 0))
    none = adapt_rows(y, weights, rows, normed=False)
    some = adapt_rows(y, weights, rows, normed=torch.tensor([True, False, False])[:, None, None])
    whole = adapt_rows(y, weights, rows)
    for row, task in enumerate(rows.tolist()):
        torch.testing.assert_close(none[row], plain(y[row], task))
    torch.testing.assert_close(some, torch.stack([whole[0], none[1], none[2]]))


def test_a_wider_bottleneck_of_zeros_changes_nothing() -> None:
    torch.manual_seed(0)
    weights = AdapterWeights(*(torch.randn(*shape) for shape in ((3, 10), (3,), (10, 3), (10,), (10,), (10,))))
    y = torch.randn(2, 4, 10)
    wide = weights.widened(7)
    assert wide.down.shape == (7, 10)
    torch.testing.assert_close(adapt(y, wide), adapt(y, weights))
    assert weights.widened(3) is weights


@pytest.mark.parametrize("method", ["intrinsic-said", "full-fine-tuning"])
def test_a_task_with_matrices_of_its_own_goes_alone(method: str, engine: Engine) -> None:
    own, other = moved(method, engine.backbone).weights(), moved("bitfit", engine.backbone).weights()
    assert (own.mixes, other.mixes) == (False, True)
    with pytest.raises(ValueError, match="alone"):
        TaskWeights.joined([other, own])
    assert TaskWeights.joined([own]).tasks == 1


@pytest.mark.parametrize("method", ["intrinsic-said", "full-fine-tuning"])
def test_matrices_of_a_tasks_own_compute_as_a_backbone_that_has_them(
    method: str, engine: Engine, backbone_of: Callable[..., Any]
) -> None:
    weights = moved(method, engine.backbone).weights()
    reference = backbone_of("t5")
    reference.load_state_dict({**reference.state_dict(), **weights.own[0].matrices}, strict=False)
    tries, ids = [engine.trie(WORDS[1])], texts(3)
    before = {name: parameter.clone() for name, parameter in engine.backbone.named_parameters()}
    plain = Engine(reference, engine.hypernetwork, engine.encoder)
    with torch.no_grad():
        torch.testing.assert_close(engine.score(ids, weights, tries), plain.bare_log_probabilities(ids, tries))
    assert all(torch.equal(parameter, before[name]) for name, parameter in engine.backbone.named_parameters())


def test_two_threads_use_one_backbone_with_and_without_matrices_of_their_own(engine: Engine) -> None:
    kinds = [moved("full-fine-tuning", engine.backbone).weights(), moved("bitfit", engine.backbone).weights()]
    tries, ids = [engine.trie(WORDS[0])], texts(4)

    @torch.no_grad()
    def answer(place: int) -> Tensor:
        return engine.score(ids, kinds[place % 2], tries)

    expected = [answer(0), answer(1)]
    with ThreadPoolExecutor(2) as threads:
        for place, answered in enumerate(threads.map(answer, range(8))):
            assert torch.equal(answered, expected[place % 2])


@pytest.mark.parametrize("method", ["full-fine-tuning", "prompt-tuning-r", "bitfit", "adapters"])
def test_inside_bare_the_backbone_is_as_it_was(method: str, engine: Engine) -> None:
    ids, labels = torch.tensor([[5, 6, 7]]), torch.tensor([[8, 1]])
    with torch.no_grad():
        before = engine.backbone(input_ids=ids, labels=labels).logits
        with engine.attachment.using(moved(method, engine.backbone).weights()):
            assert not torch.allclose(engine.backbone(input_ids=ids, labels=labels).logits, before, atol=1e-3)
            with engine.attachment.bare():
                assert torch.equal(engine.backbone(input_ids=ids, labels=labels).logits, before)
        assert torch.equal(engine.backbone(input_ids=ids, labels=labels).logits, before)


def test_norms_of_a_tasks_own_stand_in_every_place(backbone_of: Callable[..., Any]) -> None:
    backbone, reference = backbone_of("t5"), backbone_of("t5")
    own = torch.rand(len(norms_of(backbone)), 32) + 0.5
    with torch.no_grad():
        for norm, weight in zip(norms_of(reference).values(), own, strict=True):
            norm.weight.copy_(weight)
    ids, labels = torch.tensor([[5, 6, 7]]), torch.tensor([[8, 1]])
    weights = TaskWeights(None, (OwnParts(norms=own),))
    with torch.no_grad(), attach(backbone).using(weights):
        torch.testing.assert_close(
            backbone(input_ids=ids, labels=labels).logits, reference(input_ids=ids, labels=labels).logits
        )


def test_there_is_nothing_to_join_of_nothing() -> None:
    with pytest.raises(ValueError, match="no tasks"):
        TaskWeights.joined([])


def test_labels_are_scored_with_the_biases_of_norms_linears_and_head_as_the_whole_model_has_them(
    engine: Engine,
) -> None:
    weights, ids = moved("bitfit", engine.backbone).weights(), texts(1)
    tokens = [int(engine.encoder.label_ids(word)[0]) for word in WORDS[0]]
    with torch.no_grad():
        scored = engine.score(ids, weights, [engine.trie(WORDS[0])])[0]
        with engine.attachment.using(weights):
            start = torch.tensor([[engine.backbone.config.decoder_start_token_id]])
            whole = engine.backbone(input_ids=torch.tensor(ids), decoder_input_ids=start).logits[0, 0]
    torch.testing.assert_close(scored, whole[tokens].log_softmax(-1), atol=1e-5, rtol=0)
