"""CUDA tensors against the same functions on the CPU. They need a card, PyTorch with CUDA, and libt4a_cuda."""

import threading

import functions
import numpy as np
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device", allow_module_level=True)

import t4a
import t4a.torch as tt
from t4a.torch import nn

torch.manual_seed(7)


def noise(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype)


def on_card(x):
    return x.detach().to("cuda").requires_grad_(x.requires_grad)


def tensors(y):
    return [y] if isinstance(y, torch.Tensor) else [x for x in y if isinstance(x, torch.Tensor)]


def weighted(ys):
    """A number that depends on all elements, with different weights."""
    total = 0
    for k, y in enumerate(ys):
        if y.is_floating_point() or y.is_complex():
            parts = torch.view_as_real(y) if y.is_complex() else y
            weights = torch.sin(torch.arange(parts.numel(), dtype=torch.float64) + k + 1).to(parts)
            total = total + (parts * weights.reshape(parts.shape)).sum()
    return total


def orders(f, xs, order):
    """Results; gradients; derivatives of a functional of the gradients."""
    ys = tensors(f(*xs))
    found = [list(ys)]
    leaves = [x for x in xs if x.requires_grad]
    if order > 0:
        grads = torch.autograd.grad(weighted(ys), leaves, create_graph=order > 1, allow_unused=True)
        found.append([g for g in grads if g is not None])
    if order > 1:
        loss = weighted([g * g for g in found[1]])
        found.append([g for g in torch.autograd.grad(loss, leaves, allow_unused=True) if g is not None])
    return found


def same(f, xs, order=2, tolerance=1e-5, on_the_card=None):
    """Compares results and derivatives with those on the CPU."""
    want = orders(f, xs, order)
    got = orders(on_the_card or f, [on_card(x) for x in xs], order)
    for level, (mine, others) in enumerate(zip(got, want)):
        assert len(mine) == len(others)
        for x, y in zip(mine, others):
            assert x.is_cuda and x.dtype == y.dtype, (x.device, x.dtype, y.dtype)
            scale = max(1.0, y[y.isfinite()].abs().max().item() if y.isfinite().any() else 1.0)
            message = lambda text: f"derivatives of order {level}: {text}"
            torch.testing.assert_close(x.cpu(), y, rtol=tolerance, atol=tolerance * scale * 10**level, msg=message, equal_nan=True)


def leaf(*shape, dtype=torch.float32):
    return noise(*shape, dtype=dtype).requires_grad_()


SEMIRINGS = ("standard", "max_plus", "min_plus", "max_min", "log_sum_exp")


@pytest.mark.parametrize("semiring", SEMIRINGS)
def test_einsum(semiring):
    f = lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring=semiring)
    same(f, (leaf(5, 7), leaf(7, 3)))
    same(f, (leaf(5, 7, dtype=torch.float64), leaf(7, 3, dtype=torch.float64)), tolerance=1e-10)
    same(lambda a, b: tt.einsum("bij,bjk->bik", a, b, semiring=semiring), (leaf(4, 33, 17), leaf(4, 17, 20)), order=1, tolerance=1e-4)


def test_semiring_zeros():
    a = torch.tensor([[-torch.inf, -torch.inf], [0.0, 1.0]])
    b = torch.tensor([[2.0, -torch.inf], [3.0, -torch.inf]])
    for semiring in ("max_plus", "log_sum_exp"):
        same(lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring=semiring), (a, b), order=0)
        same(lambda a: tt.einsum("ij->i", a, semiring=semiring), (a,), order=0)


def test_linear_recurrence():
    same(lambda a, b: tt.linear_recurrence(a, b), (leaf(50, 6), leaf(50, 6)), tolerance=1e-4)
    same(lambda a, b: tt.linear_recurrence(a, b, axis=1, reverse=True), (leaf(3, 40), leaf(3, 40)), tolerance=1e-4)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])
def test_cumulative(name):
    same(lambda x: getattr(tt, name)(x, axis=1), (leaf(4, 30),), order=1, tolerance=1e-4)
    same(lambda x: getattr(tt, name)(x, reverse=True), (leaf(9, 4, dtype=torch.float64),), tolerance=1e-9)


def test_cholesky():
    spd = lambda x: x @ x.mT + 4 * torch.eye(8, device=x.device)
    same(lambda x: tt.cholesky(spd(x)), (leaf(16, 8, 8),), tolerance=1e-4)


def test_eigh():
    same(lambda x: functions.of_eigh(tt, x + x.mT), (leaf(16, 8, 8),), order=1, tolerance=1e-3)
    same(lambda x: tt.eigvalsh(x), (leaf(4, 8, 8, dtype=torch.float64),), tolerance=1e-8)


def test_svd():
    same(lambda x: functions.of_svd(tt, x), (leaf(16, 8, 8),), order=1, tolerance=1e-3)
    same(lambda x: tt.svdvals(x), (leaf(4, 8, 6, dtype=torch.float64),), tolerance=1e-8)


def test_a_large_factorisation():
    same(lambda x: tt.svdvals(x), (leaf(90, 90),), order=1, tolerance=1e-3)


def test_solve_and_inverse():
    eye = lambda x: 4 * torch.eye(8, device=x.device)
    same(lambda a, b: tt.solve(a + eye(a), b), (leaf(5, 8, 8), leaf(5, 8, 2)), tolerance=1e-4)
    same(lambda a: tt.inv(a + eye(a)), (leaf(5, 8, 8),), tolerance=1e-4)


def test_strided_operands():
    f = lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring="max_plus")
    views = {
        "transposed": (lambda x: x.mT, (9, 6)),
        "sliced": (lambda x: x[1:7, 2:11], (8, 12)),
        "stepped": (lambda x: x[::2, ::3], (12, 27)),
        "a column of a batch": (lambda x: x[:, :, 1], (6, 9, 3)),
        "expanded": (lambda x: x.expand(6, 9), (1, 9)),
        "of windows": (lambda x: x.unfold(0, 9, 1), (14,)),
        "permuted": (lambda x: x.permute(2, 1, 0)[1], (6, 9, 2)),
    }
    b = leaf(9, 4)
    for name, (view, shape) in views.items():
        x = leaf(*shape)
        assert view(x).shape == (6, 9), name
        same(lambda a, b: f(view(a), b), (x, b), order=1)
    # Rows of a large span, which are copied one by one.
    large = torch.arange(4096 * 1024, dtype=torch.float32, device="cuda").reshape(4096, 1024)
    for view in (lambda x: x[:, 5], lambda x: x[::7, 3:9], lambda x: x[5::100, ::300], lambda x: x.reshape(64, 64, 1024)[:, 3:40, 7]):
        x = view(large)
        torch.testing.assert_close(tt.cumsum(0 * x) + x, x)
        got = tt.einsum("i...->...", x.contiguous(), semiring="max_plus")
        torch.testing.assert_close(tt.einsum("i...->...", x, semiring="max_plus"), got, rtol=0, atol=0)
        torch.testing.assert_close(got, x.amax(0), rtol=0, atol=0)


def test_dtypes():
    for dtype, tolerance in ((torch.float16, 2e-2), (torch.bfloat16, 1e-1)):
        a, b = noise(6, 5).to(dtype), noise(5, 4).to(dtype)
        for semiring in ("max_plus", "log_sum_exp"):
            f = lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring=semiring)
            same(f, (a.requires_grad_(), b.requires_grad_()), order=1, tolerance=tolerance)


def test_complex_numbers():
    for dtype, tolerance in ((torch.complex64, 1e-4), (torch.complex128, 1e-9)):
        a, b = leaf(4, 5, dtype=dtype), leaf(5, 3, dtype=dtype)
        same(lambda a, b: tt.einsum("ij,jk->ik", a, b), (a, b), tolerance=tolerance)
        same(lambda a: tt.einsum("ij->ji", a.conj()), (a,), order=1, tolerance=tolerance)
        same(lambda a, b: tt.einsum("ij,jk->ik", a.mT, b), (leaf(5, 4, dtype=dtype), b), order=1, tolerance=tolerance)
        same(lambda a: tt.einsum("ij,ij->", a, a), (a,), tolerance=tolerance)


def test_integers():
    logits, targets = leaf(6, 4), torch.tensor([0, 1, 3, 2, 1, 0])
    same(tt.cross_entropy, (logits, targets))
    same(tt.cross_entropy, (logits, targets.to(torch.int32)), order=1)
    a, b = torch.randint(0, 3, (4, 5)).float(), torch.randint(0, 3, (5, 6)).float()
    value, places = tt.argmax_einsum("ij,jk->ik", a.cuda(), b.cuda())
    want, expected = tt.argmax_einsum("ij,jk->ik", a, b)
    assert places["j"].dtype == torch.int64 and places["j"].is_cuda
    assert torch.equal(value.cpu(), want) and torch.equal(places["j"].cpu(), expected["j"])
    assert torch.equal(tt.counting_einsum("ij,jk->ik", a.cuda(), b.cuda())[1].cpu(), tt.counting_einsum("ij,jk->ik", a, b)[1])
    torch.testing.assert_close(tt.k_best_einsum("ij,jk->ik", a.cuda(), b.cuda(), k=3).cpu(), tt.k_best_einsum("ij,jk->ik", a, b, k=3))
    x = noise(5, 4)
    assert torch.equal(tt.qr_pivoted(x.cuda())[2].cpu(), tt.qr_pivoted(x)[2])


def test_numbers_and_empty_tensors():
    x, y = leaf(3, 4), torch.tensor(2.0, requires_grad=True)
    same(lambda x: tt.einsum("ij->", x), (x,))
    same(lambda x: tt.einsum("ij,ij->", x, x, semiring="log_sum_exp"), (x,))
    same(lambda x, y: tt.einsum("ij,->ij", x, y), (x, y))
    same(lambda y: tt.einsum(",->", y, y), (y,))
    for shape in ((0, 4), (3, 0)):
        same(lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring="max_plus"), (leaf(*shape), leaf(shape[1], 2)), order=1)
    same(lambda x: tt.cumsum(x), (leaf(0, 3),), order=1)


def test_forward_mode_and_func():
    a, b = noise(4, 5), noise(5, 3)
    f = lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring="log_sum_exp")
    for device in ("cpu", "cuda"):
        x, t, y = a.to(device), torch.ones_like(a, device=device), b.to(device)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, t)
            tangent = torch.autograd.forward_ad.unpack_dual(f(dual, y)).tangent
        torch.testing.assert_close(tangent.cpu(), torch.ones(4, 3))
    number = lambda x: (f(x, x.mT) ** 2).sum()
    torch.testing.assert_close(torch.func.hessian(number)(a.cuda()).cpu(), torch.func.hessian(number)(a), rtol=1e-4, atol=1e-4)
    batch = noise(6, 4, 4) + 4 * torch.eye(4)
    torch.testing.assert_close(torch.func.vmap(tt.inv)(batch.cuda()).cpu(), torch.linalg.inv(batch), rtol=1e-4, atol=1e-5)


def test_compile():
    f = torch.compile(lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring="max_plus").sum(), fullgraph=True, backend="aot_eager")
    same(lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring="max_plus").sum(), (leaf(4, 5), leaf(5, 3)), order=1, on_the_card=f)


def test_other_streams():
    a, b = noise(64, 512), noise(512, 64)
    f = lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring="max_plus")
    want = f(a, b)
    x, y, busy = a.cuda(), b.cuda(), torch.randn(3000, 3000, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            # The operand is written by work of the stream that begins late.
            delayed = torch.zeros_like(x)
            for _ in range(20):
                busy = busy @ busy / 3000
            delayed.copy_(x)
            z = f(delayed, y)
            delayed.fill_(torch.nan)
            total = (z + 1) - 1
            torch.testing.assert_close(total.cpu(), want)
    leaf = x.clone().requires_grad_()
    with torch.cuda.stream(stream):
        loss = f(leaf, y).sum()
    torch.cuda.current_stream().wait_stream(stream)
    loss.backward()
    cpu = a.clone().requires_grad_()
    f(cpu, b).sum().backward()
    torch.testing.assert_close(leaf.grad.cpu(), cpu.grad)


def test_memory_is_not_used_again_while_it_is_read():
    x = torch.randn(2048, 2048, device="cuda")
    side = torch.cuda.Stream()
    for k in range(10):
        y = tt.cumsum(x + k)
        want = torch.cumsum(x + k, 0)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            late = torch.randn(3000, 3000, device="cuda")
            for _ in range(10):
                late = late @ late / 3000
            read = y * 2
        del y
        other = tt.cumsum(x - 1000)
        torch.cuda.current_stream().wait_stream(side)
        torch.testing.assert_close(read, 2 * want, rtol=1e-3, atol=1e-2)
        del other
    # Results are memory of their own, also where an operation returns its operand.
    y = tt.einsum("ij->ij", x)
    z = tt.einsum("ij->ij", x)
    y.zero_()
    torch.testing.assert_close(z, x, rtol=0, atol=0)
    q, r = tt.qr(torch.randn(4, 4, device="cuda"))
    before = r.clone()
    q.zero_()
    torch.testing.assert_close(r, before, rtol=0, atol=0)
    t4a.free_cuda_memory()
    torch.testing.assert_close(z, x, rtol=0, atol=0)


def test_threads():
    a, b = noise(32, 32), noise(32, 32)
    want = tt.einsum("ij,jk->ik", a, b, semiring="max_plus")
    failures = []

    def work():
        try:
            x, y = a.cuda(), b.cuda()
            for _ in range(20):
                torch.testing.assert_close(tt.einsum("ij,jk->ik", x, y, semiring="max_plus").cpu(), want)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failures, failures[0]


def test_errors():
    x = torch.ones(3, 3, device="cuda")
    with pytest.raises(t4a.UnsupportedError, match="cuda:0.*cpu|cpu.*cuda:0"):
        tt.einsum("ij,jk->ik", x, torch.ones(3, 3))
    with pytest.raises(t4a.ShapeError):
        tt.einsum("ij,jk->ik", x, torch.ones(4, 3, device="cuda"))
    with pytest.raises(t4a.DtypeError, match="float64|dtype"):
        tt.einsum("ij,jk->ik", x, x.double())
    with pytest.raises(t4a.DtypeError, match="int64"):
        tt.softmax(torch.ones(2, 2, dtype=torch.int64, device="cuda"))
    with pytest.raises(t4a.SingularError):
        tt.inv(x)
    with pytest.raises(t4a.SingularError) as error:
        tt.cholesky(torch.stack([torch.eye(3), -torch.eye(3)]).cuda())
    assert error.value.batch == 1
    with pytest.raises(t4a.UnsupportedError, match="layout"):
        tt.softmax(torch.eye(3, device="cuda").to_sparse())
    # The next operation works.
    assert tt.einsum("ij->", x).item() == 9
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(t4a.UnsupportedError, match="graph"):
        with torch.cuda.graph(graph):
            tt.softmax(x)
    assert tt.einsum("ij->", x).item() == 9


def test_layers():
    crf = nn.CRF(3)
    emissions, tags = leaf(2, 4, 3), torch.tensor([[0, 1, 2, 0], [1, 1, 0, 2]])
    card = nn.CRF(3, device="cuda")
    card.load_state_dict(crf.state_dict())
    same(lambda x, y: crf(x, y), (emissions, tags), order=1, on_the_card=lambda x, y: card(x, y))
    same(lambda x: crf.marginals(x), (emissions,), order=0, on_the_card=lambda x: card.marginals(x))
    same(lambda x, w: tt.marginals(x, w, [4, 2]), (emissions, leaf(3, 3)), order=1, tolerance=1e-4)
    assert card.decode(emissions.cuda()) == crf.decode(emissions)


def test_numpy_functions():
    import t4a.numpy as tn

    a, b = noise(4, 5), noise(5, 3)
    result = tn.einsum("ij,jk->ik", a.cuda(), b.cuda(), semiring="max_plus")
    assert isinstance(result, t4a.CudaArray) and result.shape == (4, 3) and result.dtype == "float32"
    want = tt.einsum("ij,jk->ik", a, b, semiring="max_plus")
    for _ in range(2):
        torch.testing.assert_close(torch.from_dlpack(result).cpu(), want)
    torch.testing.assert_close(torch.from_dlpack(tn.cumsum(result)).cpu(), tt.cumsum(want))
    number = tn.einsum("ij->", a.cuda())
    assert number.shape == ()
    torch.testing.assert_close(torch.from_dlpack(number).cpu(), a.sum())
    solved = tn.solve(torch.eye(3, device="cuda"), torch.ones(3, device="cuda"))
    assert torch.equal(torch.from_dlpack(solved).cpu(), torch.ones(3))
    with pytest.raises(t4a.UnsupportedError, match="processor"):
        tn.einsum("ij,jk->ik", a.cuda(), b.numpy())


def test_cupy():
    cupy = pytest.importorskip("cupy")
    import t4a.numpy as tn

    x = cupy.arange(12, dtype=cupy.float32).reshape(3, 4)
    y = cupy.from_dlpack(tn.einsum("ij,kj->ik", x, x[::-1, ::-1], semiring="max_plus"))
    want = tn.einsum("ij,kj->ik", x.get(), x.get()[::-1, ::-1], semiring="max_plus")
    np.testing.assert_array_equal(y.get(), want)
    np.testing.assert_allclose(cupy.from_dlpack(tn.cumsum(x.T)).get(), np.cumsum(x.get().T, 0))
    z = x + 1j * x
    np.testing.assert_allclose(cupy.from_dlpack(tn.einsum("ij,ij->i", z, z)).get(), (z.get() ** 2).sum(1), rtol=1e-6)
    u, s, vh = map(cupy.from_dlpack, tn.svd(x + cupy.eye(3, 4, dtype=cupy.float32)))
    np.testing.assert_allclose((u.get() * s.get()) @ vh.get(), x.get() + np.eye(3, 4), atol=1e-4)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        w = cupy.zeros((512, 512), dtype=cupy.float32)
        for _ in range(50):
            w = w @ w + 1
            w = w / w.max()
        got = cupy.from_dlpack(tn.einsum("ij->i", w, semiring="max_plus")).get()
    np.testing.assert_array_equal(got, w.get().max(1))


@pytest.mark.parametrize("name, kind", functions.ALL)
def test_every_function(name, kind):
    f, operands = functions.case(name, kind)
    xs = [torch.tensor(x, requires_grad=True) for x in operands]
    cpu, card = (functions.of_module(tt, lambda x, d=d: torch.tensor(x, device=d)) for d in ("cpu", "cuda"))
    same(lambda *xs: f(cpu, *xs), xs, order=2, tolerance=1e-7, on_the_card=lambda *xs: f(card, *xs))
