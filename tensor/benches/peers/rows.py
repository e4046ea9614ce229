"""Rows of the bench `peers` beside PyTorch, in one run.

    cargo bench -p t4a-tensor --bench peers --no-run
    python3 benches/peers/rows.py BINARY [BINARY …] [--threads 1] [--filter TEXT] [--rounds 3]

Each row is measured in turns: PyTorch, every binary, and again; the shortest time of each counts. With two binaries,
say of two revisions, the last column is their ratio. Results are compared with PyTorch's first, by two sums.
"""

import argparse
import os
import subprocess
import time

import numpy as np
import torch
import torch.nn.functional as F


def numbers(seed, n):
    word = (np.arange(n, dtype=np.uint64) * 2654435761 + seed * 974711) & 0xFFFFFFFF
    return word / 2.0**31 - 1.0


def floats(seed, *shape):
    return torch.from_numpy(numbers(seed, int(np.prod(shape))).astype(np.float32)).reshape(shape)


def indices(seed, below, *shape):
    at = (numbers(seed, int(np.prod(shape))) + 1.0) / 2.0 * below
    return torch.from_numpy(at.astype(np.int64)).reshape(shape)


def convolution(x, w, groups, of):
    x, w = floats(1, *x), floats(2, *w)
    y = F.conv2d(x, w, padding=1, groups=groups)
    dy = floats(3, *y.shape)
    if of == "":
        return lambda: F.conv2d(x, w, padding=1, groups=groups)
    mask = [of == "x", of == "weight", False]
    pick = 0 if of == "x" else 1
    ones, zeros = [1, 1], [0, 0]
    return lambda: torch.ops.aten.convolution_backward(
        dy, x, w, None, ones, ones, ones, False, zeros, groups, mask)[pick]


def row(name):
    a, b = floats(1, 1024, 1024), floats(2, 1024, 1024)
    line, column = floats(3, 1, 1024), floats(3, 1024, 1)
    places = indices(5, 1024, 1024)
    positive = (a > 0, b > 0)
    few, many, weight = floats(1, 64, 512), floats(1, 512, 512), floats(2, 512, 512)
    cube, weights = floats(1, 64, 128, 128), (floats(2, 1024), floats(3, 1024))
    plain = {
        "sum 1024²": lambda: a.sum(),
        "sum 1024² rows": lambda: a.sum(1),
        "sum 1024² columns": lambda: a.sum(0),
        "mean 64×128×128 axis 1": lambda: cube.mean(1),
        "layer norm 1024²": lambda: F.layer_norm(a, (1024,), *weights, 1e-5),
        "matmul 512² transposed": lambda: many @ weight.T,
        "matmul 64×512 by 512² transposed": lambda: few @ weight.T,
        "max 1024² rows": lambda: a.amax(1),
        "normal 1024²": lambda: torch.randn(1024, 1024),
        "uniform 1024²": lambda: torch.rand(1024, 1024),
        "bool to i32 1024²": lambda: positive[0].to(torch.int32),
        "bool and 1024²": lambda: positive[0] & positive[1],
        "gelu 1024²": lambda: F.gelu(a),
        "gelu gradient 1024²": lambda: torch.ops.aten.gelu_backward(b, a),
        "sigmoid 1024²": lambda: a.sigmoid(),
        "exp 1024²": lambda: a.exp(),
        "tanh 1024²": lambda: a.tanh(),
        "add 1024²": lambda: a + b,
        "add 1024² by a row": lambda: a + line,
        "add 1024² by a column": lambda: a + column,
        "mul 1024² by a row": lambda: a * line,
        "mul 1024² by a column": lambda: a * column,
        "add scalar 1024²": lambda: a + 1.5,
        "add 1024² transposed": lambda: a + b.T,
        "softmax 1024² rows": lambda: a.softmax(1),
        "select 1024² axis 0": lambda: a.index_select(0, places),
        "select 1024² axis 1": lambda: a.index_select(1, places),
    }
    if name in plain:
        return plain[name]
    if name.startswith("gather"):
        at, axis = indices(4, 1024, 1024, 1024), int(name[-1])
        return lambda: a.gather(axis, at)
    if name.startswith("select bool"):
        x, axis = a.to(torch.int32).to(torch.uint8), int(name[-1])
        return lambda: x.index_select(axis, places)
    if name == "sum 32×512×4096 axis 0":
        x = floats(1, 32, 512, 4096)
        return lambda: x.sum(0)
    if name.startswith("transpose copy"):
        t = floats(1, *2 * [int(name.split()[-1].rstrip("²"))]).T
        return t.contiguous
    if name == "sum 4×4":
        x = floats(1, 4, 4)
        return x.sum
    if name == "add 16":
        a, b = floats(1, 16), floats(2, 16)
        return lambda: a + b
    of = name.partition(": ")[2]
    if name.startswith("depthwise"):
        side = 28 if "28²" in name else 56
        return convolution((8, 64, side, side), (64, 1, 3, 3), 64, of)
    return convolution((8, 32, 56, 56), (64, 32, 3, 3), 1, of)


def shortest(run, seconds):
    def batch(count):
        start = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - start) / count

    count = int(np.ceil(20e-6 / batch(3)))
    start, best = time.perf_counter(), float("inf")
    while time.perf_counter() - start < seconds:
        best = min(best, batch(count))
    return best * 1e9


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binaries", nargs="+")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--filter", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.15)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    environment = {**os.environ, "T4A_NUM_THREADS": str(args.threads)}
    names = subprocess.run([args.binaries[-1], "--list"], capture_output=True, text=True, check=True)
    print(f"{args.threads} threads, µs, ratio: PyTorch {torch.__version__} / last binary")
    for name in names.stdout.splitlines():
        if not any(part in name for part in args.filter.split(",")):
            continue
        run = row(name)
        y = run().double().flatten().numpy()
        sums = (y * numbers(7, y.size)).sum(), np.abs(y).sum()
        peer, ours = float("inf"), [float("inf")] * len(args.binaries)
        for _ in range(args.rounds):
            peer = min(peer, shortest(run, args.seconds))
            for i, binary in enumerate(args.binaries):
                command = [binary, name, str(args.seconds)]
                out = subprocess.run(command, capture_output=True, text=True, env=environment)
                if out.returncode != 0:
                    continue
                words = [float(word) for word in out.stdout.split()]
                ours[i] = min(ours[i], words[0])
                random = name.startswith(("normal", "uniform"))
                error = max(abs(words[1] - sums[0]), abs(words[2] - sums[1]))
                # The sum of all elements cancels: it has the rounding error of a million terms.
                assert random or error <= 1e-4 * sums[1] + 0.01, (name, words, sums)
        times = " ".join(f"{time / 1e3:>10.2f}" for time in ours)
        print(f"{name:<34} {peer / 1e3:>10.2f} {times}  {peer / ours[-1]:>6.2f}  "
              f"{ours[0] / ours[-1]:>6.2f}", flush=True)


if __name__ == "__main__":
    main()
