"""Linear algebra. Batch axes precede the two axes of a matrix, [..., m, n]; k = min(m, n). xH is the conjugate transpose.

Options of ties of singular values or eigenvalues, which concern derivatives only, are those of `svd`.
"""

from math import inf, prod

import numpy

from .. import _plans as plans
from .._checks import composed, integer, one_of
from .._library import ArgumentError, DtypeError, ShapeError, SingularError, UnsupportedError
from .._truncation import Truncation

FLOATS = {"float32", "float64", "complex64", "complex128"}


def functions(call, asarray, name_of, arrays, values, detach):
    """The functions of this module; the parameters are those of `build`."""

    transposed = lambda x: x.swapaxes(-1, -2)
    adjoint = lambda x: x.swapaxes(-1, -2).conj()
    product = lambda x, y: call(plans.einsum, (x, y), "...ij,...jk->...ik", "standard", None, None)

    def matrices(name, x):
        """The operand as an array, if it has at least two axes and a dtype of linear algebra."""
        x = asarray(x)
        if len(x.shape) < 2:
            raise ShapeError(f"{name}: matrices [..., m, n] are required, given the shape {tuple(x.shape)}")
        if name_of(x.dtype) not in FLOATS:
            raise DtypeError(f"{name}: floats of 32 or 64 bits, real or complex, are required, given {name_of(x.dtype)}")
        return x

    def square(name, x):
        x = matrices(name, x)
        if x.shape[-1] != x.shape[-2]:
            raise ShapeError(f"{name}: square matrices are required, given the shape {tuple(x.shape)}")
        return x

    def svd(x, full_matrices=False, *, check_gauge=True, tolerance=None, broadening=None, separable=False):
        """U [..., m, k], S [..., k], Vh [..., k, n]; with `full_matrices` U [..., m, m] and Vh [..., n, n].

        A derivative that depends on the arbitrary phases or basis of the vectors raises GaugeError. Second derivatives
        of complex matrices need `check_gauge=False`: the tape computes them in parts, which may depend on the phases
        although their sum does not.

        `tolerance`: gaps up to this fraction of the largest value are ties, and values up to it count as 0; by default those
        up to rounding. `separable`: quotients at ties are zero, right for losses of subspaces of tied vectors and of values,
        but not for products of both; otherwise losses of tied vectors raise GaugeError. `broadening`: quotients 1/x are
        x/(x^2 + w^2), w this fraction of the largest value. That switches off the error at ties for the same losses as
        `separable`, and derivatives are off by several percent: for comparisons only. At most one of the two is allowed.
        """
        ties = plans.ties(check_gauge, tolerance, broadening, separable)
        return call(plans.svd, (x,), bool(full_matrices), ties)

    def svdvals(x):
        """Singular values [..., k]."""
        return call(plans.matrices, (x,), "svdvals")

    @composed
    def svd_truncated(
        x, *, max_dim=None, min_dim=0, cutoff=0, relative_cutoff=0, discarded_weight=0, relative_discarded_weight=0,
        check_gauge=True, tolerance=None, broadening=None, separable=False,
    ):  # fmt: skip
        """The leading p singular triplets U [..., m, p], S [..., p], Vh [..., p, n], and the error |x - U S Vh| [...], the root of the
        sum of squares of the dropped values, without a derivative. p is the largest number over the matrices of a batch.

        Dropped are values up to `cutoff`, those up to `relative_cutoff` times the greatest, and the smallest as long as the sum of
        their squares is at most `discarded_weight`, or `relative_discarded_weight` times the sum of all squares; then at least
        `min_dim` and at most `max_dim` values are kept. 0 switches a cutoff off.

        Derivatives contain the coupling of kept and dropped vectors. The other options: as for `svd`. With cutoffs the shapes depend
        on values: UnsupportedError where these are unknown, as in `jax.jit`, `vmap` and `torch.compile`; `max_dim` works there."""
        truncation = Truncation.of(
            max_dim, min_dim, cutoff=cutoff, relative_cutoff=relative_cutoff, discarded_weight=discarded_weight,
            relative_discarded_weight=relative_discarded_weight,
        )  # fmt: skip
        options = {"check_gauge": check_gauge, "tolerance": tolerance, "broadening": broadening, "separable": separable}
        u, s, vh = svd(x, **options)
        rank = truncation.limit(s.shape[-1])
        if not truncation.by_number:
            known = values(s)
            if known is None:
                raise UnsupportedError(
                    "svd_truncated: with cutoffs the shapes of the results depend on singular values, which are unknown while a function"
                    " is compiled or mapped over a batch axis; give `max_dim` only"
                )
            rank = max((truncation.rank(row) for row in known.reshape((-1, known.shape[-1]))), default=rank)
        all = detach(s)
        # Squares of quotients do not overflow.
        largest = all[..., :1].sum(-1)
        unit = arrays.where(largest > 0, largest, 1)
        error = unit * arrays.sqrt(((all[..., rank:] / unit[..., None]) ** 2).sum(-1))
        return u[..., :rank], s[..., :rank], vh[..., :rank, :], error

    def svd_function(x, function):
        """U f(S) Vh [..., m, n], whose derivative is defined at ties. `function`: "exp", "log", or a number p for s^p.

        If a singular value is 0 and f(0) is not, as of "exp" and the power 0, the result depends on the arbitrary U and V. The
        derivative of "exp" and of the powers 0 and 0.5 raises SingularError there."""
        return call(plans.function, (x,), "svd_function", plans.elementary(function))

    def qr(x, mode="reduced"):
        """Q [..., m, k], R [..., k, n]; with `mode="complete"` Q [..., m, m], R [..., m, n]. The diagonal of R is
        nonnegative. Losses that depend on the basis of the columns beyond k have no derivative and raise GaugeError."""
        return call(plans.qr, (x,), "qr", mode)

    def qr_pivoted(x, mode="reduced"):
        """Q and R as of `qr`, and the permutation p [..., n] of columns, with x[:, p] = Q R for each matrix of a batch."""
        return call(plans.qr, (x,), "qr_pivoted", mode)

    def lq(x):
        """L [..., m, k] and Q [..., k, n] with x = L Q; the diagonal of L is nonnegative."""
        return call(plans.matrices, (x,), "lq")

    @composed
    def ql(x):
        """Q [..., m, k] and L [..., k, n] with x = Q L; L is lower trapezoidal, aligned to the last column."""
        q, r = qr(arrays.flip(matrices("ql", x), (-1,)))
        return arrays.flip(q, (-1,)), arrays.flip(r, (-2, -1))

    @composed
    def rq(x):
        """R [..., m, k] and Q [..., k, n] with x = R Q; R is upper trapezoidal, aligned to the last row."""
        l, q = lq(arrays.flip(matrices("rq", x), (-2,)))
        return arrays.flip(l, (-2, -1)), arrays.flip(q, (-2,))

    def lu_factor(x, pivoting="partial"):
        """Packed factors [..., m, n] and the permutation p [..., m] of rows, with x[p] = L U for each matrix of a batch: U on and
        above the diagonal, L with a unit diagonal below. With `pivoting="full"` also that of columns q [..., n], x[p][:, q] = L U.
        p is a permutation, not the pivots of `scipy.linalg.lu_factor` or `torch.linalg.lu_factor`."""
        return call(plans.lu_factor, (x,), pivoting)

    @composed
    def lu(x):
        """P [..., m, m], L [..., m, k] and U [..., k, n] with x = P L U: a permutation, a unit lower and an upper trapezoid."""
        packed, rows = lu_factor(x)
        m, n = packed.shape[-2:]
        unit = lambda *shape: arrays.eye(*shape, dtype=packed.dtype)
        l = arrays.tril(packed[..., :, : min(m, n)], -1) + unit(m, min(m, n))
        return transposed(unit(m, m)[rows]), l, arrays.triu(packed[..., : min(m, n), :])

    @composed
    def lu_solve(packed, rows, b, adjoint=False):
        """The solution of a x = b, or of aH x = b, from the results of `lu_factor(a)`: `packed` [..., n, n], `rows` [..., n],
        `b` [..., n, k], or [n] for a single matrix. `rows` is a permutation, not the pivots of `scipy.linalg.lu_factor` or
        `torch.linalg.lu_factor`; others raise ArgumentError, except within `jit`, `vmap` and `torch.compile`, where values are unknown."""
        packed, rows, b = square("lu_solve", packed), asarray(rows), asarray(b)
        shapes = ", ".join(str(tuple(x.shape)) for x in (packed, rows, b))
        columns = b[:, None] if len(b.shape) == 1 else b
        if len(columns.shape) < 2 or not packed.shape[:-1] == rows.shape == columns.shape[:-1]:
            raise ShapeError(f"lu_solve: the shapes {shapes}; [..., n, n], [..., n] and [..., n, k] are required")
        if "int" not in name_of(rows.dtype):
            raise DtypeError(f"lu_solve: a permutation of integers is required, given {name_of(rows.dtype)}")
        known = values(rows)
        if known is not None and (numpy.sort(known, -1) != numpy.arange(rows.shape[-1])).any():
            raise ArgumentError("lu_solve: `rows` is no permutation; pivots of LAPACK are successive exchanges of rows")
        x = substituted(packed, rows, columns, adjoint)
        return x[:, 0] if len(b.shape) == 1 else x

    def substituted(packed, rows, b, adjoint=False):
        """`lu_solve` of checked operands."""
        take = getattr(arrays, "take_along_dim", None) or arrays.take_along_axis
        if adjoint:
            y = solve_triangular(packed, b, upper=True, trans="C")
            z = solve_triangular(packed, y, unitriangular=True, trans="C")
            return take(z, arrays.argsort(rows)[..., None], -2)
        y = solve_triangular(packed, take(b, rows[..., None], -2), unitriangular=True)
        return solve_triangular(packed, y, upper=True)

    def cholesky(x, upper=False):
        """The lower factor L [..., n, n] of (x + xH)/2 = L LH, or the upper one U with (x + xH)/2 = UH U."""
        factor = call(plans.matrices, (x,), "cholesky")
        return adjoint(factor) if upper else factor

    def eigh(x, *, check_gauge=True, tolerance=None, broadening=None, separable=False):
        """Eigenvalues [..., n] and vectors [..., n, n] of (x + xH)/2. Options: as for `svd`."""
        return call(plans.spectrum, (x,), "eigh", plans.ties(check_gauge, tolerance, broadening, separable))

    def eigvalsh(x):
        """Eigenvalues [..., n] of (x + xH)/2."""
        return call(plans.matrices, (x,), "eigvalsh")

    def eig(x, *, check_gauge=True, tolerance=None, separable=False):
        """Eigenvalues [..., n] and vectors [..., n, n] of x, complex. Options: as for `svd`."""
        return call(plans.spectrum, (x,), "eig", plans.ties(check_gauge, tolerance, None, separable))

    def eigvals(x):
        """Eigenvalues [..., n] of x, complex."""
        return call(plans.matrices, (x,), "eigvals")

    def hermitian_function(x, function):
        """f((x + xH)/2) [..., n, n], whose derivative is defined at ties. `function`: "exp", "log", or a number p for the
        power p."""
        return call(plans.function, (x,), "hermitian_function", plans.elementary(function))

    def inv(x):
        """The inverse of x [..., n, n]."""
        return call(plans.matrices, (x,), "inv")

    def det(x):
        """The determinant [...]."""
        return call(plans.matrices, (x,), "det")

    def slogdet(x):
        """Sign and logarithm of the absolute value of the determinant, [...] each."""
        return call(plans.matrices, (x,), "slogdet")

    @composed
    def matrix_power(x, n):
        """x^n of matrices [..., n, n]; for negative n powers of the inverse."""
        n, x = integer("n", n), square("matrix_power", x)
        if n == 0:
            return arrays.eye(x.shape[-1], dtype=x.dtype) + arrays.zeros_like(x)
        base, power, n = inv(x) if n < 0 else x, None, abs(n)
        while True:
            if n % 2:
                power = base if power is None else product(power, base)
            n //= 2
            if n == 0:
                return power
            base = product(base, base)

    @composed
    def householder_product(v, tau):
        """The first n columns of H_1 H_2 ... H_k, H_i = I - tau_i v_i v_iH: v_i is zero above element i, 1 there, and below it
        column i of `v` [..., m, n], whose other elements are not read. `tau` [..., k], k <= n <= m; the result is [..., m, n]."""
        v, tau = matrices("householder_product", v), asarray(tau)
        m, n, k = *v.shape[-2:], tau.shape[-1] if len(tau.shape) > 0 else -1
        if not 0 <= k <= n <= m or v.shape[:-2] != tau.shape[:-1]:
            raise ShapeError(f"householder_product: the shapes {tuple(v.shape)} and {tuple(tau.shape)}; [..., m, n] and [..., k] are required, k <= n <= m")
        if name_of(tau.dtype) not in FLOATS:
            raise DtypeError(f"householder_product: a tau of floats is required, given {name_of(tau.dtype)}")
        unit = lambda *shape: arrays.eye(*shape, dtype=v.dtype)
        v = arrays.tril(v[..., :k], -1) + unit(m, k)
        # H_1 ... H_k = I - V T VH with upper triangular T = (I + D U)^-1 D, D = diag(tau), U the part of VH V above its diagonal.
        above = unit(k, k) + tau[..., :, None] * arrays.triu(product(adjoint(v), v), 1)
        t = solve_triangular(above, tau[..., :, None] * unit(k, k), upper=True, unitriangular=True)
        return unit(m, n) - product(v, product(t, adjoint(v[..., :n, :])))

    def root(square):
        """The square root, with the derivative 0 at 0."""
        zero = square == 0
        return arrays.where(zero, 0, arrays.sqrt(arrays.where(zero, 1, square)))

    def known_order(name, ord):
        """The order of a norm, the argument `name`: "fro", "nuc", or a number."""
        numbers = (1, -1, 2, -2, inf, -inf)
        if isinstance(ord, str):
            known = ord in ("fro", "nuc")
        else:
            known = isinstance(ord, (int, float, numpy.number)) and not isinstance(ord, bool) and ord in numbers
        if not known:
            raise ArgumentError(f"{name}={ord!r}: one of 'fro', 'nuc', 1, -1, 2, -2, inf, -inf is required")
        return ord

    def not_empty(name, x):
        if 0 in x.shape[-2:]:
            raise ShapeError(f"{name}: matrices with elements are required, given the shape {tuple(x.shape)}")
        return x

    @composed
    def matrix_norm(x, ord="fro"):
        """Norm [...], real. `ord`: "fro" for the root of the sum of squares, "nuc" for the sum of singular values, 2 or -2 for the
        greatest or least one, 1 or -1 for the greatest or least sum of absolute values of a column, inf or -inf of a row. Orders
        other than "fro" and "nuc" require matrices with elements."""
        ord, x = known_order("ord", ord), matrices("matrix_norm", x)
        if ord == "fro":
            return root((x * x.conj()).real.sum((-2, -1)))
        if ord == "nuc":
            return svdvals(x).sum(-1)
        not_empty("matrix_norm", x)
        if ord in (2, -2):
            return svdvals(x)[..., 0 if ord == 2 else -1]
        sums = abs(x).sum(-2 if ord in (1, -1) else -1)
        name = "max" if ord > 0 else "min"
        # Of PyTorch `amax` has the mean of derivatives at ties, as `max` of the others.
        return (getattr(arrays, f"a{name}", None) or getattr(arrays, name))(sums, -1)

    @composed
    def cond(x, p=2):
        """Condition number [...], the norm `p` of `matrix_norm` of x times that of the inverse. For 2 and -2, of any matrices
        [..., m, n], the quotient of the greatest and the least singular value or its inverse; else singular matrices raise
        SingularError."""
        if known_order("p", p) not in (2, -2):
            x = not_empty("cond", square("cond", x))
            return matrix_norm(x, p) * matrix_norm(inv(x), p)
        s = svdvals(not_empty("cond", matrices("cond", x)))
        first, last = (s[..., 0], s[..., -1]) if p == 2 else (s[..., -1], s[..., 0])
        regular = last > 0
        return arrays.where(regular, first / arrays.where(regular, last, 1), inf)

    @composed
    def tensorsolve(a, b):
        """The solution x of tensordot(a, x, x.ndim) = b: the first axes of `a` are those of `b`, the others those of x, with
        the same number of elements."""
        a, b = asarray(a), asarray(b)
        rank, n = len(b.shape), prod(b.shape)
        if a.shape[:rank] != b.shape or prod(a.shape[rank:]) != n:
            raise ShapeError(f"tensorsolve: the shapes {tuple(a.shape)} and {tuple(b.shape)}")
        return solve(a.reshape((n, n)), b.reshape((n,))).reshape(a.shape[rank:])

    @composed
    def tensorinv(x, ind=2):
        """The inverse of x as a map from its other axes to the first `ind` axes, of shape x.shape[ind:] + x.shape[:ind]."""
        x, ind = asarray(x), integer("ind", ind)
        above, below = x.shape[:ind], x.shape[ind:]
        if not 0 < ind < len(x.shape) or prod(above) != prod(below):
            raise ShapeError(f"tensorinv: the shape {tuple(x.shape)} with ind={ind}")
        return inv(x.reshape((prod(above), prod(above)))).reshape((*below, *above))

    def solve(a, b, left=True):
        """The solution x of a x = b: `a` [..., n, n], `b` [..., n, k], or [n] if `a` is a single matrix; x has the shape of b.
        Without `left` that of x a = b, `b` [..., k, n] or [n]."""
        return call(plans.system, (a, b), "solve") if left else turned("solve", solve, a, b)

    def solve_triangular(a, b, upper=False, left=True, unitriangular=False, trans="N"):
        """As `solve`, with the lower or upper triangle of `a`; the other elements are not read. `unitriangular`: the diagonal
        is 1 and not read either. `trans`: "N" for a, "T" for its transpose, "C" for aH."""
        one_of("trans", trans, dict.fromkeys("NTC"))
        if not left:
            # x op(a) = b is op(a)T xT = bT.
            solution = lambda a, b, trans: solve_triangular(a, b, upper, True, unitriangular, trans)
            if trans == "C":
                return turned("solve_triangular", lambda a, b: solution(a.conj(), b, "N"), a, b, False)
            other = {"N": "T", "T": "N"}[trans]
            return turned("solve_triangular", lambda a, b: solution(a, b, other), a, b, False)
        return call(plans.triangular, (a, b), bool(upper), bool(unitriangular), trans)

    def turned(name, solution, a, b, transpose=True):
        a, b = matrices(name, a), asarray(b)
        if len(b.shape) == 0:
            raise ShapeError(f"{name}: a right-hand side [..., k, n] or [n] is required, given the shape ()")
        a = transposed(a) if transpose else a
        return solution(a, b) if len(b.shape) == 1 else transposed(solution(a, transposed(b)))

    def lstsq(a, b):
        """x [..., n, k] with minimal |a x - b|: `a` [..., m, n] of full rank, `b` [..., m, k], or [m] if `a` is a single matrix."""
        return call(plans.system, (a, b), "lstsq")

    def lstsq_min_norm(a, b, rtol=None):
        """As `lstsq` for `a` of any rank: the solution of minimal norm, pinv(a, rtol) b."""
        return call(plans.minimal_norm, (a, b), rtol)

    def sylvester(a, b, c):
        """The solution x [..., m, n] of a x + x b = c: `a` [..., m, m], `b` [..., n, n]."""
        return call(plans.matrices, (a, b, c), "sylvester")

    @composed
    def lyapunov(a, c):
        """The solution x of a x + x aH = c, [..., n, n] each."""
        a = square("lyapunov", a)
        return sylvester(a, adjoint(a), c)

    @composed
    def lyapunov_discrete(a, c):
        """The solution x of x - a x aH = c, [..., n, n] each; requires λ_i ≠ -1 and λ_i conj(λ_j) ≠ 1 for all
        eigenvalues of a, i = j included, else SingularError is raised. By the bilinear transform: a Lyapunov equation of
        (a + I)^-1 (a - I)."""
        a, c = square("lyapunov_discrete", a), asarray(c)
        if a.shape != c.shape:
            raise ShapeError(f"lyapunov_discrete: the shapes {tuple(a.shape)} and {tuple(c.shape)}; equal ones are required")
        unit = arrays.eye(a.shape[-1], dtype=a.dtype)
        try:
            packed, rows = lu_factor(a + unit)
            solution = lambda b: substituted(packed, rows, b)
            return lyapunov(solution(a - unit), -2 * adjoint(solution(adjoint(solution(c)))))
        except SingularError as error:
            required = "eigenvalues λ_i ≠ -1 of a, and λ_i conj(λ_j) ≠ 1 for all pairs, i = j included, are required"
            raise SingularError(f"lyapunov_discrete: {required}; {error.args[0].partition(': ')[2]}", error.batch) from error

    def lyapunov_positive(a, c):
        """The solution x of h x + x h = c, [..., n, n] each: h = (a + aH)/2 must be positive definite."""
        return call(plans.matrices, (a, c), "lyapunov_positive")

    def pinv(x, rtol=None):
        """The pseudoinverse [..., n, m] of x [..., m, n]; singular values up to `rtol` times the greatest are zero."""
        return call(plans.matrices_with_cutoff, (x,), "pinv", rtol)

    def low_rank(x, rank):
        """The matrix of this rank that is closest to x [..., m, n]. Its derivative needs no gaps of singular values up to `rank`."""
        return call(plans.low_rank, (x,), integer("rank", rank, 0))

    def expm(x):
        """The exponential of matrices [..., n, n]."""
        return call(plans.matrices, (x,), "expm")

    def sqrtm(x):
        """The principal square root of matrices [..., n, n]."""
        return call(plans.matrices, (x,), "sqrtm")

    def logm(x):
        """The principal logarithm of matrices [..., n, n]."""
        return call(plans.matrices, (x,), "logm")

    def polar(x, side="right"):
        """U [..., m, n] and P [..., n, n] with x = U P, or P [..., m, m] and x = P U for side "left"."""
        return call(plans.polar, (x,), side)

    return (
        svd, svdvals, svd_truncated, svd_function, qr, qr_pivoted, lq, ql, rq, lu_factor, lu, lu_solve, cholesky, eigh, eigvalsh, eig, eigvals,
        hermitian_function, inv, det, slogdet, matrix_power, householder_product, matrix_norm, cond, tensorsolve, tensorinv, solve,
        solve_triangular, lstsq, lstsq_min_norm, sylvester, lyapunov, lyapunov_discrete, lyapunov_positive, pinv, low_rank, expm,
        sqrtm, logm, polar,
    )  # fmt: skip
