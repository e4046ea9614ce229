"""Argmax, numbers of optima and K best values of contractions, in all kinds of arrays."""

import numpy as np
import pytest

import t4a
import t4a.numpy as tn

rng = np.random.default_rng(4)


def flavours():
    yield "numpy", tn, np.asarray
    try:
        import torch

        import t4a.torch as tt

        yield "torch", tt, torch.tensor
    except ImportError:
        pass
    try:
        import jax

        import t4a.jax as tj

        jax.config.update("jax_enable_x64", True)
        yield "jax", tj, jax.numpy.asarray
    except ImportError:
        pass


@pytest.mark.parametrize("name, t, array", list(flavours()))
def test_all_assignments(name, t, array):
    a, b, c = (rng.integers(0, 4, size=shape).astype(float) for shape in ((2, 3), (3, 4), (4,)))
    terms = a[:, :, None] + b[None] + c
    value, indices = t.argmax_einsum("ij,jk,k->i", array(a), array(b), array(c))
    np.testing.assert_array_equal(value, terms.max((1, 2)))
    first = terms.reshape(2, -1).argmax(1)
    assert list(indices) == ["j", "k"]
    np.testing.assert_array_equal(indices["j"], first // 4)
    np.testing.assert_array_equal(indices["k"], first % 4)
    assert str(indices["j"].dtype).endswith("int64")
    value, count = t.counting_einsum("ij,jk,k->i", array(a), array(b), array(c))
    np.testing.assert_array_equal(count, (terms == terms.max((1, 2), keepdims=True)).sum((1, 2)))
    best = t.k_best_einsum("ij,jk,k->i", array(a), array(b), array(c), k=5)
    np.testing.assert_array_equal(best, -np.sort(-terms.reshape(2, -1))[:, :5])
    least = t.k_best_einsum([[1, 2], [2, 3], [3], []], array(a), array(b), array(c), k=3, semiring="min_plus")
    np.testing.assert_array_equal(least, np.sort(terms.ravel())[:3])
    value, indices = t.argmax_einsum([[1, 2], [2, 3], [3], []], array(a), array(b), array(c), semiring="min_plus")
    assert float(value) == terms.min() and terms[tuple(int(indices[i]) for i in (1, 2, 3))] == terms.min()
    with pytest.raises(t4a.ArgumentError, match="none of their terms"):
        t.argmax_einsum("ij->i", array(a), semiring="log_sum_exp")
    with pytest.raises(t4a.ArgumentError, match="1 to 16"):
        t.k_best_einsum("ij->i", array(a), k=17)
    with pytest.raises(t4a.ArgumentError, match="complex"):
        t.counting_einsum("ij->i", array(a + 0j))


def test_sums_without_a_term():
    value, indices = tn.argmax_einsum("ij,j->i", np.full((2, 3), -np.inf), np.zeros(3))
    np.testing.assert_array_equal(value, [-np.inf] * 2)
    np.testing.assert_array_equal(indices["j"], [-1, -1])
    value, indices = tn.argmax_einsum("ij,jk->ik", np.zeros((2, 1)), np.zeros((1, 2)))
    np.testing.assert_array_equal(indices["j"], np.zeros((2, 2)))
    value, indices = tn.argmax_einsum("ij->i", np.zeros((2, 0)))
    np.testing.assert_array_equal(indices["j"], [-1, -1])


def test_no_derivative_runs_through_them():
    torch = pytest.importorskip("torch")
    import t4a.torch as tt

    x = torch.randn(2, 3, requires_grad=True)
    value, count = tt.counting_einsum("ij->i", x)
    assert not value.requires_grad and not count.requires_grad
