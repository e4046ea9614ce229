"""Times of PyTorch and JAX on a GPU for the rows of the bench `gpu`.

python3 gpu/tests/benches/peers.py [TEXT]

Median of seven timings, each of as many calls as take about 5 ms. Rows whose names contain the text. Rows of
`torch.compile` include no compilation. The first rows are ceilings of the card: additions and maxima from registers, a
copy.
"""

import sys
import time

import torch

PICK = sys.argv[1] if len(sys.argv) > 1 else ""
torch.backends.cuda.matmul.allow_tf32 = False


def seconds(f, repeats, wait):
    start = time.perf_counter()
    for _ in range(repeats):
        out = f()
    wait(out)
    return (time.perf_counter() - start) / repeats


def row(name, f, work=None, unit="", wait=lambda _: torch.cuda.synchronize()):
    if PICK not in name:
        return
    try:
        seconds(f, 1, wait)
        once = seconds(f, 1, wait)
        repeats = int(min(max(5e-3 / once, 1), 100))
        time_ = sorted(seconds(f, repeats, wait) for _ in range(7))[3]
    except Exception as error:  # A missing peer is a row too.
        print(f"{name:<52} {type(error).__name__}: {str(error)[:80]}", flush=True)
        return
    rate = f"{work / time_:12.3f} {unit}" if work else ""
    print(f"{name:<52} {time_ * 1e3:>10.4f} {rate}", flush=True)


def random(*shape, dtype=torch.float32):
    return torch.rand(*shape, device="cuda", dtype=dtype) * 2 - 1


CEILINGS = r"""
#include <cuda_fp16.h>
extern "C" __global__ void pairs(float* o, int n, float s) {
    float a[16], b = s + threadIdx.x;
    for (int i = 0; i < 16; i++) a[i] = i * s;
    for (int t = 0; t < n; t++) {
#pragma unroll
        for (int i = 0; i < 16; i++) a[i] = fmaxf(a[i], a[(i + 5) & 15] + b);
    }
    float r = 0;
    for (int i = 0; i < 16; i++) r += a[i];
    o[blockIdx.x * blockDim.x + threadIdx.x] = r;
}
extern "C" __global__ void half_pairs(__half2* o, int n, float s) {
    __half2 a[16], b = __float2half2_rn(s + threadIdx.x);
    for (int i = 0; i < 16; i++) a[i] = __float2half2_rn(i * s);
    for (int t = 0; t < n; t++) {
#pragma unroll
        for (int i = 0; i < 16; i++) a[i] = __hmax2(a[i], __hadd2(a[(i + 5) & 15], b));
    }
    __half2 r = b;
    for (int i = 0; i < 16; i++) r = __hadd2(r, a[i]);
    o[blockIdx.x * blockDim.x + threadIdx.x] = r;
}
"""


def ceilings():
    import cupy

    out = cupy.empty(132 * 8 * 256, dtype=cupy.float32)
    n, blocks, units = 20000, 132 * 8, 256
    module = cupy.RawModule(code=CEILINGS, options=("-I/usr/local/cuda/include",))
    wait = lambda _: cupy.cuda.Device().synchronize()
    for name, per in [("pairs", 1), ("half_pairs", 2)]:
        kernel = module.get_function(name)
        f = lambda: kernel((blocks,), (units,), (out, cupy.int32(n), cupy.float32(1e-6)))
        row(f"ceiling: {name}", f, blocks * units * 16.0 * n * per / 1e12, "10¹² pairs/s", wait)
    x = random(8192, 8192)
    y = torch.empty_like(x)
    row("ceiling: copy 8192×8192", lambda: y.copy_(x), x.numel() * 8e-9, "GB/s")


def products():
    for n in (1024, 4096):
        a, b = random(n, n), random(n, n)
        pairs = n**3 / 1e12
        unit = "10¹² pairs/s"
        broadcast = lambda a, b: (a[:, :, None] + b[None]).amax(1)
        compiled = torch.compile(broadcast)
        row(f"torch.compile max-plus {n} f32", lambda: compiled(a, b), pairs, unit)
        if n == 1024:
            x, y = a.clone().requires_grad_(), b.clone().requires_grad_()

            def gradient():
                x.grad = y.grad = None
                rows = [broadcast(x[i : i + 64], y) for i in range(0, n, 64)]
                torch.cat(rows).sum().backward()

            row(f"torch max-plus {n} f32 and gradient", gradient, pairs, unit)

        def log_sum_exp(a, b):
            rows, columns = a.amax(1, keepdim=True), b.amax(0, keepdim=True)
            return ((a - rows).exp() @ (b - columns).exp()).log() + rows + columns

        row(f"torch log-sum-exp {n} f32 by a product", lambda: log_sum_exp(a, b), pairs, unit)
        row(f"torch matmul {n} f32", lambda: a @ b, pairs, unit)
        z, w = torch.complex(a, b), torch.complex(b, a)
        row(f"torch matmul {n} c64", lambda: z @ w, 4 * pairs, unit)


def scans():
    import jax
    import jax.numpy as jnp

    def combine(x, y):
        return x[0] * y[0], y[0] * x[1] + y[1]

    scan = jax.jit(lambda a, b: jax.lax.associative_scan(combine, (a, b), axis=0)[1])
    grad = jax.jit(jax.grad(lambda ab: scan(*ab).sum()))
    wait = lambda out: jax.block_until_ready(out)
    for n, width in [(1000, 256), (1000, 8192), (131072, 16), (131072, 1), (100000, 64)]:
        a, b = random(n, width), random(n, width)
        work = 4e-9 * n * width
        row(f"torch cumsum {n}×{width}", lambda: a.cumsum(0), 2 * work, "GB/s")
        row(f"torch cummax {n}×{width}", lambda: a.cummax(0), 2 * work, "GB/s")
        row(f"torch logcumsumexp {n}×{width}", lambda: a.logcumsumexp(0), 2 * work, "GB/s")
        ja, jb = jnp.asarray(a.cpu().numpy()), jnp.asarray(b.cpu().numpy())
        row(f"jax recurrence {n}×{width}", lambda: scan(ja, jb), 3 * work, "GB/s", wait)
        row(f"jax recurrence {n}×{width} and gradient", lambda: grad((ja, jb)), 9 * work, "GB/s", wait)


def factorisations():
    for dtype in (torch.float32, torch.float64):
        for batch, n in [(1000, 32), (1, 256), (1, 1024)]:
            x = random(batch, n, n, dtype=dtype)
            spd = x @ x.mT + n * torch.eye(n, device="cuda", dtype=dtype)
            name = f"{batch}×{n}×{n} {str(dtype)[6:]}"
            linalg = torch.linalg
            row(f"torch cholesky {name}", lambda: linalg.cholesky(spd), batch, "matrices/s")
            row(f"torch qr {name}", lambda: linalg.qr(x), batch, "matrices/s")
            row(f"torch solve {name}", lambda: linalg.solve(spd, x), batch, "matrices/s")
            row(f"torch eigh {name}", lambda: linalg.eigh(spd), batch, "matrices/s")
            svd = lambda: linalg.svd(x, full_matrices=False)
            row(f"torch svd {name}", svd, batch, "matrices/s")


def blocks():
    import random as numbers

    numbers.seed(0)
    for count, least, most in [(500, 8, 96), (2000, 4, 32), (64, 128, 512)]:
        size = lambda: numbers.randint(least, most)
        sizes = [(size(), size(), size()) for _ in range(count)]
        work = sum(m * k * n for m, k, n in sizes) / 1e12
        a, b = random(count, most, most), random(count, most, most)
        name = f"torch bmm of {count} blocks padded to {most}"
        row(name, lambda: a @ b, work, "10¹² useful pairs/s")
    x = random(8192, 8192)
    transposed = lambda: x.mT.contiguous()
    row("torch transposed copy 8192×8192", transposed, x.numel() * 8e-9, "GB/s")


print(torch.__version__, torch.cuda.get_device_name(0))
for group in (ceilings, products, scans, factorisations, blocks):
    group()
