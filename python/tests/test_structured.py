import functions
import numpy as np
import pytest

import t4a
import t4a.numpy as tn
from t4a.structured import Leg, Spec

rng = np.random.default_rng(5)
SPECS = [
    # U(1): charges of both signs, dual legs, fluxes.
    (Spec([Leg({-1: 2, 0: 3, 1: 2}), Leg({0: 2, 1: 1, 2: 2}), Leg({-1: 1, 0: 2, 3: 2}, dual=True)], 1, 1),
     Spec([Leg({-1: 1, 0: 2, 3: 2}), Leg({-1: 2, 0: 3, 1: 2}, dual=True), Leg({0: 2, 1: 1, 2: 2})], 2, -1)),
    # Z_3.
    (Spec([Leg({0: 2, 1: 1, 2: 2}, modulus=3), Leg({1: 2, 2: 1}, modulus=3), Leg({0: 1, 2: 3}, True, 3)], 2, 2),
     Spec([Leg({0: 1, 2: 3}, False, 3), Leg({0: 2, 1: 1, 2: 2}, True, 3), Leg({0: 2}, modulus=3)], 1, 1)),
]
AXES = [((2,), (0,)), ((-1,), (0,)), ((0, 2), (1, 0)), ((2, 0), (0, 1)), ((), ())]


def allowed(spec, place):
    """By definition: the charges of the indices of a nonzero element add up to the flux."""
    total = 0
    for leg, i in zip(spec.legs, place):
        charge = np.repeat(*map(list, zip(*leg.sectors)))[i]
        total += -charge if leg.dual else charge
    return spec.reduced(total - spec.flux) == 0


@pytest.mark.parametrize("spec", [spec for pair in SPECS for spec in pair])
def test_blocks_are_what_the_charges_allow(spec):
    x = np.arange(1.0, spec.size + 1)
    dense = spec.to_dense(x)
    for place in np.ndindex(dense.shape):
        assert (dense[place] != 0) == allowed(spec, place)
    np.testing.assert_array_equal(spec.from_dense(dense), x)


@pytest.mark.parametrize("pair", SPECS)
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_contractions_are_those_of_dense_arrays(pair, axes, dtype):
    x, y = (rng.normal(size=spec.size) for spec in pair)
    if dtype == "complex128":
        x, y = x + 1j * rng.normal(size=x.size), y + 1j * rng.normal(size=y.size)
    x, y = x.astype(dtype), y.astype(dtype)
    z, spec = tn.graded_contract(x, y, pair, axes)
    assert z.dtype == np.dtype(dtype) and z.shape == (spec.size,)
    want = np.tensordot(pair[0].to_dense(x), pair[1].to_dense(y), axes)
    np.testing.assert_allclose(spec.to_dense(z), want, rtol=1e-5 if dtype == "float32" else 1e-12, atol=1e-5 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("spec", [spec for pair in SPECS for spec in pair])
def test_svd(spec):
    x = rng.normal(size=spec.size)
    u, s, vh, left, right = tn.graded_svd(x, spec)
    dense, columns = spec.to_dense(x), np.prod(spec.shape[spec.rows :], dtype=int)
    matrix = dense.reshape(-1, columns)
    values = np.linalg.svd(matrix, compute_uv=False)
    np.testing.assert_allclose(np.sort(s.ravel())[::-1][: len(values)], values[: s.size], atol=1e-12)
    k = left.shape[-1]
    a, b = left.to_dense(u).reshape(-1, k), right.to_dense(vh).reshape(k, -1)
    np.testing.assert_allclose(a * s.ravel() @ b, matrix, atol=1e-12)
    np.testing.assert_allclose(a.T @ a, np.eye(k), atol=1e-12)


def kept_of_charges(parts, max_dim=None, cutoff=0.0, discarded_weight=0.0, min_per_sector=0, degeneracy=0.0):
    """By definition: values of all charges in descending order, equal ones by charge."""
    all = sorted(((-v, q, i) for q, own in enumerate(parts) for i, v in enumerate(own)))
    values = np.array([-v for v, *_ in all])
    keep = len(all)
    while keep and ((cutoff and values[keep - 1] <= cutoff) or (values[keep - 1 :] ** 2).sum() <= discarded_weight):
        keep -= 1
    keep = limit = max(1, min(keep, max_dim or keep))
    while degeneracy and 0 < keep < len(all) and values[keep - 1] - values[keep] <= degeneracy * values[keep - 1]:
        keep -= 1
    counts = [sum(q == own for _, own, _ in all[: keep or limit]) for q in range(len(parts))]
    return [max(count, min(min_per_sector, len(own))) for count, own in zip(counts, parts)]


@pytest.mark.parametrize(
    "options",
    [{}, {"max_dim": 1}, {"max_dim": 3}, {"cutoff": 1.5}, {"discarded_weight": 4.0}, {"cutoff": 1e9}, {"max_dim": 2, "min_per_sector": 1},
     {"max_dim": 3, "degeneracy": 0.3}, {"max_dim": 2, "degeneracy": 1.0}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("spec", [spec for pair in SPECS for spec in pair])
def test_truncated_svd(spec, dtype, options):
    x = rng.normal(size=spec.size).astype(dtype)
    x = x + 1j * rng.normal(size=spec.size) if dtype is complex else x
    u, s, vh, left, right = tn.graded_svd(x, spec)
    sectors = right.legs[0].sectors
    starts = np.cumsum([0, *(size for _, size in sectors)])
    kept = kept_of_charges([s[a:b] for a, b in zip(starts, starts[1:])], **options)
    indices = np.concatenate([np.arange(a, a + count) for a, count in zip(starts, kept)])
    a, b, c, error, cut, rest = tn.graded_svd_truncated(x, spec, **options)
    assert dict(rest.legs[0].sectors) == {q: count for (q, _), count in zip(sectors, kept) if count}
    assert cut.legs == (*spec.legs[: spec.rows], rest.legs[0].conj) and rest.legs[1:] == spec.legs[spec.rows :]
    assert a.shape == (cut.size,) and c.shape == (rest.size,) and a.dtype == c.dtype == x.dtype
    np.testing.assert_array_equal(b, s[indices])
    np.testing.assert_array_equal(cut.to_dense(a), left.to_dense(u)[..., indices])
    np.testing.assert_array_equal(rest.to_dense(c), right.to_dense(vh)[indices])
    assert tn.graded_contract(a, c, (cut, rest), ((cut.rows,), (0,)))[1] == spec
    scaled = np.tensordot(cut.to_dense(a) * b, rest.to_dense(c), 1)
    np.testing.assert_allclose(error, np.linalg.norm(spec.to_dense(x) - scaled), atol=1e-12)


def test_truncation_options():
    x, spec = rng.normal(size=functions.SQUARE.size), functions.SQUARE
    for options, text in (
        ({"max_dim": 0}, "max_dim=0"), ({"degeneracy": -1}, "degeneracy=-1"), ({"min_per_sector": 0.5}, "min_per_sector=0.5"),
        ({"min_dim": 3, "max_dim": 2}, "min_dim=3 exceeds max_dim=2"), ({"tolerance": -1}, "tolerance=-1"),
    ):
        with pytest.raises(t4a.ArgumentError, match=text):
            tn.graded_svd_truncated(x, spec, **options)
    # Of equal values those of the smaller charge.
    legs = Leg({0: 1, 1: 1, 2: 1}), Leg({0: 1, 1: 1, 2: 1}, dual=True)
    assert tn.graded_svd_truncated(np.ones(3), Spec(legs, 1), max_dim=2)[-1].legs[0].sectors == ((0, 1), (1, 1))


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("spec", [spec for pair in SPECS for spec in pair])
def test_factors_contract_to_the_tensor(spec, dtype):
    x = rng.normal(size=spec.size).astype(dtype)
    x = x + 1j * rng.normal(size=spec.size) if dtype is complex else x
    u, s, vh, left, right = tn.graded_svd(x, spec)
    columns = int(np.prod(spec.shape[spec.rows :]))
    k = left.shape[-1]
    product = left.to_dense(u).reshape(-1, k) * s @ right.to_dense(vh).reshape(k, columns)
    np.testing.assert_allclose(product.reshape(spec.shape), spec.to_dense(x), atol=1e-12)
    for name in ("graded_qr", "graded_lq"):
        a, b, left, right = getattr(tn, name)(x, spec)
        assert a.dtype == b.dtype == x.dtype
        product, found = tn.graded_contract(a, b, (left, right), ((left.rows,), (0,)))
        assert found == spec
        np.testing.assert_allclose(product, x, atol=1e-12)
        q, own = (a, left) if name == "graded_qr" else (b, right)
        q = own.to_dense(q).reshape((-1, k) if name == "graded_qr" else (k, -1))
        gram = q.conj().T @ q if name == "graded_qr" else q @ q.conj().T
        np.testing.assert_allclose(gram, np.eye(k), atol=1e-12)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("spec", [spec for pair in SPECS for spec in pair])
def test_polar_factors(spec, dtype, side):
    x = rng.normal(size=spec.size).astype(dtype)
    x = x + 1j * rng.normal(size=spec.size) if dtype is complex else x
    u, p, own = tn.graded_polar(x, spec, side=side)
    n = int(np.prod(own.shape[: own.rows]))
    matrix = own.to_dense(p).reshape(n, n)
    np.testing.assert_allclose(matrix, matrix.conj().T, atol=1e-12)
    # The root of xH x or of x xH by definition.
    dense = spec.to_dense(x).reshape((-1, n) if side == "right" else (n, -1))
    square = dense.conj().T @ dense if side == "right" else dense @ dense.conj().T
    np.testing.assert_allclose(matrix @ matrix, square, atol=1e-11)
    assert np.linalg.eigvalsh(matrix).min() > -1e-12
    isometry = spec.to_dense(u).reshape(dense.shape)
    np.testing.assert_allclose(isometry @ matrix if side == "right" else matrix @ isometry, dense, atol=1e-11)
    with pytest.raises(t4a.ArgumentError, match="side='up'"):
        tn.graded_polar(x, spec, side="up")


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("modulus", [0, 3])
def test_eigenvalues_are_those_of_dense_arrays(modulus, dtype):
    legs = [Leg({0: 2, 1: 1}, modulus=modulus), Leg({0: 1, 1: 1, 2: 2}, True, modulus)]
    spec = Spec([*legs, *(leg.conj for leg in legs)], 2)
    x = rng.normal(size=spec.size).astype(dtype)
    x = x + 1j * rng.normal(size=spec.size) if dtype is complex else x
    n = legs[0].size * legs[1].size
    a = spec.to_dense(x).reshape(n, n)
    hermitian = spec.from_dense(((a + a.conj().T) / 2).reshape(spec.shape))
    e, v, own = tn.graded_eigh(x, spec)
    v = own.to_dense(v).reshape(n, n)
    np.testing.assert_allclose(spec.to_dense(hermitian).reshape(n, n) @ v, v * e, atol=1e-12)
    np.testing.assert_allclose(np.sort(e), np.linalg.eigvalsh((a + a.conj().T) / 2), atol=1e-12)
    e, v, own = tn.graded_eig(x, spec)
    v = own.to_dense(v).reshape(n, n)
    np.testing.assert_allclose(a @ v, v * e, atol=1e-11)
    np.testing.assert_allclose(np.sort_complex(e), np.sort_complex(np.linalg.eigvals(a)), atol=1e-11)
    for name in ("graded_eigh", "graded_eig"):
        with pytest.raises(t4a.ShapeError, match=f"{name}.*duals"):
            getattr(tn, name)(np.ones(Spec(spec.legs, 1).size), Spec(spec.legs, 1))


def test_gradients_in_torch():
    torch = pytest.importorskip("torch")
    import t4a.torch as tt

    pair, axes = SPECS[0], AXES[0]
    x, y = (torch.tensor(rng.normal(size=spec.size), requires_grad=True) for spec in pair)
    f = lambda x, y: tt.graded_contract(x, y, pair, axes)[0]
    assert torch.autograd.gradcheck(f, (x, y)) and torch.autograd.gradgradcheck(f, (x, y))
    assert torch.autograd.gradcheck(lambda x: tt.graded_svd(x, pair[0])[1], (x,))
    z = [v.to(torch.complex128).detach() * (1 + 0.5j) for v in (x, y)]
    assert torch.autograd.gradcheck(f, [v.requires_grad_() for v in z])


def test_gradients_in_jax():
    jax = pytest.importorskip("jax")
    from jax.test_util import check_grads

    import t4a.jax as tj

    jax.config.update("jax_enable_x64", True)
    pair, axes = SPECS[1], AXES[1]
    x, y = (rng.normal(size=spec.size) for spec in pair)
    f = lambda x, y: tj.graded_contract(x, y, pair, axes)[0]
    check_grads(f, (x, y), order=2, modes=("fwd", "rev"), atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(jax.jit(f)(x, y), tn.graded_contract(x, y, pair, axes)[0], rtol=1e-14)


def test_bad_input():
    leg = Leg({0: 1, 1: 2})
    spec = Spec([leg, leg.conj], 1)
    x = np.ones(spec.size)
    with pytest.raises(t4a.ShapeError, match="dual"):
        tn.graded_contract(x, x, (spec, spec), ((0,), (0,)))
    with pytest.raises(t4a.ArgumentError, match="axes"):
        tn.graded_contract(x, x, (spec, spec), ((2,), (0,)))
    with pytest.raises(t4a.ArgumentError, match=r"axes \(1, -1\) of 2 legs"):
        tn.graded_contract(x, x, (spec, spec), ((1, -1), (0, 1)))
    with pytest.raises(t4a.T4aError):
        tn.graded_contract(x[1:], x, (spec, spec), ((1,), (0,)))
    with pytest.raises(t4a.ShapeError):
        spec.to_dense(x[1:])
    with pytest.raises(t4a.ShapeError):
        spec.from_dense(np.ones((2, 2)))
    for sectors, modulus in (({3: 1}, 3), ({0: 0}, 0), ([(1, 2), (1, 3)], 0)):
        with pytest.raises(t4a.ArgumentError):
            Leg(sectors, modulus=modulus)
    with pytest.raises(t4a.ArgumentError):
        Spec([leg], 2)
    with pytest.raises(t4a.ArgumentError, match="groups"):
        Spec([leg, Leg({0: 1}, modulus=2)], 1)
    # Errors of the dense operation on a matrix of a charge have their types.
    for name in ("graded_svd", "graded_eigh"):
        with pytest.raises(t4a.SingularError, match="NaN"):
            getattr(tn, name)(np.full(spec.size, np.nan), spec)
    with pytest.raises(t4a.DtypeError):
        tn.graded_svd(np.ones(spec.size, int), spec)
    with pytest.raises(t4a.ArgumentError, match="blocks"):
        tn.graded_svd(np.ones(0), Spec([Leg({1: 1}), Leg({1: 1})], 1))


def test_a_spec_is_required():
    for call in (tn.graded_svd, tn.graded_polar, lambda x, spec: tn.graded_contract(x, x, (spec, spec), ([0], [0]))):
        with pytest.raises(t4a.ArgumentError, match="a Spec is required, given NoneType"):
            call(np.ones(3), None)
