import os
import subprocess
import sys

import functions
import numpy as np
import pytest

# Two devices for `shard_map`, before JAX starts.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")
jax = pytest.importorskip("jax")
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jax.test_util import check_grads

import t4a
import t4a.jax as tj

jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(3)


def noise(*shape, dtype="float64"):
    x = rng.normal(size=shape)
    return jnp.asarray(x + 1j * rng.normal(size=shape) if dtype == "complex128" else x)


T = functions.of_module(tj, jnp.asarray)


@pytest.mark.parametrize("name, kind", functions.ALL)
def test_grads(name, kind):
    f, operands = functions.case(name, kind)
    inputs = tuple(map(jnp.asarray, operands))
    check_grads(lambda *x: f(T, *x), inputs, order=2, modes=("fwd", "rev"), atol=2e-4, rtol=2e-4)


def test_denormal_numbers():
    # XLA flushes them to zero, so that one of a hundred factorisations of complex matrices was wrong.
    tiny = np.finfo(np.float64).tiny
    assert tj.einsum("i,i->i", jnp.array([tiny]), jnp.array([0.5]))[0].tobytes() == np.float64(tiny / 2).tobytes()
    for seed in range(300):
        x = np.random.default_rng(seed).normal(size=(2, 3, 2))
        x = x[0] + 1j * x[1]
        u, s, vh = map(np.asarray, tj.svd(jnp.asarray(x)))
        np.testing.assert_allclose(u * s @ vh, x, atol=1e-12)


def test_convention_of_complex_cotangents():
    x, y = noise(3, 3, dtype="complex128"), noise(3, 3, dtype="complex128")
    for f, g in [(lambda x: tj.einsum("ij,jk->ik", x, y), lambda x: x @ y), (tj.inv, jnp.linalg.inv)]:
        loss = lambda f: lambda x: jnp.abs(f(x) ** 2 + y).sum()
        np.testing.assert_allclose(jax.grad(loss(f))(x), jax.grad(loss(g))(x), rtol=1e-9)
        ours, theirs = (jax.vjp(f, x)[1](y)[0] for f in (f, g))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_sizes_that_depend_on_values():
    x, spec = jnp.diag(jnp.array([4.0, 3.0, 0.5])) + noise(3, 3) / 20, functions.SPECS[0]

    def product(x, **options):
        u, s, vh, _ = tj.svd_truncated(x, **options)
        return (u * s) @ vh

    want = jax.jit(jax.jacrev(lambda x: product(x, max_dim=2)))(x)
    np.testing.assert_allclose(want, jax.jacrev(lambda x: tj.low_rank(x, 2))(x), atol=1e-12)
    for options in ({"relative_cutoff": 0.5}, {"relative_discarded_weight": 0.1}):
        np.testing.assert_allclose(jax.jacrev(lambda x: product(x, **options))(x), want, atol=1e-12)
        check_grads(lambda x: product(x, **options), (x,), order=2, modes=("fwd", "rev"), atol=2e-4, rtol=2e-4)
    batch = jnp.stack([x, 2 * x])
    for got, two in zip(jax.vmap(lambda x: tj.svd_truncated(x, max_dim=2))(batch), tj.svd_truncated(batch, max_dim=2)):
        np.testing.assert_allclose(got, two, atol=1e-12)
    graded = lambda x: tj.graded_svd_truncated(x, spec, max_dim=2)[1]
    for f, x in ((lambda x: product(x, cutoff=1.0), x), (graded, noise(spec.size))):
        for transformed, operand in ((jax.jit(f), x), (jax.vmap(f), jnp.stack([x, x])), (jax.jit(jax.grad(lambda x: f(x).sum())), x)):
            with pytest.raises(t4a.UnsupportedError, match="svd_truncated: .*unknown"):
                transformed(operand)


def transposes(f, g, x):
    """Compares the transposes of two linear functions, and transposes of these."""
    y = jax.eval_shape(g, x)
    cotangent = noise(*y.shape, dtype=str(y.dtype))
    for of in (lambda f: jax.linear_transpose(f, x), lambda f: jax.jit(jax.linear_transpose(f, x))):
        np.testing.assert_allclose(of(f)(cotangent)[0], of(g)(cotangent)[0], rtol=1e-9, atol=1e-12)
    twice = lambda f: jax.linear_transpose(lambda y: jax.linear_transpose(f, x)(y)[0], y)(x)[0]
    np.testing.assert_allclose(twice(f), g(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_transposes_of_linear_functions(dtype):
    a, x, y = noise(3, 4, dtype=dtype), noise(4, 2, dtype=dtype), noise(3, 3, dtype=dtype)
    for subscripts, before, after in (
        ("ij,jk->ik", (a,), ()), ("jk,ij->ik", (), (a,)), ("ij,jk->", (a,), ()), ("jk->", (), ()), ("jk->kj", (), ()),
        ("ij,jk,kl,il->jl", (a,), (noise(2, 3, dtype=dtype), y)), ("...k,j->k...", (), (a[0],)),
    ):  # fmt: skip
        transposes(*(lambda x, t=t: t.einsum(subscripts, *before, x, *after) for t in (tj, jnp)), x)
    # Functions that are linear in real and imaginary part alone.
    transposes(*(lambda x, t=t: t.einsum("ij,jk->ik", a, x.conj()) + t.einsum("ij,jk->ik", a, x).real for t in (tj, jnp)), x)
    square = y + 4 * jnp.eye(3)
    b = noise(3, 2, dtype=dtype)
    transposes(lambda b: tj.solve(square, b), lambda b: jnp.linalg.solve(square, b), b)
    transposes(lambda b: tj.solve(square, b), lambda b: jnp.linalg.solve(square, b), b[:, 0])
    transposes(lambda b: tj.solve_triangular(square, b, upper=True), lambda b: jax.scipy.linalg.solve_triangular(square, b), b)
    transposes(lambda b: tj.lstsq(y[:, :2], b), lambda b: jnp.linalg.pinv(y[:, :2]) @ b, b)
    transposes(lambda b: tj.cumsum(b, 1, reverse=True), lambda b: jnp.cumsum(b[:, ::-1], 1)[:, ::-1], b)
    transposes(lambda b: tj.linear_recurrence(jnp.ones((3, 2)), b), lambda b: jnp.cumsum(b, 0), b)
    # The pullback of a nonlinear function.
    transposes(lambda t: jax.vjp(tj.inv, square)[1](t)[0], lambda t: jax.vjp(jnp.linalg.inv, square)[1](t)[0], y)
    # Over a batch, and in a loop.
    batched = lambda t: lambda x: jax.vmap(lambda x: t.einsum("ij,j->i", a, x), 1)(x)
    transposes(batched(tj), batched(jnp), x)
    looped = lambda t: lambda y: jax.lax.scan(lambda c, _: (t.einsum("ij,jk->ik", square, c), c[0]), y, None, length=2)[1]
    transposes(looped(tj), looped(jnp), y)
    # Derivatives of a transpose with respect to the other operand.
    loss = lambda t: lambda a: jnp.abs(jax.linear_transpose(lambda x: t.einsum("ij,jk->ik", a, x), x)(b)[0]).sum()
    np.testing.assert_allclose(jax.grad(loss(tj))(a), jax.grad(loss(jnp))(a), rtol=1e-9)


def test_transposes_of_solvers():
    spec = functions.SPECS
    a, x = noise(spec[0].size), noise(spec[1].size)
    f = lambda x: tj.graded_contract(a, x, spec, ((2,), (0,)))[0]
    (got,) = jax.linear_transpose(f, x)(f(x))
    np.testing.assert_allclose(got, jax.vjp(f, x)[1](f(x))[0], rtol=1e-12)
    # A matrix-free solver calls the transpose.
    matrix, b = noise(4, 4) + 6 * jnp.eye(4), noise(4)
    solution = lambda product: lambda matrix: jax.scipy.sparse.linalg.gmres(lambda x: product(matrix, x), b, tol=1e-12)[0]
    for of in (jax.jacrev, jax.jacfwd):
        got, want = (of(solution(product))(matrix) for product in (lambda m, x: tj.einsum("ij,j->i", m, x), jnp.matmul))
        np.testing.assert_allclose(got, want, atol=1e-8)


def test_functions_without_a_transpose():
    x = noise(3, 3)
    for f in (
        lambda x: tj.einsum("ij,jk->ik", x, x), lambda x: tj.einsum("ij,jk->ik", x, x + 1), tj.inv, tj.softmax,
        lambda x: tj.einsum("ij,jk->ik", noise(3, 3), x, semiring="max_plus"), lambda x: tj.solve(x, noise(3, 3)),
    ):  # fmt: skip
        with pytest.raises(t4a.ArgumentError, match="linear"):
            jax.linear_transpose(f, x)(x)


def test_linearize():
    a, x, t = noise(3, 4), noise(4, 2), noise(4, 2)
    for f, g in (
        (lambda x: tj.einsum("ij,jk->ik", a, x), lambda x: a @ x),
        (lambda x: tj.einsum("jk,jl->kl", x, x), lambda x: x.T @ x),
        (lambda x: tj.einsum("ij,jk->ik", a, x, semiring="log_sum_exp"), lambda x: jax.nn.logsumexp(a[:, :, None] + x, 1)),
    ):
        (y, along), (want, along_want) = jax.linearize(f, x), jax.linearize(g, x)
        np.testing.assert_allclose(y, want, rtol=1e-12)
        np.testing.assert_allclose(along(t), along_want(t), rtol=1e-10)
        transposes(along, along_want, x)


def test_hessian_jit_vmap():
    a, b = noise(3, 4), noise(4, 3)
    f = lambda x: tj.einsum("ij,ji->", x, b, semiring="log_sum_exp")
    g = lambda x: jax.nn.logsumexp(x + b.T)
    np.testing.assert_allclose(jax.jit(jax.hessian(f))(a), jax.hessian(g)(a), atol=1e-10)
    np.testing.assert_allclose(jax.jacrev(jax.jacrev(f))(a), jax.hessian(g)(a), atol=1e-10)
    batch = noise(5, 3, 3) + 4 * jnp.eye(3)
    np.testing.assert_allclose(jax.vmap(tj.inv)(batch), jnp.linalg.inv(batch), atol=1e-12)
    loss = lambda f: lambda x: (f(x) ** 3).sum()
    np.testing.assert_allclose(
        jax.vmap(jax.grad(loss(tj.inv)))(batch), jax.vmap(jax.grad(loss(jnp.linalg.inv)))(batch), atol=1e-9
    )
    # A single operand has the batch axis; and an operation without a batching rule.
    right = noise(3, 2)
    np.testing.assert_allclose(
        jax.vmap(tj.solve, (0, None))(batch, right), jax.vmap(jnp.linalg.solve, (0, None))(batch, right), atol=1e-12
    )
    for x in (batch, np.asarray(batch)):
        got = jax.vmap(tj.matrix_scan)(x[:, None])[:, 0]
        np.testing.assert_allclose(got, x, atol=1e-12)
    assert jax.vmap(tj.matrix_scan)(batch[:0, None]).shape == (0, 1, 3, 3)
    wide = noise(5, 3, 4)
    np.testing.assert_allclose(jax.vmap(jax.jit(f))(wide), jax.vmap(g)(wide), atol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.grad(f), 1)(noise(3, 5, 4)).shape, (5, 3, 4))


def test_errors_and_dtypes():
    with pytest.raises(t4a.ShapeError):
        tj.inv(jnp.ones((2, 3)))
    assert tj.softmax(jnp.ones((2, 3), jnp.float32)).dtype == jnp.float32
    with pytest.raises(Exception, match="singular"):
        jax.block_until_ready(tj.inv(jnp.ones((2, 2))))
    logits, targets = noise(4, 3), jnp.array([0, 1, 2, 0])
    got = jax.grad(lambda x: tj.cross_entropy(x, targets).sum())(logits)
    want = jax.grad(lambda x: -jax.nn.log_softmax(x)[jnp.arange(4), targets].sum())(logits)
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_hessians_of_a_batch():
    f = lambda x: tj.einsum("ij,ji->", x, x, semiring="log_sum_exp")
    g = lambda x: jax.nn.logsumexp(x + x.T)
    batch = noise(4, 3, 3)
    got, want = (jax.jit(jax.vmap(jax.hessian(f)))(batch) for f in (f, g))
    np.testing.assert_allclose(got, want, atol=1e-12)
    invert = lambda f: lambda x: f(x + 3 * jnp.eye(3)).sum()
    got, want = (jax.jit(jax.vmap(jax.hessian(invert(f))))(batch) for f in (tj.inv, jnp.linalg.inv))
    np.testing.assert_allclose(got, want, atol=1e-9)


def test_shard_map():
    mesh = jax.make_mesh((2,), ("b",), axis_types=(jax.sharding.AxisType.Auto,))
    x, w, rows = noise(4, 3, 3), noise(3, 2), PartitionSpec("b")
    product = lambda x, w: tj.einsum("bij,jk->bik", x, w, semiring="log_sum_exp")
    sharded = jax.shard_map(product, mesh=mesh, in_specs=(rows, PartitionSpec()), out_specs=rows)
    dense = lambda x, w: jax.nn.logsumexp(x[..., None] + w, 2)
    np.testing.assert_allclose(jax.jit(sharded)(x, w), dense(x, w), atol=1e-12)
    loss = lambda f: lambda x, w: (f(x, w) ** 2).sum()
    for of in (lambda f: jax.grad(f, (0, 1)), lambda f: jax.hessian(f, 1)):
        for got, want in zip(*(jax.tree.leaves(jax.jit(of(loss(f)))(x, w)) for f in (sharded, dense))):
            np.testing.assert_allclose(got, want, atol=1e-10)
    total = jax.shard_map(lambda x: jax.lax.psum(tj.logcumsumexp(x)[-1].sum(), "b"), mesh=mesh, in_specs=rows, out_specs=PartitionSpec())
    want = sum(jax.nn.logsumexp(x[i : i + 2], 0).sum() for i in (0, 2))
    np.testing.assert_allclose(total(x), want, atol=1e-12)


@pytest.mark.parametrize("name", functions.of_a_matrix(tj._FUNCTIONS))
def test_functions_of_a_batch(name):
    f, batch = getattr(tj, name), noise(3, 2, 2)
    batch = batch @ batch.swapaxes(1, 2) + jnp.eye(2)
    want = f(batch)
    for got in (jax.vmap(f)(batch), jax.vmap(f)(np.asarray(batch)), jax.jit(f)(batch)):
        for one, two in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12, atol=1e-12)


def test_single_precision():
    program = """
import jax.numpy as jnp, numpy as np, t4a.jax as tj
a = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, 3)), jnp.float32)
packed, rows = tj.lu_factor(a)
assert packed.dtype == jnp.float32 and rows.dtype == jnp.int32
np.testing.assert_allclose(a @ tj.lu_solve(packed, rows, a), a, atol=1e-4)
np.testing.assert_allclose(a @ tj.lu_solve(packed, rows, a[:, :, :1]), a[:, :, :1], atol=1e-4)
for y in (tj.matrix_norm(a), tj.cond(a), *tj.lu(a), tj.lyapunov_discrete(a, a)):
    assert y.dtype == jnp.float32
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_submodules():
    import t4a.jax.linalg

    assert t4a.jax.linalg.svd is tj.svd and tj.scan.cumsum is tj.cumsum and tj.crf.marginals is tj.marginals
    x = noise(3, 3)
    np.testing.assert_allclose(jax.jit(tj.linalg.cond)(x), jnp.linalg.cond(x), rtol=1e-10)


def test_export():
    pytest.importorskip("flatbuffers")
    from jax import export

    f = lambda x: tj.einsum("ij,jk->ik", x, x, semiring="log_sum_exp")
    x, check = noise(3, 3), export.DisabledSafetyCheck.custom_call("t4a_op")
    made = export.export(jax.jit(f), disabled_checks=[check])(jax.ShapeDtypeStruct((3, 3), jnp.float64))
    # The serialised program contains the text of the operation, and no address.
    read = export.deserialize(made.serialize(vjp_order=1))
    np.testing.assert_allclose(read.call(x), f(x), rtol=0)
    got, want = (jax.grad(lambda x: (f(x) ** 2).sum())(x) for f in (read.call, f))
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_within_control_flow():
    f = lambda x: tj.einsum("ij,jk->ik", x, x, semiring="log_sum_exp")
    x = noise(3, 3)
    scanned = lambda x: jax.lax.scan(lambda c, _: (f(c), None), x, None, length=3)[0].sum()
    np.testing.assert_allclose(jax.grad(scanned)(x), jax.grad(lambda x: f(f(f(x))).sum())(x), atol=1e-12)
    remat = jax.grad(lambda x: jax.checkpoint(f)(x).sum())(x)
    np.testing.assert_allclose(remat, jax.grad(lambda x: f(x).sum())(x), atol=1e-14)
