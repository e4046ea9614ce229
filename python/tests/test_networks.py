"""Ground states against known energies, trains against the functions, failures of callbacks."""

import numpy as np
import pytest

import t4a
from t4a import networks


def heisenberg(n):
    chain = networks.Chain("spin_half", n)
    for i in range(n - 1):
        chain.add(0.5, ("S+", i), ("S-", i + 1), with_adjoint=True)
        chain.add(1, ("Sz", i), ("Sz", i + 1))
    return chain


def test_ground_and_excited_states():
    seen = []
    states = networks.dmrg(
        heisenberg(8), ["Up", "Dn"] * 4, states=2, expect=["Sz"], correlations=[("Sz", "Sz")], max_dims=[16, 32],
        progress=lambda *report: seen.append(report),
    )  # fmt: skip
    ground, excited = states
    # Exact diagonalisation within total spin 0 along z.
    assert abs(ground.energy + 3.374932598688) < 1e-9 and abs(ground.variance) < 1e-8
    assert abs(excited.energy + 2.98224857) < 1e-4
    assert excited.energy > ground.energy
    np.testing.assert_allclose(ground.expect["Sz"], np.zeros(8), atol=1e-6)
    pairs = ground.correlations["Sz", "Sz"]
    np.testing.assert_allclose(np.diag(pairs), np.full(8, 0.25), atol=1e-9)
    # The energy is three times that of the z components.
    assert abs(3 * sum(pairs[i, i + 1] for i in range(7)) - ground.energy) < 1e-6
    assert len(ground.entropies) == 7 and abs(ground.entropies - ground.entropies[::-1]).max() < 1e-6
    assert [state for state, *_ in seen] == sorted(state for state, *_ in seen)
    assert seen[0][1] == 1 and len(ground.sweeps) == sum(state == 0 for state, *_ in seen)


def test_other_sites():
    # (-1)(c_i^dagger c_j + h.c.) of free fermions: the sum of the lowest levels.
    chain = networks.Chain("fermion", 6)
    for i in range(5):
        chain.add(-1, ("Cdag", i), ("C", i + 1), with_adjoint=True)
    (state,) = networks.dmrg(chain, ["Occ", "Emp"] * 3, expect=["N"])
    levels = -2 * np.cos(np.pi * np.arange(1, 7) / 7)
    assert abs(state.energy - levels[:3].sum()) < 1e-9 and abs(state.expect["N"].sum() - 3) < 1e-9
    # The transverse field does not conserve a charge.
    ising = networks.Chain("spin_half", 6, conserve=False)
    for i in range(6):
        ising.add(-1, ("X", i))
        if i < 5:
            ising.add(-1, ("Z", i), ("Z", i + 1))
    (state,) = networks.dmrg(ising, ["Up"] * 6, max_dims=[16])
    z, x = np.diag([1.0, -1]), np.array([[0.0, 1], [1, 0]])
    at = lambda *factors: np.kron(np.kron(np.eye(2 ** factors[0][1]), factors[0][0]), np.eye(2 ** (5 - factors[0][1])))
    h = sum(-at((x, i)) for i in range(6)) - sum(at((z, i)) @ at((z, i + 1)) for i in range(5))
    assert abs(state.energy - np.linalg.eigvalsh(h)[0]) < 1e-8
    spin = networks.Chain("spin", 2, twice=2).add(1, ("Sz", 0), ("Sz", 1)).add(0.5, ("S+", 0), ("S-", 1), with_adjoint=True)
    (state,) = networks.dmrg(spin, ["1", "-1"] if False else _extremes(spin))
    assert abs(state.energy + 2) < 1e-9


def _extremes(chain):
    """Names of the states of the greatest and the least Sz, from the error that lists them."""
    with pytest.raises(t4a.ArgumentError) as caught:
        networks.dmrg(chain, ["?", "?"])
    text = str(caught.value).split("it has ")[1]
    names = [name.strip(" \"',.") for name in text.split(",")]
    return names[0], names[-1]


def test_searches_end_as_the_caller_wants():
    chain = heisenberg(8)
    (state,) = networks.dmrg(chain, ["Up", "Dn"] * 4, progress=lambda state, sweep, *_: sweep < 2)
    assert len(state.sweeps) == 2

    class Mine(Exception):
        pass

    def fail(*_):
        raise Mine("in a sweep")

    with pytest.raises(Mine, match="in a sweep"):
        networks.dmrg(chain, ["Up", "Dn"] * 4, progress=fail)
    with pytest.raises(t4a.ArgumentError, match="Sq"):
        networks.dmrg(networks.Chain("spin_half", 2).add(1, ("Sq", 0)), ["Up", "Dn"])
    with pytest.raises(t4a.ArgumentError, match="Hermitian"):
        networks.dmrg(networks.Chain("spin_half", 2).add(1j, ("Sz", 0)), ["Up", "Dn"])
    with pytest.raises(t4a.ArgumentError, match="max_dim(?!.* column)"):
        networks.dmrg(chain, ["Up", "Dn"] * 4, max_dim=3)
    with pytest.raises(t4a.ArgumentError, match="unknown variant"):
        networks.dmrg(networks.Chain("qubit", 2), ["Up", "Dn"])


def test_trains_of_functions():
    calls = []

    def f(points):
        calls.append(len(points))
        return 1 / (1 + points.sum(1))

    train = networks.cross_interpolation(f, [6] * 5, tolerance=1e-11)
    assert train.report["status"] == "converged" and train.report["evaluations"] == sum(calls) < 6**5
    every = np.indices([6] * 5).reshape(5, -1).T
    np.testing.assert_allclose(train(every), f(every), atol=1e-9)
    assert abs(train.sum() - f(every).sum()) < 1e-6
    weights = [np.arange(6.0)] * 5
    assert abs(train.sum(weights) - (f(every) * every.prod(1)).sum()) < 1e-4
    phase = networks.cross_interpolation(lambda x: np.exp(1j * x.sum(1)), [4, 3, 5], dtype=complex)
    assert [core.shape for core in phase.cores] == [(1, 4, 1), (1, 3, 1), (1, 5, 1)]
    np.testing.assert_allclose(phase([[3, 2, 4], [0, 1, 2]]), np.exp(1j * np.array([9, 3])), atol=1e-12)
    # One point that no search finds, but for its pivot.
    peak = lambda x: (x == 7).all(1).astype(float)
    found = networks.cross_interpolation(peak, [16] * 6, initial_pivots=[[7] * 6])
    assert abs(found(np.full(6, 7)) - 1) < 1e-12


def test_functions_that_fail():
    class Mine(Exception):
        pass

    def fail(points):
        raise Mine(f"at {points[0].tolist()}")

    for _ in range(2):
        with pytest.raises(Mine, match=r"at \[0, 0\]"):
            networks.cross_interpolation(fail, [3, 3])
    with pytest.raises(t4a.ArgumentError, match="shape"):
        networks.cross_interpolation(lambda x: np.ones(3), [3, 3])
    with pytest.raises(t4a.ArgumentError, match="complex"):
        networks.cross_interpolation(lambda x: 1j * np.ones(len(x)), [3, 3])
    with pytest.raises(t4a.ArgumentError, match="NaN|inf"):
        networks.cross_interpolation(lambda x: np.full(len(x), np.nan), [3, 3])
    with pytest.raises(t4a.ArgumentError, match="toleranc"):
        networks.cross_interpolation(lambda x: np.ones(len(x)), [3, 3], toleranc=1)
    with pytest.raises(t4a.ArgumentError):
        networks.cross_interpolation(lambda x: np.ones(len(x)), [])
    with pytest.raises(t4a.ArgumentError):
        networks.cross_interpolation(lambda x: np.ones(len(x)), [3, 0])
    with pytest.raises(t4a.ArgumentError, match="int64"):
        networks.cross_interpolation(lambda x: x[:, 0], [3, 3], dtype=int)


def test_options_and_points_of_numpy():
    chain = networks.Chain("spin_half", np.int64(2)).add(np.float32(1), ("Sz", np.int64(0)), ("Sz", 1))
    found = networks.dmrg(chain, ["Up", "Dn"], states=np.int64(1), max_dims=np.array([4, 8]), cutoff=np.float64(1e-12))
    assert abs(found[0].energy + 0.25) < 1e-12
    train = networks.cross_interpolation(lambda x: 1.0 + x.sum(1), np.array([4, 5], np.uint8), tolerance=np.float32(1e-8))
    np.testing.assert_allclose(train(np.array([[3, 4]], np.uint8)), [8.0])
    # Points that NumPy would take from the end or round.
    for wrong in ([-1, 0], [4, 0], [0, 5], [0.5, 1]):
        with pytest.raises(t4a.ArgumentError, match="indices of sites of sizes"):
            train(wrong)
    for wrong in ([4.5, 3], [[4, 3]], 4):
        with pytest.raises(t4a.ArgumentError, match="sizes"):
            networks.cross_interpolation(lambda x: 1.0 + x.sum(1), wrong)
    for coefficient, site, text in ((np.nan, 0, "finite"), (1, 0.5, "site=0.5")):
        with pytest.raises(t4a.ArgumentError, match=text):
            networks.Chain("spin_half", 2).add(coefficient, ("Sz", site))
