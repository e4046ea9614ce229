"""Operations that fail at run time under transformations of JAX: the text of the library is in the exception, and later calls
work."""

import threading

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp
from jax.errors import JaxRuntimeError

import t4a
import t4a.jax as tj

# The first call of a compiled function raises `JaxRuntimeError`. Later ones, which JAX calls without Python, raise `ValueError` for
# all errors of XLA, except those that an array has when it is used.
RAISED = (JaxRuntimeError, ValueError)

GOOD = 2 * np.eye(2, dtype=np.float32)
INDEFINITE = np.array([[1, 2], [2, 1]], np.float32)
SINGULAR = np.ones((2, 2), np.float32)
BATCH = np.stack([GOOD, GOOD, INDEFINITE])
TIED = np.eye(2, dtype=np.float32)


def first_vector(x):
    return tj.eigh(x)[1][0].sum()


def repeated(x):
    return jax.lax.scan(lambda carry, _: (tj.inv(carry), None), x, None, length=3)[0]


# A function, an operand that fails, and the beginning of the text.
CASES = {
    "cholesky": (tj.cholesky, INDEFINITE, "cholesky: matrix 0 is not positive definite, pivot 1"),
    "solve": (lambda x: tj.solve(x, x), SINGULAR, "solve: matrix 0 is singular, pivot 1"),
    "batch": (tj.cholesky, BATCH, "cholesky: matrix 2 is not positive definite"),
    "vmap": (jax.vmap(tj.cholesky), BATCH, "cholesky: matrix 2 is not positive definite"),
    "vmap, last axis": (jax.vmap(tj.cholesky, 2), np.moveaxis(BATCH, 0, 2), "cholesky: matrix 2 is not"),
    "vmap of vmap": (jax.vmap(jax.vmap(tj.cholesky)), np.stack([BATCH[:2], BATCH[1:]]), "cholesky: matrix 3 is not"),
    "NaN": (tj.svd, GOOD * np.nan, "svd: matrix 0 has an element that is NaN"),
    "grad, forward": (jax.grad(lambda x: tj.cholesky(x).sum()), INDEFINITE, "cholesky: matrix 0 is not"),
    "grad, backward": (jax.grad(first_vector), TIED, "eigh_vjp: .*matrix 0"),
    "vmap of grad": (jax.vmap(jax.grad(first_vector)), np.stack([np.diag([1, 2]).astype("f"), TIED]), "eigh_vjp: .*matrix 1"),
    "grad of vmap": (jax.grad(lambda x: jax.vmap(tj.cholesky)(x).sum()), BATCH, "cholesky: matrix 2 is not"),
    "jvp": (lambda x: jax.jvp(first_vector, (x,), (INDEFINITE,)), TIED, "eigh_jvp: .*matrix 0"),
    "hessian": (jax.hessian(lambda x: tj.cholesky(x).sum()), INDEFINITE, "cholesky: matrix 0 is not"),
    "checkpoint": (jax.grad(lambda x: jax.checkpoint(tj.inv)(x).sum()), SINGULAR, "inv: matrix 0 is singular"),
    "scan": (repeated, SINGULAR, "inv: matrix 0 is singular"),
    "cond": (lambda x: jax.lax.cond(x[0, 0] > 0, tj.cholesky, lambda x: x, x), INDEFINITE, "cholesky: matrix 0 is not"),
}  # fmt: skip


def fails(f, x, text):
    with pytest.raises(RAISED, match=f"^(INVALID_ARGUMENT|INTERNAL: Error dispatching computation): {text}") as raised:
        jax.block_until_ready(f(x))
    assert not isinstance(raised.value, t4a.T4aError)


@pytest.mark.parametrize("name", CASES)
def test_errors_at_run_time(name):
    f, bad, text = CASES[name]
    good = np.diag(np.array([2, 3], np.float32))
    good = jnp.asarray(np.stack([good] * 3, 2) if bad.shape == (2, 2, 3) else np.broadcast_to(good, bad.shape))
    want = jax.jit(f)(good)
    for g in (f, jax.jit(f)):
        fails(g, bad, text)
        for one, two in zip(jax.tree.leaves(g(good)), jax.tree.leaves(want)):
            np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-6)


def test_indices():
    f, logits = jax.jit(tj.cross_entropy), jnp.ones((2, 3))
    fails(lambda x: f(logits, x), jnp.array([0, 7]), "cross_entropy: index 7 is out of bounds for axis 1 of size 3")
    np.testing.assert_allclose(f(logits, jnp.array([0, 2])), np.log([3, 3]), rtol=1e-6)


def test_dtypes_in_errors():
    # XLA calls the library with the operands of a program, also those that Python would not accept.
    text = t4a.Op.of({"softmax": {"axis": 0}}).text
    f = lambda x: jax.ffi.ffi_call("t4a_op", [jax.ShapeDtypeStruct((2,), jnp.float16)])(x, text=text)
    fails(lambda x: f(x), jnp.ones(2, jnp.float32), ".*float32.*float16")


def test_donated_operands():
    f = jax.jit(tj.cholesky, donate_argnums=0)
    for _ in range(3):
        fails(f, jnp.asarray(INDEFINITE), "cholesky: matrix 0 is not")
        np.testing.assert_allclose(f(jnp.asarray(GOOD)), np.sqrt(GOOD), rtol=1e-6)


def late(x):
    """An operation behind others, which take long enough that JAX returns before they are complete."""
    y = x
    for _ in range(10):
        y = y @ jnp.eye(len(x), dtype=x.dtype)
    return tj.cholesky(y)


def test_asynchronous_errors():
    size = 300
    good = jnp.eye(size, dtype=jnp.float32)
    f = jax.jit(late)
    jax.block_until_ready(f(good))
    try:
        y = f(-good)
    except RAISED:
        pytest.skip("this JAX waits for the operation")
    # An error at each use, not only at the first one.
    for use in (jax.block_until_ready, np.asarray, lambda y: y + 1, jax.jit(lambda y: tj.inv(y) @ y)):
        fails(use, y, "cholesky: matrix 0 is not positive definite, pivot 0")
    # Results that nothing waits for.
    dropped = [f(-good) for _ in range(8)]
    del dropped, y
    np.testing.assert_allclose(f(good), good)


@pytest.mark.parametrize("size", [2, 200])
def test_threads(size):
    good = jnp.eye(size, dtype=jnp.float32)
    f, wrong, failed = jax.jit(late), [], []

    def work(i):
        for k in range(20):
            bad = (i + k) % 2 == 0
            try:
                y = np.asarray(f(-good if bad else good))
                if bad or not np.allclose(y, good):
                    wrong.append("a value")
            except RAISED as error:
                failed.append(error)
                if not bad or "cholesky: matrix 0 is not" not in str(error):
                    wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong and len(failed) == 80


def test_errors_while_tracing_are_those_of_the_library():
    for f, x, kind in (
        (lambda x: tj.einsum("ij,ijk->k", x, tj.einsum("ij,k->jik", x, x[0])), np.ones((2, 3), np.float32), t4a.ShapeError),
        (tj.cholesky, np.ones((2, 2), np.int32), t4a.DtypeError),
        (tj.cholesky, np.ones((2, 3), np.float32), t4a.ShapeError),
        (lambda x: tj.einsum("ij->i", x, semiring="plus"), GOOD, t4a.ArgumentError),
    ):
        batch = np.stack([x, x])
        for g, operand in ((f, x), (jax.jit(f), x), (jax.vmap(f), batch), (jax.jit(jax.vmap(f)), batch)):
            with pytest.raises(kind):
                g(operand)
