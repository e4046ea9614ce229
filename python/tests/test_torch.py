import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck, gradgradcheck

import t4a
import t4a.torch as tt

torch.manual_seed(5)


def noise(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


CASES = {
    "einsum": (lambda x, y: tt.einsum("ij,jk->ik", x, y), lambda d: (noise(2, 3, dtype=d), noise(3, 2, dtype=d))),
    "inv": (tt.inv, lambda d: (noise(3, 3, dtype=d) + 3 * torch.eye(3),)),
    "solve": (tt.solve, lambda d: (noise(3, 3, dtype=d) + 3 * torch.eye(3), noise(3, 2, dtype=d))),
    "cholesky": (lambda x: tt.cholesky(x @ x.mH + torch.eye(3)), lambda d: (noise(3, 3, dtype=d),)),
    "svdvals": (tt.svdvals, lambda d: (noise(3, 2, dtype=d),)),
    "svd": (lambda x: (lambda u, s, vh: (u * s**2) @ u.mH)(*tt.svd(x, check_gauge=False)), lambda d: (noise(4, 3, dtype=d),)),
    "eigh": (lambda x: (lambda e, v: (v * e**2) @ v.mH)(*tt.eigh(x, check_gauge=False)), lambda d: (noise(3, 3, dtype=d),)),
    "qr": (lambda x: tt.qr(x), lambda d: (noise(4, 3, dtype=d),)),
    "expm": (tt.expm, lambda d: (0.3 * noise(3, 3, dtype=d),)),
    "linear_recurrence": (tt.linear_recurrence, lambda d: (noise(4, 2, dtype=d), noise(4, 2, dtype=d))),
}
REAL = {
    "log_sum_exp": (lambda x, y: tt.einsum("ij,jk->ik", x, y, semiring="log_sum_exp"), lambda: (noise(2, 3), noise(3, 2))),
    "max_plus": (lambda x, y: tt.einsum("ij,jk->ik", x, y, semiring="max_plus"), lambda: (noise(2, 3), noise(3, 2))),
    "log_partition": (lambda x, w: tt.log_partition(x, w, [3, 2]), lambda: (noise(2, 3, 2), noise(2, 2))),
    "softmax": (tt.softmax, lambda: (noise(2, 3),)),
    "logcumsumexp": (tt.logcumsumexp, lambda: (noise(4, 2),)),
    "slogdet": (lambda x: tt.slogdet(x)[1], lambda: (noise(3, 3) + 3 * torch.eye(3),)),
}


def checks(f, inputs):
    inputs = [x.requires_grad_() for x in inputs]
    assert gradcheck(f, inputs, check_forward_ad=True)
    assert gradgradcheck(f, inputs, check_fwd_over_rev=True, check_rev_over_rev=True)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_grads(name, dtype):
    f, make = CASES[name]
    checks(f, make(dtype))


@pytest.mark.parametrize("name", REAL)
def test_grads_of_real_functions(name):
    f, make = REAL[name]
    checks(f, make())


def test_func():
    a, b = noise(3, 4), noise(4, 3)
    f = lambda x: tt.einsum("ij,ji->", x, b, semiring="log_sum_exp")
    g = lambda x: torch.logsumexp((x + b.T).flatten(), 0)
    for of in (torch.func.grad, torch.func.hessian, lambda f: torch.func.jacrev(torch.func.jacrev(f))):
        torch.testing.assert_close(of(f)(a), of(g)(a))
    batch = noise(5, 3, 3) + 4 * torch.eye(3)
    torch.testing.assert_close(torch.func.vmap(tt.inv)(batch), torch.linalg.inv(batch))
    loss = lambda f: lambda x: (f(x) ** 3).sum()
    per_example = lambda f: torch.func.vmap(torch.func.grad(loss(f)))(batch)
    torch.testing.assert_close(per_example(tt.inv), per_example(torch.linalg.inv))
    torch.testing.assert_close(torch.func.vmap(f)(noise(5, 3, 4)).shape, torch.Size([5]))


def test_tensors_as_they_are():
    x = noise(3, 4, dtype=torch.complex128)
    torch.testing.assert_close(tt.einsum("ij,kj->ik", x, x.conj()), x @ x.mH)
    torch.testing.assert_close(tt.einsum("ij->ji", torch.imag(x.conj())), torch.imag(x.conj()).T)
    half = torch.ones(2, 3, dtype=torch.bfloat16)
    assert tt.einsum("ij,kj->ik", half, half).dtype == torch.bfloat16
    leaf = noise(3, 3).requires_grad_()
    result = tt.einsum("ij->ij", leaf)
    with torch.no_grad():
        before = leaf.clone()
        result += 1
        torch.testing.assert_close(leaf, before, rtol=0, atol=0)
    with pytest.raises(t4a.UnsupportedError, match="layout"):
        tt.softmax(torch.eye(3).to_sparse())
    with pytest.raises(t4a.UnsupportedError, match="meta"):
        tt.softmax(torch.ones(2, 2, device="meta"))
    with pytest.raises(t4a.SingularError):
        tt.inv(torch.ones(2, 2))
    logits, targets = noise(4, 3).requires_grad_(), torch.tensor([0, 1, 2, 0])
    tt.cross_entropy(logits, targets).sum().backward()
    want, logits.grad = logits.grad, None
    torch.nn.functional.cross_entropy(logits, targets, reduction="sum").backward()
    torch.testing.assert_close(want, logits.grad)


def test_a_training_step():
    weight = noise(3, 3).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    before = None
    for _ in range(5):
        loss = (tt.softmax(tt.einsum("ij,jk->ik", weight, weight)) ** 2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert before is None or loss.item() < before
        before = loss.item()


@pytest.mark.parametrize("reverse", [False, True])
def test_recurrent_layers_are_those_of_torch(reverse):
    n, batch, inputs, width = 5, 3, 4, 2
    x = noise(n, batch, inputs)
    flip = lambda y: y.flip(0) if reverse else y
    for kind, gates in ((torch.nn.LSTM, 4), (torch.nn.GRU, 3)):
        layer = kind(inputs, width, dtype=torch.float64)
        z = x @ layer.weight_ih_l0.T + layer.bias_ih_l0
        assert z.shape == (n, batch, gates * width)
        own = tt.lstm if gates == 4 else tt.gru
        result = own(z, layer.weight_hh_l0.T, layer.bias_hh_l0, reverse=reverse)
        h = result[0] if gates == 4 else result
        want = flip(layer(flip(x))[0])
        torch.testing.assert_close(h, want)
        if gates == 4:
            torch.testing.assert_close(result[1][0 if reverse else -1], layer(flip(x))[1][1][0])
        weights = list(layer.parameters())
        for got, expected in zip(torch.autograd.grad((h**2).sum(), weights), torch.autograd.grad((want**2).sum(), weights)):
            torch.testing.assert_close(got, expected)
    weight = noise(2, 8).requires_grad_()
    assert gradgradcheck(lambda z, w: tt.lstm(z, w)[0], (noise(2, 1, 8).requires_grad_(), weight))
    assert gradcheck(lambda x: tt.matrix_scan(x, "log_sum_exp"), (noise(3, 2, 2).requires_grad_(),), check_forward_ad=True)
