"""Rows of the bench `compile` in JAX: ten elementwise operations, a layer norm of small operations with its gradients, and
training steps of a perceptron.

    pip install "jax[cpu]"
    OMP_NUM_THREADS=1 python3 transforms/compile/benches/peers/jax_compiled.py

Microseconds of the best of the calls within half a second, one thread, f32.
"""

import os
import time

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp


def row(name, f, *operands):
    f = jax.jit(f)
    jax.block_until_ready(f(*operands))
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        start = time.perf_counter()
        jax.block_until_ready(f(*operands))
        best = min(best, time.perf_counter() - start)
    print(f"{name:<32} {best * 1e6:10.1f}", flush=True)


def random(seed, *shape):
    return jax.random.uniform(jax.random.key(seed), shape, jnp.float32, -1, 1)


def ten(x, y):
    a = (x * 2 + y) * x
    b = jnp.abs(a - y) + 1
    return (x * b) / (b + y) * 0.5


def norm(x, gamma):
    centred = x - x.mean(1, keepdims=True)
    variance = (centred * centred).mean(1, keepdims=True)
    y = centred / jnp.sqrt(variance + 1e-5) * gamma
    return (y * y).sum()


def loss(weights, x, y):
    w, b, v, c = weights
    error = jnp.tanh(x @ w + b) @ v + c - y
    return (error * error).mean()


def step(weights, x, y):
    gradients = jax.grad(loss)(weights, x, y)
    return jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradients)


row("ten elementwise 1024²", ten, random(1, 1024, 1024), random(2, 1024, 1024))
row("layer norm fwd+bwd 1024²", jax.grad(norm, argnums=(0, 1)), random(1, 1024, 1024), random(2, 1024))
for batch, hidden in [(8, 32), (64, 512)]:
    weights = random(1, hidden, hidden), random(2, hidden), random(3, hidden, 10), random(4, 10)
    row(f"MLP step b{batch} h{hidden}", step, weights, random(5, batch, hidden), random(6, batch, 10))
