"""Tensors with U(1) symmetry in NumPy: two sites of a spin chain with conserved magnetisation, and a singular value
decomposition by charge. `python symmetric_tensors.py`
"""

import numpy as np

import t4a.numpy as tn
from t4a.structured import Leg, Spec


def picture(spec, x):
    """Picture of the nonzero elements of the matrix of row legs against column legs."""
    dense = spec.to_dense(x).reshape(int(np.prod(spec.shape[: spec.rows])), -1)
    return "\n".join("   " + "".join(" ." if v == 0 else " #" for v in row) for row in dense)


def main():
    rng = np.random.default_rng(1)
    spin, bond = Leg({-1: 1, 1: 1}), Leg({-2: 1, 0: 2, 2: 1})
    # A site tensor: bond and spin are row legs, the right bond is the column leg; charge is conserved.
    site = Spec([bond, spin, Leg({-3: 1, -1: 3, 1: 3, 3: 1}, dual=True)], 2)
    other = Spec([site.legs[2].conj, spin.conj, bond.conj], 1)
    a, b = rng.normal(size=site.size), rng.normal(size=other.size)
    print(f"a site of {np.prod(site.shape)} elements has {site.size} in {len(site.blocks)} blocks:")
    print(picture(site, a))

    pair, spec = tn.graded_contract(a, b, (site, other), ((2,), (0,)))
    dense = np.tensordot(site.to_dense(a), other.to_dense(b), ((2,), (0,)))
    error = np.abs(spec.to_dense(pair) - dense).max()
    print(f"\ntwo sites contracted: {spec.size} of {dense.size} elements, largest difference to dense arrays {error:.1e}")

    u, s, vh, left, right = tn.graded_svd(pair, spec)
    print("\nsingular values by charge of the bond:")
    at = 0
    for charge, size in right.legs[0].sectors:
        values = s.ravel()[at : at + size]
        at += size
        print(f"  {charge:3} " + " ".join(f"{x:7.3f}" for x in values) + "  " + "#" * int(4 * values[0]))
    scaled = left.from_dense(left.to_dense(u) * s.ravel())
    back, _ = tn.graded_contract(scaled, vh, (left, right), ((2,), (0,)))
    print(f"\nlargest difference of U S Vh to the pair: {np.abs(back - pair).max():.1e}")
    assert error < 1e-12 and np.abs(back - pair).max() < 1e-12

    _, kept, _, dropped, _, right = tn.graded_svd_truncated(pair, spec, max_dim=4)
    states = ", ".join(f"{size} of charge {charge}" for charge, size in right.legs[0].sectors)
    print(f"\nthe four largest values: {states}; error of the truncation {dropped:.3f}")
    assert abs(dropped**2 + (kept**2).sum() - (s**2).sum()) < 1e-12
    return error


if __name__ == "__main__":
    main()
