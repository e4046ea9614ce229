"""The two-site effective Hamiltonian of the bench `graded` with TeNPy, on the same legs.

    pip install physics-tenpy
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python3 structured/benches/peers/tenpy_graded.py

Milliseconds of the best of the runs within about a second, f64, one thread; orders of contractions as in the bench.
"""

import math
import time

import numpy as np
import tenpy
import tenpy.linalg.np_conserved as npc


def gauss(d, width, reach, step):
    """D states over charges `step k`, by a Gaussian."""
    weight = {k: math.exp(-k * k / (2 * width * width)) for k in range(-reach, reach + 1)}
    total = sum(weight.values())
    return [(step * k, d * w / total) for k, w in weight.items()]


def leg(info, states):
    """A leg of (charges, states), as ascending blocks."""
    states = sorted((list(q), n) for q, n in states if n > 0)
    slices = np.concatenate([[0], np.cumsum([n for _, n in states])])
    return npc.LegCharge(info, slices, np.array([q for q, _ in states]), 1)


def problem(charges, site, wire, bond):
    info = npc.ChargeInfo([1] * charges)
    s, w, l = leg(info, site), leg(info, wire), leg(info, bond)
    r = l.conj()
    rng = np.random.default_rng(1)

    def tensor(legs, labels):
        return npc.Array.from_func(rng.standard_normal, legs, dtype=float, labels=labels)

    theta = tensor([l, s, s, r], ["l", "s", "t", "r"])
    lp = tensor([l, w, l.conj()], ["l'", "w", "l*"])
    w1 = tensor([w.conj(), w, s, s.conj()], ["w*", "v", "s'", "s*"])
    w2 = tensor([w.conj(), w, s, s.conj()], ["v*", "x", "t'", "t*"])
    rp = tensor([r.conj(), w.conj(), r], ["r*", "x*", "r'"])

    def run():
        x = npc.tensordot(lp, theta, axes=[["l*"], ["l"]])
        x = npc.tensordot(x, w1, axes=[["w", "s"], ["w*", "s*"]])
        x = npc.tensordot(x, w2, axes=[["v", "t"], ["v*", "t*"]])
        return npc.tensordot(x, rp, axes=[["r", "x"], ["r*", "x*"]])

    return run


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
    print(f"TeNPy {tenpy.__version__}, compiled: {tenpy.tools.optimization.have_cython_functions}")
    for d in (64, 256, 1024):
        # Half up, as the bench rounds.
        bond = [((q,), math.floor(n + 0.5)) for q, n in gauss(d, 1.5, 4, 2)]
        run = problem(1, [((-1,), 1), ((1,), 1)], [((-2,), 1), ((0,), 3), ((2,), 1)], bond)
        print(f"   U1 {d:5} {best(run):9.3f} ms")
    site = [((0, 0), 1), ((1, 0), 1), ((0, 1), 1), ((1, 1), 1)]
    wire = [((0, 0), 2), ((1, 0), 1), ((-1, 0), 1), ((0, 1), 1), ((0, -1), 1)]
    profile = gauss(1, 1.0, 3, 1)
    for d in (64, 256, 1024):
        bond = [((a, b), math.floor(d * p * q + 0.5)) for a, p in profile for b, q in profile]
        run = problem(2, site, wire, bond)
        print(f"U1xU1 {d:5} {best(run):9.3f} ms")


if __name__ == "__main__":
    main()
