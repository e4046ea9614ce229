"""The Kalman body of the bench `compile` with JAX: `lax.scan` of the same step, compiled.

    pip install jax
    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1" taskset -c 0 \
        python3 transforms/compile/benches/peers/jax_kalman.py

Millions of steps per second of the best of the runs within about a second, one thread.
"""

import math
import time

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

import jax.numpy as jnp
import numpy as np

STEPS = 10_000


def step(model, state, z):
    f, q, h, r = model
    x, p = state
    x = f @ x
    p = f @ p @ f.T + q
    hp = h @ p
    s = hp @ h.T + r
    gain = hp.T / s
    x = x + gain * (z - h @ x)
    p = p - gain @ hp
    return (x, p), x


def best(run):
    run()
    start, least, runs = time.perf_counter(), math.inf, 0
    while runs < 3 or time.perf_counter() - start < 1.0:
        now = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - now)
        runs += 1
    return least


def reference(model, state, zs):
    """The same loop in NumPy."""
    out = []
    for z in zs:
        state, x = step(model, state, z)
        out.append(x)
    return np.stack(out)


def main():
    print(f"JAX {jax.__version__}")
    for dtype in (np.float64, np.float32):
        model = tuple(
            np.array(x, dtype)
            for x in (
                [[1.0, 0.1], [0.0, 1.0]],
                [[3e-4, 5e-3], [5e-3, 0.1]],
                [[1.0, 0.0]],
                [[0.25]],
            )
        )
        state = (np.zeros((2, 1), dtype), 10.0 * np.eye(2, dtype=dtype))
        zs = np.sin(np.arange(STEPS) * 0.01).astype(dtype).reshape(STEPS, 1, 1)
        want = reference(model, state, zs)
        run = jax.jit(lambda m, s, z: jax.lax.scan(lambda c, z: step(m, c, z), s, z)[1])
        inputs = jax.tree.map(jnp.asarray, (model, state, zs))
        np.testing.assert_allclose(run(*inputs), want, rtol=1e-3, atol=1e-3)
        for unroll in (1, 8):
            run = jax.jit(
                lambda m, s, z: jax.lax.scan(lambda c, z: step(m, c, z), s, z, unroll=unroll)[1]
            )
            seconds = best(lambda: run(*inputs).block_until_ready())
            rate = 1e-6 * STEPS / seconds
            print(f"{np.dtype(dtype).name} unroll {unroll}: {1e6 * seconds:9.1f} µs, {rate:6.2f} M steps/s")


if __name__ == "__main__":
    main()
