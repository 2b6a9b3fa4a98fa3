"""Sums of Kronecker products, made and not made; and projections that nobody stores."""

from __future__ import annotations

import pytest
import torch

from bench.harness.kronecker_product import kronecker_product
from onboard.model.fastfood import Fastfood, hadamard
from onboard.model.kronecker import kronecker_sum


@pytest.mark.parametrize("shared", [True, False])
def test_the_sum_is_the_sum_of_torchs_kronecker_products(shared: bool) -> None:
    torch.manual_seed(0)
    rule, fast = torch.randn(4, 4, 4) if shared else torch.randn(3, 4, 4, 4), torch.randn(3, 4, 5, 2)
    made = kronecker_sum(rule, fast)
    assert made.shape == (3, 20, 8)
    for layer in range(3):
        own = rule if shared else rule[layer]
        expected = sum(torch.kron(own[i], fast[layer, i]) for i in range(4))
        torch.testing.assert_close(made[layer], expected)


@pytest.mark.parametrize("rank", [1, 3])
def test_the_product_that_makes_no_matrix_is_the_product_with_it_and_has_its_gradients(rank: int) -> None:
    torch.manual_seed(0)
    leaves = [torch.randn(*shape) for shape in ((2, 7, 12), (4, 4, 4), (4, 3, rank), (4, rank, 5))]
    results = []
    for unmade in (True, False):
        x, rule, left, right = (leaf.clone().requires_grad_(True) for leaf in leaves)
        y = kronecker_product(x, rule, left, right) if unmade else x @ kronecker_sum(rule, left @ right)
        y.square().sum().backward()
        results.append((y, x.grad, rule.grad, left.grad, right.grad))
    for ours, reference in zip(*results, strict=True):
        torch.testing.assert_close(ours, reference, rtol=1e-4, atol=1e-3)


def test_the_fast_transform_is_the_product_with_sylvesters_matrix_and_so_is_its_gradient() -> None:
    matrix = torch.ones(1, 1)
    for _ in range(3):
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    x = torch.randn(2, 3, 8, requires_grad=True)
    torch.testing.assert_close(hadamard(x), x @ matrix)
    given = torch.randn(2, 3, 8)
    (gradient,) = torch.autograd.grad(hadamard(x), x, given)
    torch.testing.assert_close(gradient, given @ matrix)


def test_a_projection_follows_from_seed_and_name_keeps_lengths_on_average_and_is_linear() -> None:
    torch.manual_seed(0)
    x = torch.randn(100)
    project = Fastfood(3, "encoder.q", 100, 5000)
    y = project(x)
    assert y.shape == (5000,)
    assert torch.equal(Fastfood(3, "encoder.q", 100, 5000)(x), y)
    assert not torch.allclose(Fastfood(4, "encoder.q", 100, 5000)(x), y)
    assert not torch.allclose(Fastfood(3, "encoder.k", 100, 5000)(x), y)
    assert y.norm().item() == pytest.approx(x.norm().item(), rel=0.05)
    torch.testing.assert_close(project(2 * x + 1), 2 * y + project(torch.ones(100)), rtol=1e-4, atol=1e-5)


def test_what_is_drawn_for_a_seed_today_is_drawn_for_ever() -> None:
    drawn = Fastfood(0, "shared.weight", 3, 5)(torch.tensor([1.0, -2.0, 0.5]))
    torch.testing.assert_close(drawn, torch.tensor(DRAWN), rtol=1e-5, atol=1e-6)


DRAWN = [-0.273186, 0.803797, 0.544057, -0.607565, -1.852789]  # by dense matrices
