"""The rows of the bench `loops` in JAX, on the same shapes and numbers.

    pip install "jax[cpu]"
    OMP_NUM_THREADS=1 python3 transforms/benches/peers/jax_loops.py [part]

Least time of a compiled call in microseconds of as many as fit into half a second, and nanoseconds per step; one
thread.
"""

import os
import sys
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)

FLOATS = [jnp.float32, jnp.float64]


def noise(shape, dtype):
    i = np.arange(int(np.prod(shape)))
    return jnp.asarray((((i * 7919 + 13) % 10007) / 5003.0 - 1.0).reshape(shape), dtype)


def row(name, dtype, steps, f, *operands):
    f = jax.jit(f)
    jax.block_until_ready(f(*operands))
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        start = time.perf_counter()
        jax.block_until_ready(f(*operands))
        best = min(best, time.perf_counter() - start)
    name = f"{name} {'f32' if dtype == jnp.float32 else 'f64'}"
    print(f"{name:<36} {best * 1e6:10.1f} {best * 1e9 / steps:10.1f}", flush=True)


def vectors(column):
    for n in [8, 16, 32, 64]:
        shape = (n, 1) if column else (1, n)

        def f(w, c, xs):
            def step(c, x):
                c = ((w @ c if column else c @ w) + x) * jnp.float32(0.5)
                return c, c

            return lax.scan(step, c, xs)[1]

        w, c = noise((n, n), jnp.float32) * 0.1, noise(shape, jnp.float32)
        name = f"{'column' if column else 'row'} {n}"
        row(name, jnp.float32, 1000, f, w, c, noise((1000, *shape), jnp.float32))


def system(steps, dtype):
    model = [[[1, 0.1], [0, 1]], [[3e-4, 5e-3], [5e-3, 0.1]], [[1.0, 0]], [[0.25]]]
    state = [[[0.0], [0.0]], [[10.0, 0], [0, 10]]]
    of = lambda all: [jnp.array(x, dtype) for x in all]
    return of(model), of(state), noise((steps, 1, 1), dtype)


def kalman_filter(model, state, zs):
    f, q, h, r = model

    def step(carry, z):
        x, p = carry
        x, p = f @ x, f @ p @ f.T + q
        hp = h @ p
        gain = hp.T / (hp @ h.T + r)
        x, p = x + gain * (z - h @ x), p - gain @ hp
        return (x, p), x

    return lax.scan(step, tuple(state), zs)[1]


def kalman():
    for dtype in FLOATS:
        row("kalman", dtype, 10_000, kalman_filter, *system(10_000, dtype))
    loss = lambda model, state, zs: (kalman_filter(model, state, zs) ** 2).sum()
    for dtype in FLOATS:
        gradient = jax.grad(loss, argnums=(0, 1, 2))
        row("kalman gradient", dtype, 1000, gradient, *system(1000, dtype))


def batch():
    for dtype in FLOATS:
        model, state, _ = system(1, dtype)
        f = jax.vmap(kalman_filter, in_axes=(None, None, 0))
        row("kalman, 16 series", dtype, 1000, f, model, state, noise((16, 1000, 1, 1), dtype))


def numbers():
    for dtype in FLOATS:

        def f(xs):
            def step(c, x):
                c = c * jnp.asarray(0.9, dtype) + x
                return c, c

            return lax.scan(step, jnp.zeros(1, dtype), xs)[1]

        row("numbers", dtype, 131_072, f, noise((131_072, 1), dtype))


def recurrent():
    for dtype in FLOATS:

        def loss(w, u, c, xs):
            def step(c, x):
                c = jnp.tanh(c @ w + x @ u)
                return c, c

            return (lax.scan(step, c, xs)[1] ** 2).sum()

        w = noise((64, 64), dtype) * 0.1
        gradient = jax.grad(loss, argnums=(0, 1, 2, 3))
        row("tanh 64 gradient", dtype, 200, gradient, w, w, noise((1, 64), dtype), noise((200, 1, 64), dtype))


PARTS = {
    "columns": lambda: vectors(True),
    "rows": lambda: vectors(False),
    "kalman": kalman,
    "batch": batch,
    "numbers": numbers,
    "recurrent": recurrent,
}
for part, run in PARTS.items():
    if len(sys.argv) < 2 or sys.argv[1] == part:
        run()
