import numpy as np
import functions
import pytest

torch = pytest.importorskip("torch")
from torch.autograd import gradcheck, gradgradcheck

import t4a
import t4a.torch as tt

torch.manual_seed(5)


def noise(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype)


T = functions.of_module(tt, torch.tensor)


def test_denormal_numbers():
    tiny = np.finfo(np.float64).tiny
    x, half = torch.tensor([tiny], dtype=torch.float64), torch.tensor([0.5], dtype=torch.float64)
    if not torch.set_flush_denormal(True):
        pytest.skip("the CPU does not flush them")
    try:
        assert (x * half).numpy().tobytes() == bytes(8)
        y = tt.einsum("i,i->i", x, half)
        assert (x * half).numpy().tobytes() == bytes(8)
    finally:
        torch.set_flush_denormal(False)
    assert y.item() == tiny / 2


def test_every_function_has_a_case():
    assert functions.called() == functions.all_names() - functions.CONSTANT


@pytest.mark.parametrize("name, kind", functions.ALL)
def test_grads(name, kind):
    f, operands = functions.case(name, kind)
    inputs = [torch.tensor(x, requires_grad=True) for x in operands]
    of = lambda *x: f(T, *x)
    assert gradcheck(of, inputs, check_forward_ad=True)
    assert gradgradcheck(of, inputs, check_fwd_over_rev=True, check_rev_over_rev=True)


def test_derivatives_of_truncations_by_value():
    x = torch.diag(torch.tensor([4.0, 3.0, 0.5], dtype=torch.float64)) + noise(3, 3) / 20

    def product(u, s, vh, _):
        return (u * s) @ vh

    by_value, by_number = ({"relative_cutoff": 0.5}, {"relative_discarded_weight": 0.1}), {"max_dim": 2}
    want = torch.func.jacrev(lambda x: product(*tt.svd_truncated(x, **by_number)))(x)
    torch.testing.assert_close(want, torch.func.jacrev(lambda x: tt.low_rank(x, 2))(x))
    for options in by_value:
        f = lambda x: product(*tt.svd_truncated(x, **options))
        assert gradcheck(f, (x.clone().requires_grad_(),))
        torch.testing.assert_close(torch.autograd.functional.jacobian(f, x), want)
    assert not tt.svd_truncated(x.requires_grad_(), max_dim=2)[3].requires_grad
    batch = torch.stack([x, 2 * x]).detach()
    for got, two in zip(torch.func.vmap(lambda x: tt.svd_truncated(x, max_dim=2))(batch), tt.svd_truncated(batch, max_dim=2)):
        torch.testing.assert_close(got, two)


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


@pytest.mark.parametrize("name", functions.of_a_matrix(tt._FUNCTIONS))
def test_functions_of_a_batch(name):
    f, batch = getattr(tt, name), noise(3, 2, 2)
    batch = batch @ batch.mT + torch.eye(2)
    leaves = lambda y: y if isinstance(y, tuple) else (y,)
    for got, want in zip(leaves(torch.func.vmap(f)(batch)), leaves(f(batch)), strict=True):
        torch.testing.assert_close(got, want)
    for y in leaves(f(batch.float())):
        assert y.dtype in (torch.float32, torch.complex64, torch.int64)


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
    with pytest.raises(t4a.DtypeError, match="there are no tensors of qint8"):
        tt.softmax(torch.quantize_per_tensor(torch.eye(3), 0.1, 0, torch.qint8))
    with pytest.raises(t4a.SingularError):
        tt.inv(torch.ones(2, 2))
    logits, targets = noise(4, 3).requires_grad_(), torch.tensor([0, 1, 2, 0])
    tt.cross_entropy(logits, targets).sum().backward()
    want, logits.grad = logits.grad, None
    torch.nn.functional.cross_entropy(logits, targets, reduction="sum").backward()
    torch.testing.assert_close(want, logits.grad)


def test_batches_without_examples():
    for f, operands in (
        (lambda x, y: tt.einsum("ij,jk->ik", x, y), (noise(1, 4, 5), noise(1, 5, 3))),
        (tt.matrix_scan, (noise(1, 2, 3, 3),)),
        (tt.svd, (noise(1, 2, 3),)),
    ):
        leaves = lambda y: y if isinstance(y, tuple) else (y,)
        none, some = (leaves(torch.func.vmap(f)(*(x.new_ones(n, *x.shape[1:]) for x in operands))) for n in (0, 2))
        for got, want in zip(none, some, strict=True):
            assert got.shape == (0, *want.shape[1:]) and got.dtype == want.dtype


def test_traces_and_functionalizations():
    a, b = noise(4, 5), noise(5, 3)
    f = lambda x: tt.einsum("ij,jk->ik", x, b) + x[:, :3]
    for _ in range(2):
        # Not the result of the example as a constant.
        traced = torch.jit.trace(f, a, check_trace=False)
        torch.testing.assert_close(traced(2 * a), f(2 * a))
        torch.testing.assert_close(torch.func.functionalize(f)(a), f(a))
    with pytest.raises(t4a.UnsupportedError, match="svd_truncated: .*unknown"):
        torch.jit.trace(lambda x: tt.svd_truncated(x, cutoff=0.1)[1], a)


def test_autocast_changes_nothing():
    x = torch.randn(4, 4, requires_grad=True)
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = tt.einsum("ij,jk->ik", x, x)
        assert y.dtype == torch.float32 and torch.autograd.grad(y.sum(), x)[0].dtype == torch.float32


def test_errors_name_the_dtypes_of_torch():
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool):
        name, x = str(dtype).removeprefix("torch."), torch.ones(2, 2, dtype=dtype)
        for call in (lambda: tt.einsum("ij,jk->ik", x, x), lambda: tt.softmax(x), lambda: tt.svd(x)):
            with pytest.raises(t4a.DtypeError, match=f"operand 0 has dtype {name}, floats are required"):
                call()
        # Also where the other operand is recorded.
        with pytest.raises(t4a.DtypeError, match=f"operand 1 has dtype {name}, floats are required"):
            tt.einsum("ij,jk->ik", noise(2, 2).requires_grad_(), x)
    with pytest.raises(t4a.DtypeError, match="bfloat16.*float32 or float64"):
        tt.inv(torch.ones(2, 2, dtype=torch.bfloat16))


def test_cached_contractions_are_recorded_and_transformed():
    a, b = noise(3, 4), noise(4, 2)
    f = lambda a, b: tt.einsum("ij,jk->ik", a, b)
    want, leaf, ones = a @ b, a.clone().requires_grad_(), torch.ones(3, 2, dtype=a.dtype)

    class Seen(torch.utils._python_dispatch.TorchDispatchMode):
        names = []

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.append(str(function))
            return function(*args, **(kwargs or {}))

    # From the second pass on every call finds the operation of the first.
    for i in range(3):
        torch.testing.assert_close(f(a, b), want)
        assert f(leaf, b).requires_grad
        torch.testing.assert_close(torch.autograd.grad(f(leaf, b).sum(), leaf)[0], ones @ b.T)
        assert f(torch.nn.Parameter(a), b).requires_grad
        with torch.no_grad():
            assert not f(leaf, b).requires_grad
        with torch.inference_mode():
            assert f(a, b).is_inference()
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(a, 2 * a)
            torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(f(dual, b)).tangent, 2 * want)
        torch.testing.assert_close(torch.func.grad(lambda a: f(a, b).sum())(a), ones @ b.T)
        torch.testing.assert_close(torch.func.vmap(f, (0, None))(torch.stack([a, -a]), b), torch.stack([want, -want]))
        with Seen():
            torch.testing.assert_close(f(a, b), want)
        assert Seen.names.count("t4a.run.default") == i + 1
        z = torch.complex(a, a.flip(0))
        for x in (z, z.conj(), z.imag, z.conj().imag, torch._neg_view(a)):
            torch.testing.assert_close(tt.einsum("ij->ji", x), x.resolve_conj().resolve_neg().T.contiguous())
            torch.testing.assert_close(tt.einsum("ij,ij->", x, x), (x * x).sum())


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
