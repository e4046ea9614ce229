"""Linear algebra against NumPy and identities; every operation of the library has a function; errors of options."""

import re
from pathlib import Path

import functions
import numpy as np
import pytest

import t4a
import t4a.numpy as tn
from t4a import _functions, _plans
from t4a.numpy import linalg

ROOT = Path(__file__).parents[2]
rng = np.random.default_rng(17)


def noise(*shape, dtype="complex128"):
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
    return x if dtype == "complex128" else x.real


def h(x):
    return x.swapaxes(-1, -2).conj()


def operations_of_the_library():
    """Names of the variants of `MatrixOp` in the text of operations."""
    source = (ROOT / "linalg/src/table/mod.rs").read_text()
    rows = source[source.rindex("operations! {") :].split("\n}\n")[0]
    names = re.findall(r"^    (\w+)\(crate::", rows, flags=re.MULTILINE)
    assert {"Svd", "LuFactor", "LowRank"} <= set(names)
    return {re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower() for name in names}


# Functions of Rust that are options of others here, and those that every framework has.
OPTIONS = {
    "lu_full": "lu_factor", "qr_complete": "qr", "svd_full": "svd", "cholesky_upper": "cholesky", "solve_right": "solve",
    "solve_triangular_right": "solve_triangular",
}  # fmt: skip
OF_FRAMEWORKS = {"diag", "diag_embed", "trace", "norm", "lstsq_residuals"}
# The inverse of `cond`.
OF_OTHERS = {"rcond"}


def test_every_function_of_rust_has_a_name():
    text = "".join(path.read_text() for path in (ROOT / "linalg/src/user").glob("*.rs"))
    names = set(re.findall(r"^pub fn (\w+)", text, flags=re.MULTILINE))
    # Other forms, options of derivatives, and tensors as matrices.
    names = {name for name in names - {"status", "jvp"} if not name.endswith(("_with", "_left_dims"))}
    assert len(names) > 40
    assert {OPTIONS.get(name, name) for name in names - OF_FRAMEWORKS - OF_OTHERS} <= set(linalg.__all__)


def test_every_operation_has_a_function(monkeypatch):
    seen, made = set(), _plans.of_matrices

    def recorded(name, *args, **options):
        seen.add(name)
        return made(name, *args, **options)

    monkeypatch.setattr(_plans, "of_matrices", recorded)
    build = _functions.build(tn.apply, tn._asarray, tn._name, tn._cast, number=lambda x: x[()], arrays=np)
    t = functions.flavour(build, np.asarray)
    for name, kind in functions.ALL:
        f, operands = functions.case(name, kind)
        f(t, *operands)
    assert seen == operations_of_the_library()


def test_submodules_have_the_same_functions():
    for name, some in (("linalg", "svd"), ("scan", "cumsum"), ("crf", "log_partition")):
        module = getattr(tn, name)
        assert some in module.__all__ and all(getattr(module, f) is getattr(tn, f) for f in module.__all__)
    assert {"einsum", "softmax", "graded_svd"}.isdisjoint(linalg.__all__)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("shape", [(4, 4), (2, 5, 3), (3, 5)])
def test_factors(shape, dtype):
    x = noise(*shape, dtype=dtype)
    m, n = shape[-2:]
    near = lambda got, want: np.testing.assert_allclose(got, want, atol=1e-12)
    eye = lambda n: np.broadcast_to(np.eye(n), (*shape[:-2], n, n))
    u, s, vh = linalg.svd(x, full_matrices=True)
    near(s, np.linalg.svd(x, compute_uv=False))
    for q in (u, vh):
        near(h(q) @ q, eye(q.shape[-1]))
    near(u[..., : min(m, n)] * s[..., None, :] @ vh[..., : min(m, n), :], x)
    q, r = linalg.qr(x, mode="complete")
    near(q @ r, x)
    near(h(q) @ q, eye(m))
    for mode in ("reduced", "complete"):
        q, r, p = linalg.qr_pivoted(x, mode)
        near(q @ r, np.take_along_axis(x, p[..., None, :], -1))
        diagonal = abs(np.diagonal(r, axis1=-2, axis2=-1))
        assert (diagonal[..., :-1] >= diagonal[..., 1:] - 1e-12).all()
    for of, lower, k in ((linalg.ql, 1, n - m), (linalg.rq, 0, n - m)):
        a, b = of(x)
        near(a @ b, x)
        t = b if lower else a
        rows, columns = t.shape[-2:]
        near(t, np.tril(t, columns - rows) if lower else np.triu(t, columns - rows))
    p, l, u = linalg.lu(x)
    near(p @ l @ u, x)
    assert ((p == 0) | (p == 1)).all() and (p.sum(-1) == 1).all() and (p.sum(-2) == 1).all()
    near(l, np.tril(l))
    near(u, np.triu(u))
    assert abs(l).max() <= 1 + 1e-12 or dtype == "complex128"
    packed, rows, columns = linalg.lu_factor(x, pivoting="full")
    k = min(m, n)
    l, u = np.tril(packed[..., :k], -1) + np.eye(m, k), np.triu(packed[..., :k, :])
    near(l @ u, np.take_along_axis(np.take_along_axis(x, rows[..., None], -2), columns[..., None, :], -1))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solutions(dtype):
    a, b, c = (noise(2, 4, 4, dtype=dtype) for _ in range(3))
    vector, one = noise(4, dtype=dtype), a[0]
    near = lambda got, want: np.testing.assert_allclose(got, want, atol=1e-10)
    packed, rows = linalg.lu_factor(a)
    near(a @ linalg.lu_solve(packed, rows, b), b)
    near(h(a) @ linalg.lu_solve(packed, rows, b, adjoint=True), b)
    near(one @ linalg.lu_solve(packed[0], rows[0], vector), vector)
    near(linalg.solve(a, b, left=False) @ a, b)
    near(linalg.solve(one, vector, left=False) @ one, vector)
    for upper in (False, True):
        for unit in (False, True):
            t = np.triu(a) if upper else np.tril(a)
            t = t - np.eye(4) * t + np.eye(4) if unit else t
            for trans, of in (("N", t), ("T", t.swapaxes(-1, -2)), ("C", h(t))):
                options = dict(upper=upper, unitriangular=unit, trans=trans)
                near(of @ linalg.solve_triangular(a, b, **options), b)
                near(linalg.solve_triangular(a, b, left=False, **options) @ of, b)
                near(linalg.solve_triangular(one, vector, left=False, **options) @ of[0], vector)
    x = linalg.lyapunov(a, c)
    near(a @ x + x @ h(a), c)
    # Eigenvalues within, on both sides of, and outside of the unit circle.
    for scale in (0.1, 0.5, 2):
        x = linalg.lyapunov_discrete(scale * a, c)
        near(x - scale**2 * a @ x @ h(a), c)
    p = a @ h(a) + np.eye(4)
    x = linalg.lyapunov_positive(p, c)
    near(p @ x + x @ p, c)
    low = noise(5, 2, dtype=dtype) @ noise(2, 3, dtype=dtype)
    near(linalg.lstsq_min_norm(low, noise(5, dtype=dtype) * 0 + 1), np.linalg.pinv(low, rcond=1e-12) @ np.ones(5))
    near(linalg.lstsq_min_norm(low, np.ones((5, 1)), rtol=2.0), np.zeros((3, 1)))
    for n in (0, 1, 2, 5, -1, -3):
        near(linalg.matrix_power(a, n), np.linalg.matrix_power(a, n))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_functions_of_matrices(dtype):
    x = noise(3, 4, 4, dtype=dtype)
    p = x @ h(x) + np.eye(4)
    near = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
    for name, f in (("exp", np.exp), ("log", np.log), (0.5, np.sqrt), (-2, lambda e: e**-2.0)):
        a = p / 9 if name == "exp" else p
        e, v = np.linalg.eigh(a)
        near(linalg.hermitian_function(a, name), v * f(e)[:, None] @ h(v))
        u, s, vh = np.linalg.svd(a[..., :3], full_matrices=False)
        near(linalg.svd_function(a[..., :3], name), u * f(s)[:, None] @ vh)
    near(h(linalg.cholesky(p, upper=True)) @ linalg.cholesky(p, upper=True), p)


def test_derivatives_at_ties():
    """`hermitian_function` is smooth at ties, where the vectors of `eigh` have no derivative."""
    tie, direction = np.diag([2.0, 2.0, 1.0]), np.ones((3, 3))
    (y,), (dy,) = tn.jvp(_plans.function([(3, 3)], ["float64"], "hermitian_function", 0.5).op, [tie], [direction])
    step = 1e-6
    of = lambda a: linalg.hermitian_function(a, 0.5)
    np.testing.assert_allclose(dy, (of(tie + step * direction) - of(tie - step * direction)) / (2 * step), atol=1e-8)

    def along_vectors(**options):
        op = _plans.spectrum([(3, 3)], ["float64"], "eigh", _plans.ties(*{**dict(check_gauge=True, tolerance=None, broadening=None, separable=False), **options}.values())).op
        g = np.zeros((3, 3))
        g[2] = [0, 0, 1.0]
        return tn.vjp(op, [tie], [None, g])[0]

    # The vector of the single eigenvalue has a derivative in either case.
    np.testing.assert_allclose(along_vectors(separable=True), along_vectors(), atol=1e-12)
    # A gap of 1/2 of the largest value is a tie for a greater tolerance.
    assert abs(along_vectors(check_gauge=False, tolerance=0.6, separable=True)).max() == 0
    broad = along_vectors(check_gauge=False, broadening=0.5)
    assert np.isfinite(broad).all()


def test_losses_that_are_accepted_at_ties():
    def derivative(cotangent, **options):
        ties = _plans.ties(**{**dict(check_gauge=True, tolerance=None, broadening=None, separable=False), **options})
        op = _plans.spectrum([(3, 3)], ["float64"], "eigh", ties).op
        return tn.vjp(op, [np.diag([2.0, 2.0, 1.0])], [None, cotangent])[0]

    # The eigenvalues are 1, 2, 2. A loss of one tied vector, and one of the rotation of two.
    single, rotation = np.zeros((2, 3, 3))
    single[0, 2], rotation[0] = 1, [1, 2, 3]
    for options in ({"separable": True}, {"broadening": 0.1}):
        assert np.isfinite(derivative(single, **options)).all()
        with pytest.raises(t4a.GaugeError):
            derivative(rotation, **options)
    with pytest.raises(t4a.GaugeError):
        derivative(single)


def test_functions_of_singular_values_at_zero():
    x, ones = np.diag([1.0, 0.0]), np.ones((2, 2))
    op = lambda function: _plans.function([(2, 2)], ["float64"], "svd_function", _plans.elementary(function)).op
    for function in ("exp", 0.5, 0):
        assert np.isfinite(linalg.svd_function(x, function)).all()
        with pytest.raises(t4a.SingularError):
            tn.vjp(op(function), [x], [ones])
    np.testing.assert_allclose(tn.vjp(op(3), [x], [ones])[0], [[3, 1], [1, 0]], atol=1e-14)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_norms_and_tensors(dtype):
    near = lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)
    x, square = noise(2, 4, 3, dtype=dtype), noise(2, 3, 3, dtype=dtype)
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        near(linalg.matrix_norm(x, ord), np.linalg.norm(x, ord, (-2, -1)))
        near(linalg.cond(square, ord), np.linalg.cond(square, ord))
    near(linalg.cond(x), np.linalg.cond(x))
    assert np.isinf(linalg.cond(np.ones((2, 2)) * 0)) and linalg.matrix_norm(np.zeros((2, 3))) == 0
    with pytest.raises(t4a.SingularError):
        linalg.cond(np.zeros((2, 2)), 1)
    a, b = noise(2, 3, 6, dtype=dtype), noise(2, 3, dtype=dtype)
    near(linalg.tensorsolve(a, b), np.linalg.tensorsolve(a, b))
    near(linalg.tensorinv(a, 2), np.linalg.tensorinv(a, 2))
    v, tau = noise(2, 5, 4, dtype=dtype), noise(2, 3, dtype=dtype)
    tau[0, 1] = 0
    for i in range(2):
        want = np.eye(5, dtype=dtype)
        for k in range(3):
            u = np.concatenate([np.zeros(k), [1], v[i, k + 1 :, k]])[:, None]
            want = want @ (np.eye(5) - tau[i, k] * u @ h(u))
        near(linalg.householder_product(v, tau)[i], want[:, :4])


def kept_by_definition(s, max_dim=None, min_dim=0, cutoff=0, relative_cutoff=0, discarded_weight=0, relative_discarded_weight=0):
    """The smallest number of values that a cutoff allows, within the limits."""
    allowed = [len(s)]
    for p in range(len(s)):
        last, weight = s[p], (s[p:] ** 2).sum()
        if (cutoff and last <= cutoff) or (relative_cutoff and last <= relative_cutoff * s[0]):
            allowed.append(p)
        if weight <= discarded_weight or (relative_discarded_weight and weight <= relative_discarded_weight * (s**2).sum()):
            allowed.append(p)
    return min(max(min(allowed), min(min_dim, len(s))), max_dim or len(s))


TRUNCATIONS = (
    {}, {"max_dim": 2}, {"max_dim": 9}, {"cutoff": 1.0}, {"relative_cutoff": 0.3}, {"discarded_weight": 2.0},
    {"relative_discarded_weight": 0.2}, {"cutoff": 1e9}, {"cutoff": 1e9, "min_dim": 2}, {"relative_cutoff": 0.3, "max_dim": 1},
    {"relative_discarded_weight": 0.05, "cutoff": 0.7, "max_dim": 3, "min_dim": 1},
)  # fmt: skip


@pytest.mark.parametrize("options", TRUNCATIONS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_truncated_svd(dtype, options):
    for shape in ((5, 4), (3, 4, 5), (0, 3, 2)):
        x = noise(*shape, dtype=dtype)
        u, s, vh = linalg.svd(x)
        a, b, c, error = linalg.svd_truncated(x, **options)
        k = s.shape[-1]
        wanted = [kept_by_definition(row, **options) for row in s.reshape(-1, k)]
        p = max(wanted, default=min(k, options.get("max_dim", k)))
        for got, want in ((a, u[..., :p]), (b, s[..., :p]), (c, vh[..., :p, :])):
            np.testing.assert_array_equal(got, want)
        np.testing.assert_allclose(error, np.linalg.norm(x - a * b[..., None, :] @ c, axis=(-2, -1)), atol=1e-12)


def test_cutoffs_are_inclusive_and_do_not_overflow():
    x = np.diag([4.0, 2.0, 1.0, 0.0])
    rank = lambda x, **options: linalg.svd_truncated(x, **options)[1].shape[-1]
    for options, want in (
        ({}, 4), ({"cutoff": 0.0}, 4), ({"cutoff": 1e-300}, 3), ({"cutoff": 1.0}, 2), ({"relative_cutoff": 0.25}, 2),
        ({"relative_cutoff": 0.2499}, 3), ({"discarded_weight": 1.0}, 2), ({"discarded_weight": 5.0}, 1),
        ({"discarded_weight": 21.0}, 0), ({"relative_discarded_weight": 5 / 21}, 1), ({"relative_discarded_weight": 1.0}, 0),
    ):
        assert rank(x, **options) == want, options
    for scale in (2.0**700, 2.0**-700):
        assert rank(x * scale, relative_discarded_weight=1.01 / 21) == 2
    assert rank(x * 2.0**500, discarded_weight=2.0**1000) == 2
    assert rank(x * 0, cutoff=1, min_dim=1) == 1 and rank(x * 0, relative_cutoff=0.5) == 4


def test_errors_of_options():
    x = np.eye(3)
    for call, text in (
        (lambda: tn.qr(x, mode="raw"), "mode='raw': one of 'reduced', 'complete'"),
        (lambda: tn.lu_factor(x, pivoting=2), "pivoting=2: one of 'partial', 'full'"),
        (lambda: tn.solve_triangular(x, x, trans="H"), "trans='H': one of 'N', 'T', 'C'"),
        (lambda: tn.solve_triangular(x, x, left=False, trans="H"), "trans='H'"),
        (lambda: tn.polar(x, "up"), "side='up': one of 'right', 'left'"),
        (lambda: tn.hermitian_function(x, "sin"), "function='sin': one of 'exp', 'log'"),
        (lambda: tn.svd_function(x, np.sin), "'exp', 'log', or a number"),
        (lambda: tn.svd(x, tolerance=-1), "tolerance=-1: a nonnegative number"),
        (lambda: tn.eigh(x, broadening=float("nan")), "broadening=nan"),
        (lambda: tn.pinv(x, rtol=-1), "rtol=-1"),
        (lambda: tn.matrix_norm(x, "spectral"), "ord='spectral': one of 'fro', 'nuc'"),
        (lambda: tn.cond(x, 3), "p=3"),
        (lambda: tn.svd_truncated(x, max_dim=0), "max_dim=0: an integer of at least 1"),
        (lambda: tn.svd_truncated(x, max_dim=1, min_dim=2), "min_dim=2 exceeds max_dim=1"),
        (lambda: tn.svd_truncated(x, cutoff=-1), "cutoff=-1: a nonnegative number"),
        (lambda: tn.svd_truncated(x, relative_discarded_weight=float("nan")), "relative_discarded_weight=nan"),
    ):
        with pytest.raises(t4a.ArgumentError, match=re.escape(text)):
            call()
    for call in (
        lambda: tn.matrix_power(np.ones((2, 3)), 2),
        lambda: tn.lu_solve(x, np.arange(2), x),
        lambda: tn.lu_solve(x, np.arange(3), np.ones((2, 3, 1))),
        lambda: tn.lyapunov(x, np.ones((3, 2))),
        lambda: tn.lyapunov_discrete(x, np.ones((2, 2))),
        lambda: tn.lyapunov_discrete(np.ones((3, 2)), x),
        lambda: tn.householder_product(x, np.ones(4)),
        lambda: tn.tensorsolve(x, np.ones(2)),
        lambda: tn.tensorinv(x),
        lambda: tn.tensorinv(np.ones((2, 3)), 1),
    ):
        with pytest.raises(t4a.ShapeError):
            call()
