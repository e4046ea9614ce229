"""Rows of the bench `backend` in PyTorch, with the same inputs: functions of no argument by the name of the row.

Each returns the result that the bench returns, a gradient for derivatives and the loss before the step for training.
"""

import string

import numpy as np
import opt_einsum
import torch
import torch.nn.functional as F
from torch import nn


def floats(*shape):
    """The fixed values of the bench in −1…1."""
    n = int(np.prod(shape))
    word = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    value = (word >> np.uint64(40)).astype(np.float32) / np.float32(1 << 23) - np.float32(1)
    return torch.from_numpy(value).reshape(shape)


def whole(shape, n, dtype=torch.int64):
    count = int(np.prod(shape))
    return torch.from_numpy(np.arange(count) * 7919 % n).reshape(shape).to(dtype)


def square(n=1024):
    return floats(n, n)


def leaf(*shape):
    return floats(*shape).requires_grad_()


def pull(y, g, x):
    """The gradient of Σ y·g by x."""
    return torch.autograd.grad((y * g).sum(), x)[0]


def elementwise():
    a, b, row, column = square(), square(), floats(1, 1024), floats(1024, 1)
    positive = a.abs() + 0.1
    ints, mask, flipped = whole((1024, 1024), 1000, torch.int32), a.flip(1) > 0, b.flip(0)
    bools = (a > 0, (a > 0).flip(0))
    small, line = floats(4, 4), floats(1, 4)
    return {
        "add 4×4 by a row": lambda: small + line,
        "exp 4×4": lambda: small.exp(),
        "sum 4×4": lambda: small.sum(1),
        "add 4×4": lambda: small + small,
        "sin 1024²": lambda: a.sin(),
        "log 1024²": lambda: positive.log(),
        "powf 1024²": lambda: positive.pow(b),
        "int add 1024²": lambda: ints + ints,
        "bool and 1024²": lambda: (bools[0] & bools[1]).to(torch.int32),
        "add 1024²": lambda: a + b,
        "add 1024² transposed": lambda: a + b.T,
        "add 1024² by a row": lambda: a + row,
        "add 1024² by a column": lambda: a + column,
        "mul 1024² by a row": lambda: a * row,
        "mul 1024² by a column": lambda: a * column,
        "mul scalar 1024²": lambda: a * 1.5,
        "compare 1024²": lambda: a > flipped,
        "exp 1024²": lambda: a.exp(),
        "tanh 1024²": lambda: a.tanh(),
        "gelu 1024²": lambda: F.gelu(a),
        "relu 1024²": lambda: F.relu(a),
        "sigmoid 1024²": lambda: a.sigmoid(),
        "mask fill 1024²": lambda: a.masked_fill(mask, 0.5),
    }


def reductions():
    a, tall, middle = square(), floats(262_144, 4), floats(64, 128, 128)
    norm = nn.LayerNorm(1024)
    size = a.abs()
    return {
        "softmax 1024² rows": lambda: a.softmax(1),
        "softmax 1024² columns": lambda: a.softmax(0),
        "layer norm 1024²": torch.no_grad()(lambda: norm(a)),
        "sum 1024²": lambda: size.sum(),
        "sum 1024² rows": lambda: a.sum(1),
        "sum 1024² columns": lambda: a.sum(0),
        "sum 262144×4 rows": lambda: tall.sum(1),
        "log softmax 1024² rows": lambda: a.log_softmax(1),
        "mean 64×128×128 middle": lambda: middle.mean(1),
        "max 1024² rows": lambda: a.amax(1),
        "argmax 1024² rows": lambda: a.argmax(1),
        "argmax 1024² columns": lambda: a.argmax(0),
        "cumsum 1024² rows": lambda: a.cumsum(1),
        "cumsum 1024² columns": lambda: a.cumsum(0),
        "normal numbers 1024²": lambda: torch.randn(1024, 1024),
        "uniform numbers 1024²": lambda: torch.rand(1024, 1024),
    }


def large():
    x = floats(32, 512, 4096)
    return {"sum 32×512×4096 first axis": lambda: x.sum(0)}


def movement():
    a, cube, six = square(), floats(64, 128, 128), floats(*[10] * 6)
    part, quarter, small = floats(512, 256), floats(512, 512), floats(256, 256)
    table, words = floats(4096, 256), floats(1000, 256)
    rows, places = whole((4096,), 4096), whole((1024, 1024), 1024)
    tokens, at, bools = whole((8, 512), 1000), whole((1024,), 1024), a > 0

    def assign():
        y = a.clone()
        y[0:512, 512:1024] = quarter
        return y

    return {
        "permute copy 64×128×128": lambda: cube.permute(2, 0, 1).contiguous(),
        "reverse 6 axes of 10": lambda: six.permute(5, 4, 3, 2, 1, 0).contiguous(),
        "transpose copy 1024²": lambda: a.T.contiguous(),
        "cat 4 × 512×256": lambda: torch.cat([part] * 4, 1),
        "repeat 256×256 8 times": lambda: small.repeat(8, 1),
        "slice assign 1024²": assign,
        "select 4096 rows of 256": lambda: table.index_select(0, rows),
        "gather 1024²": lambda: a.gather(1, places),
        "gather 1024² along columns": lambda: a.gather(0, places),
        "select bool 1024² axis 0": lambda: bools.index_select(0, at),
        "select bool 1024² axis 1": lambda: bools.index_select(1, at),
        "embedding 1000×256 8×512": lambda: F.embedding(tokens, words),
        "sort 1024² rows": lambda: a.sort(1)[0],
        "argsort 256×1024": lambda: table[:1024].reshape(256, 1024).argsort(1),
    }


def products():
    rows = {}
    for n in [4, 16, 64, 256, 512, 1024]:
        rows[f"matmul {n}"] = lambda x=square(n), y=square(n): x @ y
    a, whole_matrix, v = square(512), square(), floats(1024, 1)
    left, right = floats(32, 64, 256), floats(32, 256, 64)
    q, k = (floats(4, 256, 8, 64).transpose(1, 2) for _ in range(2))
    return rows | {
        "matmul 512 transposed": lambda: a @ a.T,
        "matmul 64×256×64 batch 32": lambda: left @ right,
        "Q·Kᵀ 4×8×256×64 strided": lambda: q @ k.transpose(2, 3),
        "matrix × vector 1024": lambda: whole_matrix @ v,
    }


def modules():
    x, w = floats(8, 32, 56, 56), floats(64, 32, 3, 3)
    y, each = floats(8, 64, 56, 56), floats(64, 1, 3, 3)
    z, point = floats(8, 64, 28, 28), floats(64, 64, 1, 1)
    q = floats(4, 8, 128, 64)

    def adjoint(x, w, dy, groups, of):
        mask, ones = [of == 0, of == 1, False], [1, 1]
        arguments = (None, ones, ones, ones, False, [0, 0], groups, mask)
        return lambda: torch.ops.aten.convolution_backward(dy, x, w, *arguments)[of]

    return {
        "conv2d 8×32×56×56 64 3×3": lambda: F.conv2d(x, w, padding=1),
        "max pool 2×2 8×32×56×56": lambda: F.max_pool2d(x, 2),
        "avg pool 2×2 8×32×56×56": lambda: F.avg_pool2d(x, 2),
        "depthwise conv 8×64×56×56 3×3": lambda: F.conv2d(y, each, padding=1, groups=64),
        "conv2d 1×1 8×64×28×28": lambda: F.conv2d(z, point),
        "max pool 3×3 stride 2": lambda: F.max_pool2d(x, 3, 2, 1),
        "attention 4×8×128×64": lambda: F.scaled_dot_product_attention(q, q, q),
        "conv2d 8×32×56×56 64 3×3: x": adjoint(x, w, y, 1, 0),
        "conv2d 8×32×56×56 64 3×3: weight": adjoint(x, w, y, 1, 1),
        "depthwise 8×64×56×56 3×3: x": adjoint(y, each, y, 64, 0),
        "depthwise 8×64×56×56 3×3: weight": adjoint(y, each, y, 64, 1),
    }


def derivatives():
    x, w, g = floats(8, 32, 28, 28).requires_grad_(), leaf(64, 32, 3, 3), floats(8, 64, 28, 28)
    y, each = leaf(8, 64, 28, 28), leaf(64, 1, 3, 3)
    image, a, b, pooled = leaf(8, 32, 56, 56), leaf(1024, 1024), square(), floats(8, 32, 28, 28)
    norm, q, h = nn.LayerNorm(1024), leaf(4, 8, 128, 64), floats(4, 8, 128, 64)
    scores, classes, weights = leaf(1024, 1000), whole((1024,), 1000), b.exp()

    def both(y, g, *leaves):
        """All gradients are computed, as on Burn's tape; the last one is compared."""
        return torch.autograd.grad((y * g).sum(), leaves)[-1]

    attention = F.scaled_dot_product_attention
    return {
        "conv2d fwd+bwd 8×32×28×28 64 3×3": lambda: both(F.conv2d(x, w, padding=1), g, x, w),
        "depthwise fwd+bwd 8×64×28×28 3×3": lambda: both(
            F.conv2d(y, each, padding=1, groups=64), g, y, each
        ),
        "max pool 2×2 fwd+bwd": lambda: pull(F.max_pool2d(image, 2), pooled, image),
        "gelu fwd+bwd 1024²": lambda: pull(F.gelu(a), b, a),
        "softmax fwd+bwd 1024²": lambda: pull(a.softmax(1), b, a),
        "log softmax fwd+bwd 1024²": lambda: pull(a.log_softmax(1), b, a),
        "layer norm fwd+bwd 1024²": lambda: both(norm(a), weights, norm.weight, norm.bias, a),
        "attention fwd+bwd 4×8×128×64": lambda: pull(attention(q, q, q), h, q),
        "cross-entropy fwd+bwd 1024×1000": lambda: torch.autograd.grad(
            F.cross_entropy(scores, classes), scores
        )[0],
    }


def fixed(parameters):
    """Number k is the fixed values times 0.1 / k; matrices are transposed, as Burn stores them."""
    with torch.no_grad():
        for k, parameter in enumerate(parameters, 1):
            value = floats(*reversed(parameter.shape)) * np.float32(0.1 / np.float32(k))
            parameter.copy_(value.T if value.dim() == 2 else value)


class Encoder(nn.Module):
    """The transformer of the bench: two layers of width 128, four heads, norms last, gelu, no dropout."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True)
        self.net = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        ordered = []
        for layer in self.net.layers:
            attention = layer.self_attn
            heads = zip(attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3))
            ordered += [part for pair in heads for part in pair]
            last = [attention.out_proj, layer.linear1, layer.linear2, layer.norm1, layer.norm2]
            ordered += [parameter for module in last for parameter in (module.weight, module.bias)]
        fixed(ordered)

    def forward(self, x):
        return self.net(x)


def trained(net, x, loss, rate):
    adam = torch.optim.Adam(net.parameters(), lr=rate) if rate else None

    def step():
        net.zero_grad(set_to_none=True)
        error = loss(net(x))
        error.backward()
        if adam:
            adam.step()
        return error.detach()

    return step


def training():
    rows = {}
    for batch, hidden in [(64, 512), (8, 32)]:
        sizes = [64, hidden, hidden, 10]
        layers = [nn.Linear(i, o) for i, o in zip(sizes, sizes[1:])]
        net = nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])
        fixed(net.parameters())
        classes = whole((batch,), 10)
        loss = lambda y, classes=classes: F.cross_entropy(y, classes)
        rows[f"MLP train step b{batch} h{hidden}"] = trained(net, floats(batch, 64), loss, 1e-4)
    x, t = floats(8, 64, 128), floats(8, 64, 128)
    for name, rate in [("fwd+bwd 2×d128 b8 s64", None), ("step with Adam", 1e-5)]:
        rows[f"transformer {name}"] = trained(Encoder(), x, lambda y: F.mse_loss(y, t), rate)
    return rows


def factorisations():
    rows = {}
    for count, n in [(64, 8), (1, 64), (1, 256)]:
        a = (floats(count, n, n).double().square() * 1e4).sin()
        h = a + a.transpose(1, 2)
        of = f"f64 {n}²" if count == 1 else f"f64 {n}², batch {count}"
        rows |= {
            f"qr {of}": lambda a=a: torch.linalg.qr(a)[1],
            f"lu {of}": lambda a=a: torch.linalg.lu_factor(a)[0],
            f"svd {of}": lambda a=a: torch.linalg.svd(a)[1],
            f"eigh {of}": lambda h=h: torch.linalg.eigh(h)[0],
        }
    return rows


def chains():
    x, w = floats(32, 128, 64), floats(64, 64)

    def log_partition():
        alpha = x[:, 0]
        for t in range(1, 128):
            alpha = (alpha[:, :, None] + w).logsumexp(1) + x[:, t]
        return alpha.logsumexp(1)

    return {"ln Z of chains 32×128, 64 tags": log_partition}


def mera():
    """Subscripts and shapes of `str_nw_mera_open_26` of the einsum benchmark, as in the bench."""
    subscripts = (
        "ab,acg,bdh,cek,dft,ewP,fJQ,ghij,ilo,jps,klmn,mxy,nqzA,opqr,ruBC,stuv,vDE,wxK,yzL"
        ",ABM,CDN,EFO,FG,GHR,HI,IJS->PQKLMNORS"
    )
    capital = [56, 7, 48, 4, 11, 20, 5, 6, 25, 79, 9, 9, 9, 9, 9, 3, 3, 9, 9]
    small = [13, 9, 5, 27, 17, 10, 46, 7, 15, 25, 19, 6, 68, 22, 26, 24, 22, 7, 9, 68, 8, 6, 17, 5, 7, 11]
    letters = string.ascii_uppercase[:19] + string.ascii_lowercase
    sizes = dict(zip(letters, capital + small))
    return subscripts, [tuple(map(sizes.get, term)) for term in subscripts.split("->")[0].split(",")]


def networks():
    subscripts, shapes = mera()
    operands = [floats(*s).double() * float(np.prod(s)) ** -0.25 for s in shapes]
    contract = opt_einsum.contract_expression(subscripts, *shapes, optimize="auto-hq")
    return {"einsum f64 MERA of 26 tensors": lambda: contract(*operands).contiguous()}


GROUPS = [
    elementwise, reductions, large, movement, products, modules, derivatives, training, factorisations,
    chains, networks,
]
