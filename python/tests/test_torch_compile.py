import gc
import sys
import weakref

import functions
import pytest

torch = pytest.importorskip("torch")

import t4a
import t4a.torch as tt
from t4a import Op, _functions
from t4a.structured import Leg, Spec
from t4a.torch import nn

torch.manual_seed(2)


T = functions.of_module(tt, torch.tensor)


def noise(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def value_and_gradients(f, inputs):
    inputs = [x.clone().requires_grad_() for x in inputs]
    results = f(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    sum((y.abs() ** 2).sum() for y in results).backward()
    return results, [x.grad for x in inputs]


@pytest.mark.parametrize("name, kind", functions.COMPILED)
def test_compiled_is_eager(name, kind):
    f, operands = functions.case(name, kind)
    inputs = [torch.tensor(x) for x in operands]
    torch._dynamo.reset()
    compiled = torch.compile(lambda *x: f(T, *x), fullgraph=True, backend="aot_eager")
    eager = lambda *x: f(T, *x)
    for got, want in zip(value_and_gradients(compiled, inputs), value_and_gradients(eager, inputs)):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(compiled(*inputs), eager(*inputs), rtol=0, atol=0)


@pytest.mark.parametrize("of", [torch.func.grad, torch.func.hessian, lambda f: torch.func.vmap(torch.func.grad(f))])
def test_compiled_transformations(of):
    x = noise(2, 3, 3) if of not in (torch.func.grad, torch.func.hessian) else noise(3, 3)
    for f in (lambda x: tt.einsum("ij,jk->ik", x, x).pow(2).sum(), lambda x: tt.expm(x / 9).pow(2).sum()):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: of(f)(x), fullgraph=True, backend="aot_eager")
        for y in (x, -x):
            torch.testing.assert_close(compiled(y), of(f)(y))


@pytest.mark.parametrize("subscripts", ["ij,jk->ik", [[1, 2], [2, 3], [1, 3]], "ij,jk->", "...j,jk->...k"])
def test_compiled_optima(subscripts):
    a, b = noise(4, 5), noise(5, 3)
    f = lambda a, b: tt.argmax_einsum(subscripts, a, b)
    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    for x in (a, -a):
        (got, indices), (want, wanted) = compiled(x, b), f(x, b)
        assert list(indices) == list(wanted)
        torch.testing.assert_close((got, *indices.values()), (want, *wanted.values()), rtol=0, atol=0)


def operations(name, kind):
    """Operations that a function runs, with their operands."""
    seen = []

    def record(op, *tensors):
        seen.append((op.text, tensors))
        return tt.apply(op, *tensors)

    name_of, cast = (lambda dtype: str(dtype).removeprefix("torch.")), (lambda x, name: x.to(getattr(torch, name)))
    recorded = functions.flavour(_functions.build(record, torch.as_tensor, name_of, cast, arrays=torch), torch.tensor)
    f, operands = functions.case(name, kind)
    f(recorded, *map(torch.tensor, operands))
    assert seen
    return seen


def test_compiled_functions_of_submodules():
    import t4a.torch.linalg

    assert t4a.torch.linalg.svd is tt.svd and tt.scan.cumsum is tt.cumsum and tt.crf.marginals is tt.marginals
    x = noise(3, 3)
    torch._dynamo.reset()
    f = torch.compile(lambda x: tt.linalg.cond(x), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(f(x), torch.linalg.cond(x))


def test_sizes_that_depend_on_values():
    x, spec = noise(4, 3), functions.SPECS[0]
    cut, graded = (lambda x: tt.svd_truncated(x, cutoff=1e-9)[1]), (lambda x: tt.graded_svd_truncated(x, spec, max_dim=1)[1])
    for f, operand in ((cut, x), (graded, noise(spec.size))):
        assert f(operand).shape[-1] > 0
        torch._dynamo.reset()
        with pytest.raises(Exception, match="svd_truncated"):
            torch.compile(f, fullgraph=True, backend="aot_eager")(operand)
        with pytest.raises(t4a.UnsupportedError, match="svd_truncated: .*unknown"):
            torch.func.vmap(f)(torch.stack([operand, operand]))


def test_compiled_functions_of_specs():
    bond, spin = Leg({-1: 2, 0: 3, 1: 2}), Leg({0: 1, 1: 1})
    a, b = Spec([bond, spin, bond.conj], 2), Spec([bond, bond.conj], 1)
    weights = nn.Weights(b, dtype=torch.float64)

    def f(x, y):
        # Specs of results are those of operands of the next call, and are returned.
        z, spec = tt.graded_contract(x, y, (a, b), ((2,), (0,)))
        z, spec = weights(z, spec, ((2,), (0,)))
        u, s, vh, left, right = tt.graded_svd(z, spec)
        return s, left, right

    torch._dynamo.reset()
    compiled, inputs = torch.compile(f, fullgraph=True, backend="aot_eager"), [noise(a.size), noise(b.size)]
    assert compiled(*inputs)[1:] == f(*inputs)[1:]
    own = lambda f: value_and_gradients(lambda x, y: f(x, y)[0], inputs)
    for got, want in zip(own(compiled), own(f)):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    assert torch.compile(lambda x: tt.graded_svd(x, a)[1:], fullgraph=True, backend="aot_eager")(inputs[0])[2:] == (
        tt.graded_svd(inputs[0], a)[3:]
    )


@pytest.mark.parametrize("name, kind", functions.ALL)
def test_opcheck(name, kind):
    for text, operands in operations(name, kind):
        for records in (False, True):
            inputs = [x.detach().clone() for x in operands]
            inputs = [x.requires_grad_(records and (x.is_floating_point() or x.is_complex())) for x in inputs]
            found = torch.library.opcheck(torch.ops.t4a.run.default, (text, inputs))
            assert set(found.values()) == {"SUCCESS"} and len(found) == 4


def test_opcheck_of_views_and_derivatives():
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
