"""Rows of the bench `backend` in PyTorch, on the same shapes, beside its output.

    pip install torch numpy
    cargo bench --bench backend -- --threads 1 > rows.txt
    python3 benches/peers/torch_backend.py rows.txt --threads 1

Microseconds as there: the median of seven samples of about 20 ms, f32, and their ratio, torch / BurnT4a.
Without a file torch's alone. Where the bench has drop-in functions, `fused`, the ratio is that to the faster form.
"""

import argparse
import math
import statistics
import time

import torch
import torch.nn.functional as F
from torch import nn


def floats(*shape):
    return torch.rand(*shape) * 2 - 1


def square(n=1024):
    return floats(n, n)


def pull(y, g, *leaves):
    """The gradient of Σ y·g, as in the bench."""
    return torch.autograd.grad((y * g).sum(), leaves)


def elementwise():
    a, b, row, column = square(), square(), floats(1, 1024), floats(1024, 1)
    positive = a.abs() + 0.1
    ints = (a * 1000).to(torch.int32)
    mask = a > 0
    yield "sin 1024²", lambda: a.sin()
    yield "log 1024²", lambda: positive.log()
    yield "powf 1024²", lambda: positive.pow(b)
    yield "int add 1024²", lambda: ints + ints
    yield "add 1024²", lambda: a + b
    yield "add 1024² transposed", lambda: a + b.T
    yield "mul 1024² by a row", lambda: a * row
    yield "mul 1024² by a column", lambda: a * column
    yield "mul scalar 1024²", lambda: a * 1.5
    yield "compare 1024²", lambda: a > b
    yield "exp 1024²", lambda: a.exp()
    yield "tanh 1024²", lambda: a.tanh()
    yield "gelu 1024²", lambda: F.gelu(a)
    yield "relu 1024²", lambda: F.relu(a)
    yield "sigmoid 1024²", lambda: a.sigmoid()
    yield "mask fill 1024²", lambda: a.masked_fill(mask, 0.5)


def reductions():
    a, tall, middle = square(), floats(262_144, 4), floats(64, 128, 128)
    norm = nn.LayerNorm(1024)
    yield "softmax 1024² rows", lambda: a.softmax(1)
    yield "softmax 1024² columns", lambda: a.softmax(0)
    yield "layer norm 1024²", torch.no_grad()(lambda: norm(a))
    yield "sum 1024²", lambda: a.sum()
    yield "sum 1024² rows", lambda: a.sum(1)
    yield "sum 1024² columns", lambda: a.sum(0)
    yield "sum 262144×4 rows", lambda: tall.sum(1)
    yield "log softmax 1024² rows", lambda: a.log_softmax(1)
    yield "mean 64×128×128 middle", lambda: middle.mean(1)
    yield "max 1024² rows", lambda: a.amax(1)
    yield "argmax 1024² rows", lambda: a.argmax(1)
    yield "argmax 1024² columns", lambda: a.argmax(0)
    yield "cumsum 1024² rows", lambda: a.cumsum(1)
    yield "cumsum 1024² columns", lambda: a.cumsum(0)


def movement():
    a, cube, six = square(), floats(64, 128, 128), floats(*[10] * 6)
    part, quarter, small = floats(512, 256), floats(512, 512), floats(256, 256)
    table, words = floats(4096, 256), floats(1000, 256)
    rows = torch.arange(4096) * 7919 % 4096
    places = (torch.arange(1024 * 1024) * 7919 % 1024).reshape(1024, 1024)
    tokens = (torch.arange(4096) * 7919 % 1000).reshape(8, 512)

    def assign():
        y = a.clone()
        y[0:512, 512:1024] = quarter
        return y

    yield "permute copy 64×128×128", lambda: cube.permute(2, 0, 1).contiguous()
    yield "reverse 6 axes of 10", lambda: six.permute(5, 4, 3, 2, 1, 0).contiguous()
    yield "transpose copy 1024²", lambda: a.T.contiguous()
    yield "cat 4 × 512×256", lambda: torch.cat([part] * 4, 1)
    yield "repeat 256×256 8 times", lambda: small.repeat(8, 1)
    yield "slice assign 1024²", assign
    yield "select 4096 rows of 256", lambda: table.index_select(0, rows)
    yield "gather 1024²", lambda: a.gather(1, places)
    yield "embedding 1000×256 8×512", lambda: F.embedding(tokens, words)
    yield "sort 1024² rows", lambda: a.sort(1)[0]
    yield "argsort 256×1024", lambda: a[:256].argsort(1)


def products():
    for n in [16, 64, 256, 512, 1024]:
        yield f"matmul {n}", lambda x=square(n), y=square(n): x @ y
    a, b, v = square(512), square(512), floats(1024, 1)
    left, right, whole = floats(32, 64, 256), floats(32, 256, 64), square()
    q, k = (floats(4, 256, 8, 64).transpose(1, 2) for _ in range(2))
    yield "matmul 512 transposed", lambda: a @ b.T
    yield "matmul 64×256×64 batch 32", lambda: left @ right
    yield "Q·Kᵀ 4×8×256×64 strided", lambda: q @ k.transpose(2, 3)
    yield "matrix × vector 1024", lambda: whole @ v


def modules():
    x, w = floats(8, 32, 56, 56), floats(64, 32, 3, 3)
    y, each = floats(8, 64, 56, 56), floats(64, 1, 3, 3)
    z, point = floats(8, 64, 28, 28), floats(64, 64, 1, 1)
    q, k, v = (floats(4, 8, 128, 64) for _ in range(3))
    yield "conv2d 8×32×56×56 64 3×3", lambda: F.conv2d(x, w, padding=1)
    yield "max pool 2×2 8×32×56×56", lambda: F.max_pool2d(x, 2)
    yield "avg pool 2×2 8×32×56×56", lambda: F.avg_pool2d(x, 2)
    yield "depthwise conv 8×64×56×56 3×3", lambda: F.conv2d(y, each, padding=1, groups=64)
    yield "conv2d 1×1 8×64×28×28", lambda: F.conv2d(z, point)
    yield "max pool 3×3 stride 2", lambda: F.max_pool2d(x, 3, 2, 1)
    yield "attention 4×8×128×64", lambda: F.scaled_dot_product_attention(q, k, v)


def derivatives():
    x, w = (t.requires_grad_() for t in (floats(8, 32, 28, 28), floats(64, 32, 3, 3)))
    y, each = (t.requires_grad_() for t in (floats(8, 64, 28, 28), floats(64, 1, 3, 3)))
    image, a = (t.requires_grad_() for t in (floats(8, 32, 56, 56), square()))
    g, pooled, b = floats(8, 64, 28, 28), floats(8, 32, 28, 28), square()
    norm, q = nn.LayerNorm(1024), floats(4, 8, 128, 64).requires_grad_()
    h, scores = floats(4, 8, 128, 64), floats(1024, 1000).requires_grad_()
    classes = torch.arange(1024) * 7919 % 1000
    conv, pool = F.conv2d, F.max_pool2d
    yield "conv2d fwd+bwd 8×32×28×28 64 3×3", lambda: pull(conv(x, w, padding=1), g, x, w)
    name = "depthwise fwd+bwd 8×64×28×28 3×3"
    yield name, lambda: pull(conv(y, each, padding=1, groups=64), g, y, each)
    yield "max pool 2×2 fwd+bwd", lambda: pull(pool(image, 2), pooled, image)
    yield "gelu fwd+bwd 1024²", lambda: pull(F.gelu(a), b, a)
    yield "softmax fwd+bwd 1024²", lambda: pull(a.softmax(1), b, a)
    yield "log softmax fwd+bwd 1024²", lambda: pull(a.log_softmax(1), b, a)
    yield "layer norm fwd+bwd 1024²", lambda: pull(norm(a), b, a, norm.weight, norm.bias)
    attention = F.scaled_dot_product_attention
    yield "attention fwd+bwd 4×8×128×64", lambda: pull(attention(q, q, q), h, q)
    name = "cross-entropy fwd+bwd 1024×1000"
    yield name, lambda: torch.autograd.grad(F.cross_entropy(scores, classes), scores)


class Encoder(nn.Module):
    """The transformer of the bench: two layers of width 128, four heads, norms last, gelu, no dropout."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            128, 4, 512, dropout=0.0, activation="gelu", batch_first=True
        )
        self.net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.net(x)


def training():
    for batch, hidden in [(64, 512), (8, 32)]:
        net = nn.Sequential(
            nn.Linear(64, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 10),
        )
        classes = torch.arange(batch) * 7919 % 10
        step = trained(net, floats(batch, 64), lambda y, t=classes: F.cross_entropy(y, t), True)
        yield f"MLP train step b{batch} h{hidden}", step
    x, t = floats(8, 64, 128), floats(8, 64, 128)
    for name, update in [
        ("transformer fwd+bwd 2×d128 b8 s64", False),
        ("transformer step with Adam", True),
    ]:
        yield name, trained(Encoder(), x, lambda y: F.mse_loss(y, t), update)


def trained(net, x, loss, update):
    adam = torch.optim.Adam(net.parameters(), lr=1e-5)

    def step():
        adam.zero_grad(set_to_none=True)
        error = loss(net(x))
        error.backward()
        if update:
            adam.step()
        return error.detach()

    return step


def median(run):
    run()
    begin = time.perf_counter()
    run()
    calls = int(min(max(0.02 / (time.perf_counter() - begin), 1), 20_000))
    samples = []
    for _ in range(7):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        samples.append((time.perf_counter() - begin) / calls)
    return 1e6 * statistics.median(samples)


def ours(path):
    """Name → (plain, fused or None) of the bench's output."""
    rows = {}
    for line in open(path, encoding="utf-8"):
        name, figures = line[:34].strip(), line[34:]
        columns = [figures[i : i + w].strip() for i, w in [(0, 11), (51, 11)]]
        try:
            fused = float(columns[1]) if columns[1] else None
            rows[name] = (float(columns[0]), fused)
        except ValueError:
            pass
    return rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="?")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    known = ours(options.rows) if options.rows else {}
    print(f"torch {torch.__version__}, threads: {torch.get_num_threads()}; times in µs")
    print(f"{'':<34} {'t4a':>10} {'fused':>10} {'torch':>10} {'torch/':>8}")
    logs = []
    for group in [elementwise, reductions, movement, products, modules, derivatives, training]:
        for name, run in group():
            torch_time = median(run)
            plain, fused = known.get(name, (None, None))
            shown = [f"{x:.2f}" if x else "" for x in (plain, fused, torch_time)]
            ratio = ""
            if plain:
                logs.append(math.log(torch_time / min(plain, fused or plain)))
                ratio = f"{math.exp(logs[-1]):.2f}"
            print(f"{name:<34} {shown[0]:>10} {shown[1]:>10} {shown[2]:>10} {ratio:>8}", flush=True)
    if logs:
        print(f"geometric mean of {len(logs)} rows{'':<41} {math.exp(sum(logs) / len(logs)):>8.2f}")


if __name__ == "__main__":
    main()
