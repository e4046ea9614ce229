"""Per-example gradients of the net of the bench `transforms` with torch.func, on the same shapes.

    pip install torch numpy
    OMP_NUM_THREADS=1 python3 transforms/benches/peers/torch_per_example.py

Milliseconds of the best of the runs within about a second, f32; threads are those of OMP_NUM_THREADS.
"""

import math
import time

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

BATCH = 128


def best(run):
    run()
    start, least, runs = time.perf_counter(), math.inf, 0
    while runs < 3 or time.perf_counter() - start < 1.0:
        now = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - now)
        runs += 1
    return 1e3 * least


def main():
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 64, 10),
    )
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    x = torch.rand(BATCH, 1, 8, 8) * 2 - 1
    labels = torch.arange(BATCH) * 7 % 10

    def loss(parameters, x, label):
        y = functional_call(net, parameters, (x[None],))
        return nn.functional.cross_entropy(y, label[None])

    one = grad(loss)
    each = vmap(one, in_dims=(None, 0, 0))

    def loop():
        return [one(parameters, x[i], labels[i]) for i in range(BATCH)]

    def tape():
        """The loop on torch's own tape."""
        out = []
        for i in range(BATCH):
            y = nn.functional.cross_entropy(net(x[i : i + 1]), labels[i : i + 1])
            out.append(torch.autograd.grad(y, list(net.parameters())))
        return out

    def whole():
        y = nn.functional.cross_entropy(net(x), labels)
        return torch.autograd.grad(y, list(net.parameters()))

    all_at_once = each(parameters, x, labels)
    for i in (0, 3, BATCH - 1):
        for name, g in one(parameters, x[i], labels[i]).items():
            torch.testing.assert_close(all_at_once[name][i], g, rtol=1e-3, atol=1e-4)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {BATCH} gradients")
    print(f"loop of grad           {best(loop):9.3f} ms")
    print(f"loop of backward       {best(tape):9.3f} ms")
    print(f"vmap of grad           {best(lambda: each(parameters, x, labels)):9.3f} ms")
    print(f"their sum alone        {best(whole):9.3f} ms")


if __name__ == "__main__":
    main()
