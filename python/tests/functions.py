"""Calls of every differentiable function, for tests of derivatives: functions of (t, *operands), and operands as NumPy arrays."""

import inspect
from types import SimpleNamespace

import numpy as np

import t4a.numpy as numpy_functions
from t4a import _functions
from t4a.structured import Leg, Spec

# Functions without a derivative.
CONSTANT = {"argmax_einsum", "counting_einsum", "k_best_einsum"}
SPECS = (
    Spec([Leg({-1: 1, 0: 2}), Leg({0: 1, 1: 2}), Leg({0: 2, 1: 1}, dual=True)], 1),
    Spec([Leg({0: 2, 1: 1}), Leg({-1: 1, 0: 2}, dual=True)], 1),
)
SQUARE = Spec([Leg({-1: 1, 0: 2}), Leg({-1: 1, 0: 2}, dual=True)], 1)
TARGETS = np.array([0, 2])


def h(x):
    return x.swapaxes(-1, -2).conj()


def of_svd(t, x):
    # Independent of the phases of vectors.
    u, s, _ = t.svd(x, check_gauge=False)
    return (u * s[..., None, :] ** 2) @ h(u)


def of_truncated_svd(t, x):
    u, s, _, error = t.svd_truncated(x, max_dim=1, check_gauge=False)
    return (u * s[..., None, :] ** 2) @ h(u), 0 * error


def of_graded_truncated_svd(t, x):
    u, s, vh, _, left, right = t.graded_svd_truncated(x, SPECS[0], max_dim=2, check_gauge=False)
    product, _ = t.graded_contract(u, vh, (left, right), ((left.rows,), (0,)))
    return s, product


def of_eigh(t, x):
    e, v = t.eigh(x, check_gauge=False)
    return (v * e[..., None, :] ** 2) @ h(v)


def of_eig(t, x):
    # Independent of the scales of vectors.
    e, v = t.eig(x, check_gauge=False)
    return (v * e[..., None, :] ** 2) @ t.inv(v)


def of_graded_svd(t, x):
    u, s, vh, left, right = t.graded_svd(x, SPECS[0], check_gauge=False)
    product, _ = t.graded_contract(u, vh, (left, right), ((left.rows,), (0,)))
    return s, product


def of_full_svd(t, x):
    u, s, vh = t.svd(x, full_matrices=True, check_gauge=False)
    k = s.shape[-1]
    return (u[..., :k] * s[..., None, :] ** 2) @ h(u[..., :k]), u[..., k:] @ h(u[..., k:])


def of_lu_solve(t, a, b):
    packed, rows = t.lu_factor(a)
    return t.lu_solve(packed, rows, b), t.lu_solve(packed, rows, b, adjoint=True)


def of_graded_spectrum(name):
    # Independent of the phases of vectors.
    def of(t, x):
        e, v, _ = getattr(t, name)(x, SQUARE, check_gauge=False)
        return e, (v * v.conj()).real

    return of


def product(semiring):
    return lambda t, x, y: t.einsum("ij,jk->ik", x, y, semiring=semiring)


def cases(complex_numbers):
    """The calls with real operands, or those with complex ones."""
    rng = np.random.default_rng(8)

    def noise(*shape):
        x = rng.normal(size=shape)
        return x + 1j * rng.normal(size=shape) if complex_numbers else x

    def regular(*shape):
        return noise(*shape) + 3 * np.eye(shape[-1])

    def positive(n, batch=()):
        x = noise(*batch, n, n)
        return x @ h(x) + np.eye(n)

    all = {
        "einsum": (product("standard"), noise(2, 3), noise(3, 2)),
        "einsum to a number": (lambda t, x, y: t.einsum("ij,ji->", x, y), noise(2, 3), noise(3, 2)),
        "svd": (of_svd, noise(2, 3, 2)),
        "svd_truncated": (of_truncated_svd, noise(2, 3, 2)),
        "svdvals": (lambda t, x: t.svdvals(x), noise(3, 2)),
        "qr": (lambda t, x: t.qr(x), noise(3, 2)),
        "cholesky": (lambda t, x: t.cholesky(x), positive(3)),
        "eigh": (of_eigh, noise(3, 3)),
        "eigvalsh": (lambda t, x: t.eigvalsh(x), noise(3, 3)),
        "inv": (lambda t, x: t.inv(x), regular(2, 2, 2)),
        "det": (lambda t, x: t.det(x), regular(3, 3)),
        "slogdet": (lambda t, x: t.slogdet(x)[1], regular(3, 3)),
        "solve": (lambda t, a, b: t.solve(a, b), regular(3, 3), noise(3, 2)),
        "solve with a vector": (lambda t, a, b: t.solve(a, b), regular(2, 2), noise(2)),
        "pinv": (lambda t, x: t.pinv(x), noise(3, 2)),
        "expm": (lambda t, x: t.expm(x), 0.3 * noise(3, 3)),
        "sqrtm": (lambda t, x: t.sqrtm(x), positive(2)),
        "logm": (lambda t, x: t.logm(x), positive(2)),
        "polar": (lambda t, x: t.polar(x), regular(2, 2)),
        "cumsum": (lambda t, x: t.cumsum(x, axis=1), noise(2, 3)),
        "cumprod": (lambda t, x: t.cumprod(x), noise(3, 2)),
        "linear_recurrence": (lambda t, a, b: t.linear_recurrence(a, b), noise(4, 2), noise(4, 2)),
        "graded_contract": (
            lambda t, x, y: t.graded_contract(x, y, SPECS, ((2,), (0,)))[0], noise(SPECS[0].size), noise(SPECS[1].size),
        ),
        "lq": (lambda t, x: t.lq(x), noise(2, 3)),
        "eig": (of_eig, regular(2, 2)),
        "eigvals": (lambda t, x: t.eigvals(x), regular(2, 2)),
        "solve_triangular": (lambda t, a, b: t.solve_triangular(a, b, upper=True), regular(2, 2), noise(2, 1)),
        "lstsq": (lambda t, a, b: t.lstsq(a, b), noise(3, 2), noise(3)),
        "sylvester": (lambda t, a, b, c: t.sylvester(a, b, c), regular(2, 2), regular(1, 1), noise(2, 1)),
        "low_rank": (lambda t, x: t.low_rank(x, 1), noise(2, 2)),
        "svd with full matrices": (of_full_svd, noise(3, 2)),
        "svd_function": (lambda t, x: t.svd_function(x, 3), noise(3, 2)),
        "qr_pivoted": (lambda t, x: t.qr_pivoted(x)[:2], noise(3, 2)),
        "ql": (lambda t, x: t.ql(x), noise(3, 2)),
        "rq": (lambda t, x: t.rq(x), noise(2, 3)),
        "lu": (lambda t, x: t.lu(x)[1:], noise(3, 2)),
        "lu_factor": (lambda t, x: t.lu_factor(x)[0], noise(2, 3)),
        "lu_factor full": (lambda t, x: t.lu_factor(x, "full")[0], noise(2, 2, 2)),
        "lu_solve": (of_lu_solve, regular(2, 3, 3), noise(2, 3, 1)),
        "cholesky upper": (lambda t, x: t.cholesky(x, upper=True), positive(2)),
        "hermitian_function exp": (lambda t, x: t.hermitian_function(x, "exp"), noise(2, 2)),
        "hermitian_function power": (lambda t, x: t.hermitian_function(x, 0.5), positive(2)),
        "solve from the right": (lambda t, a, b: t.solve(a, b, left=False), regular(2, 2), noise(1, 2)),
        "solve_triangular with the adjoint": (
            lambda t, a, b: t.solve_triangular(a, b, unitriangular=True, trans="C"), noise(2, 2), noise(2),
        ),
        "solve_triangular from the right": (
            lambda t, a, b: t.solve_triangular(a, b, upper=True, left=False, trans="C"), regular(2, 2), noise(1, 2),
        ),
        "lstsq_min_norm": (lambda t, a, b: t.lstsq_min_norm(a, b), noise(2, 3), noise(2, 1)),
        "lyapunov": (lambda t, a, c: t.lyapunov(a, c), regular(2, 2), noise(2, 2)),
        "lyapunov_discrete": (lambda t, a, c: t.lyapunov_discrete(a, c), noise(2, 2) / 4, noise(2, 2)),
        "lyapunov_positive": (lambda t, a, c: t.lyapunov_positive(a, c), positive(2), noise(2, 2)),
        "matrix_power": (lambda t, x: (t.matrix_power(x, 3), t.matrix_power(x, -1)), regular(2, 2)),
        "householder_product": (lambda t, v, tau: t.householder_product(v, tau), noise(2, 3, 2), noise(2, 2)),
        "matrix_norm": (
            lambda t, x: tuple(t.matrix_norm(x, ord) for ord in ("fro", "nuc", 2, 1, -1, np.inf)), noise(2, 2, 3),
        ),
        "cond": (lambda t, x: (t.cond(x), t.cond(x, "fro")), regular(2, 2)),
        "tensorsolve": (lambda t, a, b: t.tensorsolve(a, b), regular(4, 4).reshape(2, 2, 4), noise(2, 2)),
        "tensorinv": (lambda t, x: t.tensorinv(x, 1), regular(4, 4).reshape(4, 2, 2)),
        "graded_svd": (of_graded_svd, noise(SPECS[0].size)),
        "graded_svd_truncated": (of_graded_truncated_svd, noise(SPECS[0].size)),
        "graded_qr": (lambda t, x: t.graded_qr(x, SPECS[0])[:2], noise(SPECS[0].size)),
        "graded_lq": (lambda t, x: t.graded_lq(x, SPECS[0])[:2], noise(SPECS[0].size)),
        "graded_polar": (lambda t, x: t.graded_polar(x, SQUARE)[:2], noise(SQUARE.size) + np.array([3, 3, 0, 0, 3])),
        "graded_eigh": (of_graded_spectrum("graded_eigh"), noise(SQUARE.size)),
        "graded_eig": (of_graded_spectrum("graded_eig"), noise(SQUARE.size) + np.array([4, 1, 0, 0, 7])),
    }  # fmt: skip
    if complex_numbers:
        return all
    return all | {
        # Of a complex matrix the phases of the columns that complete the basis are arbitrary.
        "qr complete": (lambda t, x: tuple(y[..., :2] for y in t.qr(x, "complete")), noise(3, 2)),
        **{f"einsum {name}": (product(name), noise(2, 3), noise(3, 2)) for name in ("max_plus", "min_plus", "max_min", "log_sum_exp")},
        **{f"einsum {name}": (product(name), abs(noise(2, 3)), abs(noise(3, 2))) for name in ("max_mul", "min_mul")},
        "softmax": (lambda t, x: t.softmax(x), noise(2, 3)),
        "log_softmax": (lambda t, x: t.log_softmax(x), noise(2, 3)),
        "cross_entropy": (lambda t, x: t.cross_entropy(x, t._targets), noise(2, 3)),
        "cummax": (lambda t, x: t.cummax(x), noise(3, 2)),
        "cummin": (lambda t, x: t.cummin(x, reverse=True), noise(3, 2)),
        "logcumsumexp": (lambda t, x: t.logcumsumexp(x), noise(3, 2)),
        "matrix_recurrence": (lambda t, a, b: t.matrix_recurrence(a, b), noise(3, 2, 2), noise(3, 2, 1)),
        "matrix_scan": (lambda t, x: t.matrix_scan(x), noise(3, 2, 2)),
        "matrix_scan log_sum_exp": (lambda t, x: t.matrix_scan(x, "log_sum_exp"), noise(3, 2, 2)),
        "lstm": (lambda t, z, w, b: t.lstm(z, w, b), noise(2, 1, 8), noise(2, 8), noise(8)),
        "gru": (lambda t, z, w: t.gru(z, w), noise(2, 1, 6), noise(2, 6)),
        "log_partition": (lambda t, x, w: t.log_partition(x, w, [3, 2]), noise(2, 3, 2), noise(2, 2)),
        "marginals": (lambda t, x, w: t.marginals(x, w, [3, 2]), noise(2, 3, 2), noise(2, 2)),
        "kalman_filter": (
            lambda t, f, h, y, m: t.kalman_filter(f, t._eye[2], h, t._eye[1], y, m, t._eye[2]),
            noise(2, 2) / 2, noise(1, 2), noise(1, 3, 1), noise(2),
        ),
    }  # fmt: skip


# Functions whose results have sizes that depend on values: not within `jit`, `vmap` and `torch.compile`.
EAGER = {"graded_svd_truncated"}
REAL, COMPLEX = cases(False), cases(True)
ALL = [(name, kind) for kind, all in (("real", REAL), ("complex", COMPLEX)) for name in all]
COMPILED = [(name, kind) for name, kind in ALL if name not in EAGER]


def case(name, kind):
    """A function of (t, *operands), and operands."""
    f, *operands = (REAL if kind == "real" else COMPLEX)[name]
    return f, operands


def flavour(functions, array):
    """The functions by name, with constant operands as these arrays."""
    eyes = {n: array(np.eye(n)) for n in (1, 2)}
    return SimpleNamespace(**functions, _targets=array(TARGETS), _eye=eyes)


def of_a_matrix(functions):
    """Names of the functions of linear algebra on one batch of matrices, without other operands."""
    found = _functions.submodule(functions, "linalg")
    empty = inspect.Parameter.empty
    required = lambda f: [p for p in inspect.signature(f).parameters.values() if p.default is empty]
    return sorted(name for name, f in found.items() if len(required(f)) == 1 and name != "tensorinv")


def of_module(module, array):
    return flavour({name: getattr(module, name) for name in all_names()}, array)


def called():
    """Functions that the calls use."""
    seen = set()

    def recorded(name):
        def f(*operands, **options):
            seen.add(name)
            return getattr(numpy_functions, name)(*operands, **options)

        return f

    t = flavour({name: recorded(name) for name in all_names()}, np.asarray)
    for name, kind in ALL:
        f, operands = case(name, kind)
        f(t, *operands)
    return seen


def all_names():
    return set(_functions.build(None, None, None, None))
