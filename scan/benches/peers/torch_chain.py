"""The rows `ln Z` of the bench `scan` in PyTorch: a loop over steps with one product of exponentials each.

    pip install torch numpy
    OMP_NUM_THREADS=1 python3 scan/benches/peers/torch_chain.py

Microseconds of the best of the runs within about a second; threads are those of OMP_NUM_THREADS.
"""

import time

import torch


def best(run):
    run()
    start, least, runs = time.perf_counter(), float("inf"), 0
    while runs < 3 or time.perf_counter() - start < 1.0:
        now = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - now)
        runs += 1
    return 1e6 * least


def log_partition(x, w):
    """Messages as logarithms, with the maximum of each chain subtracted before the product."""
    factors = w.exp()
    a = x[:, 0]
    for t in range(1, x.shape[1]):
        most = a.max(1, keepdim=True).values
        a = ((a - most).exp() @ factors).log() + most + x[:, t]
    return a.logsumexp(1)


def definition(x, w):
    """Messages by a log-sum-exp over [batch, from, to]."""
    a = x[:, 0]
    for t in range(1, x.shape[1]):
        a = (a[:, :, None] + w).logsumexp(1) + x[:, t]
    return a.logsumexp(1)


def main():
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    for dtype in [torch.float32, torch.float64]:
        for batch, length, tags in [(32, 128, 64), (8, 100, 9)]:
            x = torch.rand(batch, length, tags, dtype=dtype) * 2 - 1
            w = torch.rand(tags, tags, dtype=dtype) * 2 - 1
            torch.testing.assert_close(log_partition(x, w), definition(x, w), rtol=1e-4, atol=1e-4)
            tracked = [x.requires_grad_(), w.requires_grad_()]

            def forward():
                with torch.no_grad():
                    return log_partition(x, w)

            both = lambda: torch.autograd.grad(log_partition(x, w).sum(), tracked)
            name = f"ln Z {str(dtype)[6:]} {batch}×{length}, {tags} tags"
            print(f"{name:<44} {best(forward):>10.1f} µs")
            print(f"{name + ': forward and gradient':<44} {best(both):>10.1f} µs", flush=True)


if __name__ == "__main__":
    main()
