"""Times of functions on CUDA tensors, in milliseconds: t4a against formulations in PyTorch. `python benches/cuda.py`."""

import time

import torch

import t4a.torch as tt


def best(f, repetitions=7):
    """Least time of a call, with all work on the device complete."""
    f()
    f()
    times = []
    for _ in range(repetitions):
        torch.cuda.synchronize()
        start = time.perf_counter()
        f()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def row(name, own, other=None):
    try:
        mine = best(own)
        peer = f"{best(other):9.3f}" if other else ""
        print(f"{name:48} {mine:9.3f} {peer}", flush=True)
    except Exception as error:
        print(f"{name:48} {type(error).__name__}: {error}", flush=True)


def product(semiring, x, y):
    return lambda: tt.einsum("ij,jk->ik", x, y, semiring=semiring)


def by_broadcasting(semiring, x, y):
    reduce = {"max_plus": lambda z: z.amax(1), "log_sum_exp": lambda z: z.logsumexp(1)}[semiring]
    return lambda: reduce(x[:, :, None] + y[None])


def with_gradient(f, *leaves):
    return lambda: torch.autograd.grad(f().sum(), leaves)


def noise(*shape):
    return torch.randn(*shape, device="cuda", requires_grad=True)


def loop(a, b):
    h, all = torch.zeros_like(b[0]), []
    for x, y in zip(a.unbind(0), b.unbind(0)):
        h = x * h + y
        all.append(h)
    return torch.stack(all)


if __name__ == "__main__":
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n{'':48} {'t4a':>9} {'PyTorch':>9}")
    with torch.no_grad():
        a, b = noise(4, 4), noise(4, 4)
        row("product of 4 x 4, the cost of a call", product("standard", a, b), lambda: a @ b)
    for semiring in ("max_plus", "log_sum_exp"):
        for n in (256, 1024):
            a, b = noise(n, n), noise(n, n)
            own, other = product(semiring, a, b), by_broadcasting(semiring, a, b)
            with torch.no_grad():
                row(f"{semiring} {n}", own, other)
            row(f"{semiring} {n}, with the gradient", with_gradient(own, a, b), with_gradient(other, a, b))
            torch.cuda.empty_cache()
    a, b = noise(1000, 256), noise(1000, 256)
    row("linear_recurrence 1000 x 256", lambda: tt.linear_recurrence(a, b), lambda: loop(a, b))
    row(
        "linear_recurrence 1000 x 256, with the gradient",
        with_gradient(lambda: tt.linear_recurrence(a, b), a, b),
        with_gradient(lambda: loop(a, b), a, b),
    )
    x = noise(1000, 8, 8)
    row("svdvals 1000 x 8 x 8", lambda: tt.svdvals(x), lambda: torch.linalg.svdvals(x))
    row("svdvals 1000 x 8 x 8, with the gradient", with_gradient(lambda: tt.svdvals(x), x), with_gradient(lambda: torch.linalg.svdvals(x), x))
