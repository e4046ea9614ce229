"""The rows of the bench `scan` in JAX: elements or steps per second, the best of many runs.

python3 -m venv /tmp/jax && /tmp/jax/bin/pip install jax && taskset -c 0 /tmp/jax/bin/python jax_scan.py
"""

import time

import jax
import jax.numpy as jnp
from jax import lax

jax.config.update("jax_enable_x64", True)


def row(name, count, f, *args):
    f = jax.jit(f)
    jax.block_until_ready(f(*args))
    best, start, runs = float("inf"), time.perf_counter(), 0
    while runs < 5 or (time.perf_counter() - start < 0.3 and runs < 10_000):
        begin = time.perf_counter()
        jax.block_until_ready(f(*args))
        best, runs = min(best, time.perf_counter() - begin), runs + 1
    print(f"{name:<52} {best * 1e6:>10.1f} µs {count / best / 1e6:>9.1f} M/s", flush=True)


def both(name, count, f, *args):
    """A function and the gradient of the sum of its results."""
    row(name, count, f, *args)
    total = lambda *args: sum(jnp.sum(y) for y in jax.tree.leaves(f(*args)))
    row(name + ": gradient", count, jax.grad(total, argnums=tuple(range(len(args)))), *args)


def recurrence(a, b):
    def step(h, ab):
        h = ab[0] * h + ab[1]
        return h, h

    return lax.scan(step, jnp.zeros_like(b[0]), (a, b))[1]


def associative(a, b):
    combine = lambda x, y: (y[0] * x[0], y[0] * x[1] + y[1])
    return lax.associative_scan(combine, (a, b))[1]


def kalman(f, q, h, r, ys, x, p):
    def step(carry, y):
        x, p = carry
        x, p = f @ x, f @ p @ f.T + q
        g = p @ h.T
        s = h @ g + r
        k = g / s
        v = y - h @ x
        x, p = x + k @ v, p - k @ g.T
        square = (v * v / s[0]).sum()
        return (x, p), (x, p, -0.5 * (square + jnp.log(s[0, 0]) + jnp.log(2 * jnp.pi)))

    return lax.scan(step, (x, p), ys)[1]


for dtype in [jnp.float32, jnp.float64]:
    for shape in [(131072, 1), (1000, 256)]:
        a, b = (jax.random.uniform(jax.random.key(i), shape, dtype, -1, 1) for i in (1, 2))
        name, count = f"{dtype.__name__} {shape}", a.size
        both(f"linear recurrence {name}", count, recurrence, a, b)
        both(f"linear recurrence {name}, associative", count, associative, a, b)
        both(f"sum {name}", count, lambda x: jnp.cumsum(x, axis=0), a)
        both(f"prod {name}", count, lambda x: jnp.cumprod(x, axis=0), 1 + 1e-3 * a)
    of = lambda x: jnp.array(x, dtype)
    system = of([[1, 0.1], [0, 1]]), of([[1e-3, 0], [0, 1e-2]]), of([[1, 0]]), of([[0.1]])
    for batch, n in [(1, 10_000), (64, 1000)]:
        ys = jax.random.uniform(jax.random.key(3), (batch, n, 1), dtype, -1, 1)
        run = lambda f, q, h, r, ys, x, p: jax.vmap(lambda y: kalman(f, q, h, r, y, x, p))(ys)
        name = f"kalman 2 states {dtype.__name__} {batch}×{n} steps"
        both(name, batch * n, run, *system, ys, of([0, 0]), of([[1, 0], [0, 1]]))
