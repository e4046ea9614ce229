import gc
import sys
import weakref

import pytest

torch = pytest.importorskip("torch")

import t4a
import t4a.torch as tt
from t4a import Op

torch.manual_seed(2)


def noise(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def positive(n):
    x = noise(n, n)
    return x @ x.T + torch.eye(n)


FUNCTIONS = {
    "einsum": (lambda x, y: tt.einsum("ij,jk->ik", x, y), (noise(2, 3), noise(3, 4))),
    "einsum_max_plus": (lambda x, y: tt.einsum("ij,jk->ik", x, y, semiring="max_plus"), (noise(2, 3), noise(3, 4))),
    "einsum_labels": (lambda x: tt.einsum([[1, 2], []], x, semiring="log_sum_exp"), (noise(2, 3),)),
    "svd": (lambda x: tt.svd(x, check_gauge=False)[1], (noise(4, 3),)),
    "svdvals": (tt.svdvals, (noise(2, 4, 3),)),
    "qr": (lambda x: tt.qr(x)[0], (noise(4, 3),)),
    "cholesky": (tt.cholesky, (positive(3),)),
    "eigh": (lambda x: tt.eigh(x, check_gauge=False)[0], (positive(3),)),
    "eigvalsh": (tt.eigvalsh, (positive(3),)),
    "inv": (tt.inv, (positive(3),)),
    "det": (tt.det, (positive(3),)),
    "slogdet": (lambda x: tt.slogdet(x)[1], (positive(3),)),
    "solve": (tt.solve, (positive(3), noise(3, 2))),
    "pinv": (tt.pinv, (noise(4, 3),)),
    "expm": (tt.expm, (noise(3, 3),)),
    "sqrtm": (tt.sqrtm, (positive(3),)),
    "logm": (tt.logm, (positive(3),)),
    "polar": (lambda x: tt.polar(x)[0], (positive(3),)),
    "softmax": (tt.softmax, (noise(2, 3),)),
    "log_softmax": (tt.log_softmax, (noise(2, 3),)),
    "cross_entropy": (lambda x: tt.cross_entropy(x, torch.tensor([0, 2])), (noise(2, 3),)),
    "cumsum": (lambda x: tt.cumsum(x, axis=1), (noise(2, 3),)),
    "cumprod": (tt.cumprod, (noise(2, 3),)),
    "cummax": (tt.cummax, (noise(2, 3),)),
    "cummin": (tt.cummin, (noise(2, 3),)),
    "logcumsumexp": (tt.logcumsumexp, (noise(2, 3),)),
    "linear_recurrence": (tt.linear_recurrence, (noise(4, 2), noise(4, 2))),
    "log_partition": (lambda x, w: tt.log_partition(x, w, [3, 2]), (noise(2, 3, 2), noise(2, 2))),
    "kalman_filter": (
        lambda *x: tt.kalman_filter(*x)[2],
        (noise(2, 2) / 2, positive(2), noise(1, 2), positive(1), noise(3, 4, 1), noise(2), positive(2)),
    ),
}


def value_and_gradients(f, inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    result = f(*inputs)
    (result**2).sum().backward()
    return result, [x.grad for x in inputs]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_compiled_is_eager(name):
    f, inputs = FUNCTIONS[name]
    torch._dynamo.reset()
    compiled = torch.compile(lambda *x: f(*x), fullgraph=True, backend="aot_eager")
    for got, want in zip(value_and_gradients(compiled, inputs), value_and_gradients(f, inputs)):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(compiled(*inputs), f(*inputs), rtol=0, atol=0)


OPERATIONS = {
    "einsum": (Op.einsum([[1, 2], [2, 3]], [(3, 4), (4, 2)], [1, 3], "log_sum_exp"), (noise(3, 4), noise(4, 2))),
    "qr": (Op.of({"linalg": {"op": {"qr": {"columns": "thin"}}, "complex": False}}), (noise(4, 3),)),
    "inv": (Op.of({"linalg": {"op": {"inv": None}, "complex": False}}), (positive(3),)),
    "softmax": (Op.of({"softmax": {"axis": 1}}), (noise(2, 3),)),
    "log_partition": (Op.of({"log_partition": {"lengths": [3, 2]}}), (noise(2, 3, 2), noise(2, 2))),
    "kalman_filter": (Op.of({"kalman_filter": None}), FUNCTIONS["kalman_filter"][1]),
    "cumsum": (Op.of({"cumulative": {"kind": "sum", "axis": 0, "reverse": False, "complex": False}}), (noise(4, 2),)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_opcheck(name):
    op, inputs = OPERATIONS[name]
    for operands in (list(inputs), [x.clone().requires_grad_() for x in inputs]):
        found = torch.library.opcheck(torch.ops.t4a.run.default, (op.text, operands))
        assert set(found.values()) == {"SUCCESS"} and len(found) == 4
    # An operation that returns its operand, and its derivative.
    same = Op.einsum([[1, 2]], [(3, 4)], [1, 2])
    torch.library.opcheck(torch.ops.t4a.run.default, (same.text, [noise(3, 4)]))
    vjp = same.vjp([True], [True])
    torch.library.opcheck(torch.ops.t4a.run.default, (vjp.text, [noise(3, 4), noise(3, 4).requires_grad_()]))


def test_sizes_that_change():
    f = lambda x, y: tt.einsum("ij,jk->ik", x, y, semiring="log_sum_exp").sum()
    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager", dynamic=True)
    for n in (3, 5, 7):
        x, y = noise(n, 4), noise(4, 2)
        torch.testing.assert_close(compiled(x, y), f(x, y))


def test_the_operator_is_the_function():
    x, y = noise(3, 4).requires_grad_(), noise(4, 2)
    op = Op.einsum([[1, 2], [2, 3]], [(3, 4), (4, 2)], [1, 3], "log_sum_exp")
    (result,) = torch.ops.t4a.run(op.text, [x, y])
    torch.testing.assert_close(result, tt.einsum("ij,jk->ik", x, y, semiring="log_sum_exp"), rtol=0, atol=0)
    assert torch.autograd.gradcheck(lambda x: torch.ops.t4a.run(op.text, [x, y]), (x,))
    assert torch.autograd.gradgradcheck(lambda x: torch.ops.t4a.run(op.text, [x, y]), (x,))
    batch = noise(5, 3, 4)
    got = torch.func.vmap(lambda x: torch.ops.t4a.run(op.text, [x, y])[0])(batch)
    torch.testing.assert_close(got, torch.logsumexp(batch[..., None] + y, 2))
    with pytest.raises(t4a.ArgumentError):
        torch.ops.t4a.run("{", [x])


def test_forward_mode_through_the_operator():
    x, y, v = noise(3, 4), noise(4, 2), noise(3, 4)
    op = Op.einsum([[1, 2], [2, 3]], [(3, 4), (4, 2)], [1, 3], "log_sum_exp")
    f = lambda x: torch.ops.t4a.run(op.text, [x, y])[0]
    g = lambda x: torch.logsumexp(x[..., None] + y, 1)
    (got, tangent), (want, wanted) = (torch.func.jvp(f, (x,), (v,)) for f in (f, g))
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(tangent, wanted)
    inputs = (x.requires_grad_(),)
    assert torch.autograd.gradcheck(f, inputs, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, inputs)
    with pytest.raises(t4a.UnsupportedError, match="forward mode over reverse"):
        torch.autograd.gradgradcheck(f, inputs, check_fwd_over_rev=True)


def test_export():
    class Product(torch.nn.Module):
        def forward(self, x, y):
            return tt.einsum("ij,jk->ik", x, y, semiring="min_plus")

    x, y = noise(3, 4), noise(4, 2)
    program = torch.export.export(Product(), (x, y))
    assert any("t4a.run" in str(node.target) for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(x, y), Product()(x, y), rtol=0, atol=0)


def test_memory_is_released():
    x, gone = noise(50, 50), []
    references = sys.getrefcount(x)
    results = [tt.softmax(x) for _ in range(10)]
    after, own = sys.getrefcount(x), sys.getrefcount(results[0])
    assert after == references and own == 2
    weakref.finalize(results[0], gone.append, 1)
    results.clear()
    gc.collect()
    assert gone == [1]
