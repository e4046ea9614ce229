"""Times of t4a against other libraries: ratio peer / t4a, above 1 where t4a is faster.

    python benches/compare.py [words of names of rows] [--threads N] [--json FILE]

Both are timed alternately in one run; the result is the least of the repetitions, since other programs on the machine only add to
a time. Rows whose packages are not installed are skipped; those of all rows are `torch jax pytorch-crf torch-semiring-einsum torch-struct
physics-tenpy symmray cotengra autoray`. XLA has no option for its threads: `taskset -c 0` restricts it to a core.
"""

import argparse
import importlib
import json
import time

import numpy as np

ROWS = []


def row(name, *packages):
    """Registers a row of the table: a function that returns the peer and t4a, as two functions without arguments."""

    def keep(make):
        ROWS.append((name, packages, make))
        return make

    return keep


def once(f, calls):
    start = time.perf_counter()
    for _ in range(calls):
        f()
    return (time.perf_counter() - start) / calls


def times(peer, ours):
    """Least times in seconds of alternating repetitions of about 20 ms."""
    calls = [max(1, int(0.02 / max(1e-9, min(once(f, 1) for _ in range(3))))) for f in (peer, ours)]
    found = [], []
    until = time.perf_counter() + 1.5
    while time.perf_counter() < until or len(found[0]) < 3:
        found[0].append(once(peer, calls[0]))
        # Untimed: XLA returns the memory of the peer, up to gigabytes, to the system during this call.
        ours()
        found[1].append(once(ours, calls[1]))
    return tuple(map(min, found))


def noise(*shape):
    return np.random.default_rng(0).normal(size=shape)


# ---- overhead of a call ----


@row("numpy 4x4 product", "numpy")
def _():
    import t4a.numpy as tn

    a, b = noise(4, 4), noise(4, 4)
    return lambda: np.einsum("ij,jk->ik", a, b), lambda: tn.einsum("ij,jk->ik", a, b)


@row("torch 4x4 product", "torch")
def _():
    import torch

    import t4a.torch as tt

    a, b = torch.tensor(noise(4, 4)), torch.tensor(noise(4, 4))
    return lambda: torch.einsum("ij,jk->ik", a, b), lambda: tt.einsum("ij,jk->ik", a, b)


@row("torch 4x4 product, forward and backward", "torch")
def _():
    import torch

    import t4a.torch as tt

    def step(einsum):
        a, b = (torch.tensor(noise(4, 4), requires_grad=True) for _ in range(2))
        return lambda: torch.autograd.grad(einsum("ij,jk->ik", a, b).sum(), (a, b))

    return step(torch.einsum), step(tt.einsum)


@row("jax jit 4x4 product", "jax")
def _():
    import jax
    import jax.numpy as jnp

    import t4a.jax as tj

    a, b = jnp.asarray(noise(4, 4)), jnp.asarray(noise(4, 4))
    of = lambda einsum: jax.jit(lambda a, b: einsum("ij,jk->ik", a, b))
    peer, ours = of(jnp.einsum), of(tj.einsum)
    return lambda: peer(a, b).block_until_ready(), lambda: ours(a, b).block_until_ready()


# ---- semirings ----


def torch_step(f, *shapes):
    """Forward and backward pass of a sum of squares."""
    import torch

    inputs = [torch.tensor(noise(*shape), dtype=torch.float32, requires_grad=True) for shape in shapes]
    return lambda: torch.autograd.grad((f(*inputs) ** 2).sum(), inputs)


def semiring_rows(n, semiring, broadcast):
    @row(f"torch {semiring} {n} forward", "torch")
    def _():
        import torch

        import t4a.torch as tt

        a, b = (torch.tensor(noise(n, n), dtype=torch.float32) for _ in range(2))
        return lambda: broadcast(a, b), lambda: tt.einsum("ij,jk->ik", a, b, semiring=semiring)

    @row(f"torch {semiring} {n} forward and backward", "torch")
    def _():
        import t4a.torch as tt

        ours = lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring=semiring)
        return torch_step(broadcast, (n, n), (n, n)), torch_step(ours, (n, n), (n, n))

    if n > 512:
        return

    @row(f"jax {semiring} {n} forward and backward", "jax")
    def _():
        import jax
        import jax.numpy as jnp

        import t4a.jax as tj

        a, b = (jnp.asarray(noise(n, n), jnp.float32) for _ in range(2))
        reduced = jnp.max if semiring == "max_plus" else jax.nn.logsumexp
        peer = lambda a, b: reduced(a[:, :, None] + b[None], axis=1)
        ours = lambda a, b: tj.einsum("ij,jk->ik", a, b, semiring=semiring)
        of = lambda f: jax.jit(jax.grad(lambda a, b: (f(a, b) ** 2).sum(), (0, 1)))
        peer, ours = of(peer), of(ours)
        return lambda: jax.block_until_ready(peer(a, b)), lambda: jax.block_until_ready(ours(a, b))


def in_blocks(f):
    """The same for 64 rows of `a` at a time, which bounds the memory."""

    def of(a, b):
        import torch

        return torch.cat([f(rows, b) for rows in a.split(64)])

    return of


for _n in (512, 1024):
    semiring_rows(_n, "max_plus", in_blocks(lambda a, b: (a[:, :, None] + b[None]).max(1).values))
    semiring_rows(_n, "log_sum_exp", in_blocks(lambda a, b: (a[:, :, None] + b[None]).logsumexp(1)))


@row("torch log_sum_exp 512 forward and backward, torch_semiring_einsum", "torch", "torch_semiring_einsum")
def _():
    import torch_semiring_einsum

    import t4a.torch as tt

    equation = torch_semiring_einsum.compile_equation("ij,jk->ik")
    peer = lambda a, b: torch_semiring_einsum.log_einsum(equation, a, b, block_size=32)
    ours = lambda a, b: tt.einsum("ij,jk->ik", a, b, semiring="log_sum_exp")
    return torch_step(peer, (512, 512), (512, 512)), torch_step(ours, (512, 512), (512, 512))


# ---- chains ----


@row("torch CRF 32x128x64 forward and backward, pytorch-crf", "torch", "torchcrf")
def _():
    import torch
    import torchcrf

    from t4a.torch import nn

    batch, length, tags = 32, 128, 64
    ours, theirs = nn.CRF(tags), torchcrf.CRF(tags, batch_first=True)
    emissions = torch.tensor(noise(batch, length, tags), dtype=torch.float32, requires_grad=True)
    gold = torch.randint(tags, (batch, length), generator=torch.Generator().manual_seed(0))

    def step(crf, loss):
        wanted = [emissions, *crf.parameters()]
        return lambda: torch.autograd.grad(loss(), wanted)

    return step(theirs, lambda: theirs(emissions, gold)), step(ours, lambda: ours(emissions, gold).sum())


@row("torch CRF 32x128x64 decode, pytorch-crf", "torch", "torchcrf")
def _():
    import torch
    import torchcrf

    from t4a.torch import nn

    ours, theirs = nn.CRF(64), torchcrf.CRF(64, batch_first=True)
    emissions = torch.tensor(noise(32, 128, 64), dtype=torch.float32)
    return lambda: theirs.decode(emissions), lambda: ours.decode(emissions)


@row("torch CRF 32x128x64 forward and backward, torch-struct", "torch", "torch_struct")
def _():
    import torch
    import torch_struct

    import t4a.torch as tt

    batch, length, tags = 32, 128, 64
    emissions = torch.tensor(noise(batch, length, tags), dtype=torch.float32, requires_grad=True)
    scores = torch.tensor(noise(tags, tags), dtype=torch.float32, requires_grad=True)

    def peer():
        # Potentials [batch, length - 1, tag, previous tag]; those of the first tag belong to the first step.
        potentials = scores.T + emissions[:, 1:, :, None]
        potentials = torch.cat([potentials[:, :1] + emissions[:, :1, None, :], potentials[:, 1:]], 1)
        return torch_struct.LinearChainCRF(potentials).partition.sum()

    ours = lambda: tt.log_partition(emissions, scores).sum()
    assert abs(peer().item() / ours().item() - 1) < 1e-5
    return tuple(lambda f=f: torch.autograd.grad(f(), (emissions, scores)) for f in (peer, ours))


# ---- linear algebra ----


def linalg_rows(shape):
    size = "x".join(map(str, shape))

    def hermitian(x):
        return x + x.swapaxes(-1, -2)

    def value(y):
        return sum((z**2).sum() for z in y)

    def losses(name, ours, theirs):
        """A loss of singular values or eigenvalues and of projectors, which is independent of phases."""
        if name == "svd":
            return (
                lambda x: (lambda u, s, v: (s**3).sum())(*ours.svd(x)),
                lambda x: (lambda u, s, v: (s**3).sum())(*theirs.svd(x, full_matrices=False)),
            )
        if name == "eigh":
            return (
                lambda x: (lambda e, v: (e**3).sum() + ((v * e[..., None, :]) ** 2).sum())(*ours.eigh(hermitian(x))),
                lambda x: (lambda e, v: (e**3).sum() + ((v * e[..., None, :]) ** 2).sum())(*theirs.eigh(hermitian(x))),
            )
        return lambda x: value(ours.qr(x)), lambda x: value(theirs.qr(x))

    for name in ("svd", "eigh", "qr"):

        @row(f"torch {name} {size} forward", "torch")
        def _(name=name):
            import torch

            import t4a.torch as tt

            x = torch.tensor(noise(*shape))
            x = hermitian(x) if name == "eigh" else x
            full = {"full_matrices": False} if name == "svd" else {}
            peer, ours = getattr(torch.linalg, name), getattr(tt, name)
            return lambda: peer(x, **full), lambda: ours(x)

        @row(f"torch {name} {size} forward and backward", "torch")
        def _(name=name):
            import torch

            import t4a.torch as tt

            x = torch.tensor(noise(*shape), requires_grad=True)
            ours, theirs = losses(name, tt, torch.linalg)
            return lambda: torch.autograd.grad(theirs(x), x), lambda: torch.autograd.grad(ours(x), x)

        @row(f"jax {name} {size} forward and backward", "jax")
        def _(name=name):
            import jax
            import jax.numpy as jnp

            import t4a.jax as tj

            x = jnp.asarray(noise(*shape))
            peer, ours = (jax.jit(jax.grad(f)) for f in losses(name, tj, jnp.linalg)[::-1])
            return lambda: peer(x).block_until_ready(), lambda: ours(x).block_until_ready()


for _shape in ((64, 64), (256, 256), (1000, 8, 8)):
    linalg_rows(_shape)


# ---- symmetric tensors ----


def graded_operands(width):
    """Dense tensors of two sites of a spin chain with a conserved charge, and their legs: charges with dimensions, dual."""
    bond = {-2: width // 16, -1: width // 4, 0: 3 * width // 8, 1: width // 4, 2: width // 16}
    spin, inner = {0: 1, 1: 1}, {}
    for charge, size in bond.items():
        for more in spin:
            inner[charge + more] = inner.get(charge + more, 0) + size
    pair = [(bond, False), (spin, False), (inner, True)], [(inner, False), (spin, True), (bond, True)]

    def dense(legs):
        total = 0
        for axis, (leg, dual) in enumerate(legs):
            charges = np.repeat(list(leg), list(leg.values())) * (-1 if dual else 1)
            total = total + charges.reshape([-1 if axis == i else 1 for i in range(len(legs))])
        return noise(*total.shape) * (total == 0)

    return [(legs, dense(legs)) for legs in pair]


def graded_rows(width):
    def ours(pair):
        import t4a.numpy as tn
        from t4a.structured import Leg, Spec

        specs = tuple(Spec([Leg(*leg) for leg in legs], rows) for (legs, _), rows in zip(pair, (2, 1)))
        x, y = (spec.from_dense(dense) for spec, (_, dense) in zip(specs, pair))
        of = lambda: tn.graded_contract(x, y, specs, ((2,), (0,)))
        z, spec = of()
        np.testing.assert_allclose(spec.to_dense(z), np.tensordot(pair[0][1], pair[1][1], 1), atol=1e-10)
        return of

    @row(f"numpy U(1) contraction of sites of {width}, TeNPy", "tenpy")
    def _():
        import tenpy.linalg.np_conserved as npc

        pair, charge = graded_operands(width), npc.ChargeInfo([1])

        def array(legs, dense):
            starts = lambda leg: np.concatenate([[0], np.cumsum(list(leg.values()))])
            of = lambda leg, dual: npc.LegCharge.from_qind(charge, starts(leg), [[q] for q in leg], -1 if dual else 1)
            return npc.Array.from_ndarray(dense, [of(*leg) for leg in legs], qtotal=[0])

        x, y = (array(*given) for given in pair)
        return lambda: npc.tensordot(x, y, axes=[[2], [0]]), ours(pair)

    @row(f"numpy U(1) contraction of sites of {width}, symmray", "symmray")
    def _():
        import symmray

        pair = graded_operands(width)

        def array(legs, dense):
            charges = [dict(enumerate(np.repeat(list(leg), list(leg.values())).tolist())) for leg, _ in legs]
            return symmray.U1Array.from_dense(dense, charges, [dual for _, dual in legs], charge=0)

        x, y = (array(*given) for given in pair)
        return lambda: symmray.tensordot(x, y, axes=((2,), (0,))), ours(pair)


for _width in (32, 256):
    graded_rows(_width)


def installed(package):
    try:
        importlib.import_module(package)
    except ImportError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="words that names of rows contain, all of them")
    parser.add_argument("--threads", type=int, help="threads of PyTorch and of t4a")
    parser.add_argument("--json", help="a file for the times in seconds")
    given = parser.parse_args()
    if given.threads:
        import t4a

        t4a.set_threads(given.threads)
        if installed("torch"):
            import torch

            torch.set_num_threads(given.threads)
    if installed("jax"):
        import jax

        jax.config.update("jax_enable_x64", True)
    found = {}
    for name, packages, make in ROWS:
        if not all(word in name for word in given.names) or not all(map(installed, packages)):
            continue
        peer, ours = found[name] = times(*make())
        print(f"{name:56} {peer * 1e6:12.1f} us {ours * 1e6:12.1f} us   {peer / ours:7.2f}", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
