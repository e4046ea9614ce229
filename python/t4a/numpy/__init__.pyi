# Written by tests/stubs.py. Not edited by hand.
from collections.abc import Sequence
from typing import Any, Literal

import numpy

from . import crf as crf, linalg as linalg, scan as scan

from t4a import Op
from t4a.structured import Spec

Array = numpy.ndarray[Any, numpy.dtype[Any]]
Like = Any

def apply(op: Op, *arrays: Like) -> list[Array]: ...
def vjp(op: Op, arrays: Sequence[Like], cotangents: Sequence[Like | None]) -> list[Array | None]: ...
def jvp(op: Op, arrays: Sequence[Like], tangents: Sequence[Like | None]) -> tuple[list[Array], list[Array]]: ...

def einsum(subscripts: str | Sequence[Sequence[int]], *operands: Like, semiring: Literal["standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp"] = "standard", memory: int | None = None, optimize: bool | Literal["auto", "greedy", "optimal", "annealing"] | Sequence[Any] = True) -> Array:
    """Contraction with subscripts in the syntax of `numpy.einsum`, or with integer labels, those of the result last:
    `einsum([[1, 2], [2, 3], [1, 3]], a, b)`.

    `semiring`: "standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp". `memory`: limit in
    bytes of intermediate tensors, a positive integer, None for none; contractions that need more are sliced.

    `optimize`: the search for a contraction order. True, "auto" or "greedy": greedy searches, improved in subtrees, no longer
    than one contraction takes. "optimal": the least number of multiplications, for up to 12 operands. "annealing":
    seconds of search. False: from left to right. Or a path in the format of `opt_einsum.contract_path` and
    `numpy.einsum_path`, `[(1, 2), (0, 1)]`: a step removes the operands at these positions and appends their product."""

def argmax_einsum(subscripts: str | Sequence[Sequence[int]], *operands: Like, semiring: Literal["standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp"] = "max_plus", memory: int | None = None, optimize: bool | Literal["auto", "greedy", "optimal", "annealing"] | Sequence[Any] = True) -> tuple[Array, dict[str | int, Array]]:
    """Contraction over a selective semiring ("max_plus", "min_plus", "max_mul", "min_mul", "max_min") with its argmax: a
    dictionary from each summed label (as in `subscripts`) to its index, `int64` of the shape of the result. Of several
    optima it is the first one, with the last label varying fastest; -1 where the result is the zero of the semiring. No
    derivative. `memory` and `optimize`: as for `einsum`."""

def counting_einsum(subscripts: str | Sequence[Sequence[int]], *operands: Like, semiring: Literal["standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp"] = "max_plus", memory: int | None = None, optimize: bool | Literal["auto", "greedy", "optimal", "annealing"] | Sequence[Any] = True) -> tuple[Array, Array]:
    """Contraction over "max_plus", "min_plus", "max_mul" or "min_mul", and the number of assignments of summed labels that attain
    it, `int64` of the shape of the result. No derivative. `memory` and `optimize`: as for `einsum`."""

def k_best_einsum(subscripts: str | Sequence[Sequence[int]], *operands: Like, k: int, semiring: Literal["standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp"] = "max_plus", memory: int | None = None, optimize: bool | Literal["auto", "greedy", "optimal", "annealing"] | Sequence[Any] = True) -> Array:
    """The `k` best values of every sum over a selective semiring, 1 to 16, on a new last axis in descending order of
    preference. A value that is attained several times occurs several times; missing ones are the zero of the semiring. No
    derivative. `memory` and `optimize`: as for `einsum`."""

def softmax(x: Like, axis: int = -1) -> Array:
    """exp(x) / sum exp(x) along an axis."""

def log_softmax(x: Like, axis: int = -1) -> Array:
    """x - ln sum exp(x) along an axis."""

def cross_entropy(logits: Like, targets: Like) -> Array:
    """-log_softmax(logits)[target] of each row; `logits` [n, classes], `targets` [n]."""

def svd(x: Like, full_matrices: bool = False, *, check_gauge: bool = True, tolerance: float | None = None, broadening: float | None = None, separable: bool = False) -> tuple[Array, Array, Array]:
    """U [..., m, k], S [..., k], Vh [..., k, n]; with `full_matrices` U [..., m, m] and Vh [..., n, n].

    A derivative that depends on the arbitrary phases or basis of the vectors raises GaugeError. Second derivatives
    of complex matrices need `check_gauge=False`: the tape computes them in parts, which may depend on the phases
    although their sum does not.

    `tolerance`: gaps up to this fraction of the largest value are ties, and values up to it count as 0; by default those
    up to rounding. `separable`: quotients at ties are zero, right for losses of subspaces of tied vectors and of values,
    but not for products of both; otherwise losses of tied vectors raise GaugeError. `broadening`: quotients 1/x are
    x/(x^2 + w^2), w this fraction of the largest value. That switches off the error at ties for the same losses as
    `separable`, and derivatives are off by several percent: for comparisons only. At most one of the two is allowed."""

def svdvals(x: Like) -> Array:
    """Singular values [..., k]."""

def svd_truncated(x: Like, *, max_dim: int | None = None, min_dim: int = 0, cutoff: float = 0, relative_cutoff: float = 0, discarded_weight: float = 0, relative_discarded_weight: float = 0, check_gauge: bool = True, tolerance: float | None = None, broadening: float | None = None, separable: bool = False) -> tuple[Array, Array, Array, Array]:
    """The leading p singular triplets U [..., m, p], S [..., p], Vh [..., p, n], and the error |x - U S Vh| [...], the root of the
    sum of squares of the dropped values, without a derivative. p is the largest number over the matrices of a batch.

    Dropped are values up to `cutoff`, those up to `relative_cutoff` times the greatest, and the smallest as long as the sum of
    their squares is at most `discarded_weight`, or `relative_discarded_weight` times the sum of all squares; then at least
    `min_dim` and at most `max_dim` values are kept. 0 switches a cutoff off.

    Derivatives contain the coupling of kept and dropped vectors. The other options: as for `svd`. With cutoffs the shapes depend
    on values: UnsupportedError where these are unknown, as in `jax.jit`, `vmap` and `torch.compile`; `max_dim` works there."""

def svd_function(x: Like, function: Literal["exp", "log"] | float) -> Array:
    """U f(S) Vh [..., m, n], whose derivative is defined at ties. `function`: "exp", "log", or a number p for s^p.

    If a singular value is 0 and f(0) is not, as of "exp" and the power 0, the result depends on the arbitrary U and V. The
    derivative of "exp" and of the powers 0 and 0.5 raises SingularError there."""

def qr(x: Like, mode: Literal["reduced", "complete"] = "reduced") -> tuple[Array, Array]:
    """Q [..., m, k], R [..., k, n]; with `mode="complete"` Q [..., m, m], R [..., m, n]. The diagonal of R is
    nonnegative. Losses that depend on the basis of the columns beyond k have no derivative and raise GaugeError."""

def qr_pivoted(x: Like, mode: Literal["reduced", "complete"] = "reduced") -> tuple[Array, Array, Array]:
    """Q and R as of `qr`, and the permutation p [..., n] of columns, with x[:, p] = Q R for each matrix of a batch."""

def lq(x: Like) -> tuple[Array, Array]:
    """L [..., m, k] and Q [..., k, n] with x = L Q; the diagonal of L is nonnegative."""

def ql(x: Like) -> tuple[Array, Array]:
    """Q [..., m, k] and L [..., k, n] with x = Q L; L is lower trapezoidal, aligned to the last column."""

def rq(x: Like) -> tuple[Array, Array]:
    """R [..., m, k] and Q [..., k, n] with x = R Q; R is upper trapezoidal, aligned to the last row."""

def lu_factor(x: Like, pivoting: Literal["partial", "full"] = "partial") -> tuple[Array, ...]:
    """Packed factors [..., m, n] and the permutation p [..., m] of rows, with x[p] = L U for each matrix of a batch: U on and
    above the diagonal, L with a unit diagonal below. With `pivoting="full"` also that of columns q [..., n], x[p][:, q] = L U.
    p is a permutation, not the pivots of `scipy.linalg.lu_factor` or `torch.linalg.lu_factor`."""

def lu(x: Like) -> tuple[Array, Array, Array]:
    """P [..., m, m], L [..., m, k] and U [..., k, n] with x = P L U: a permutation, a unit lower and an upper trapezoid."""

def lu_solve(packed: Like, rows: Like, b: Like, adjoint: bool = False) -> Array:
    """The solution of a x = b, or of aH x = b, from the results of `lu_factor(a)`: `packed` [..., n, n], `rows` [..., n],
    `b` [..., n, k], or [n] for a single matrix. `rows` is a permutation, not the pivots of `scipy.linalg.lu_factor` or
    `torch.linalg.lu_factor`; others raise ArgumentError, except within `jit`, `vmap` and `torch.compile`, where values are unknown."""

def cholesky(x: Like, upper: bool = False) -> Array:
    """The lower factor L [..., n, n] of (x + xH)/2 = L LH, or the upper one U with (x + xH)/2 = UH U."""

def eigh(x: Like, *, check_gauge: bool = True, tolerance: float | None = None, broadening: float | None = None, separable: bool = False) -> tuple[Array, Array]:
    """Eigenvalues [..., n] and vectors [..., n, n] of (x + xH)/2. Options: as for `svd`."""

def eigvalsh(x: Like) -> Array:
    """Eigenvalues [..., n] of (x + xH)/2."""

def eig(x: Like, *, check_gauge: bool = True, tolerance: float | None = None, separable: bool = False) -> tuple[Array, Array]:
    """Eigenvalues [..., n] and vectors [..., n, n] of x, complex. Options: as for `svd`."""

def eigvals(x: Like) -> Array:
    """Eigenvalues [..., n] of x, complex."""

def hermitian_function(x: Like, function: Literal["exp", "log"] | float) -> Array:
    """f((x + xH)/2) [..., n, n], whose derivative is defined at ties. `function`: "exp", "log", or a number p for the
    power p."""

def inv(x: Like) -> Array:
    """The inverse of x [..., n, n]."""

def det(x: Like) -> Array:
    """The determinant [...]."""

def slogdet(x: Like) -> tuple[Array, Array]:
    """Sign and logarithm of the absolute value of the determinant, [...] each."""

def matrix_power(x: Like, n: int) -> Array:
    """x^n of matrices [..., n, n]; for negative n powers of the inverse."""

def householder_product(v: Like, tau: Like) -> Array:
    """The first n columns of H_1 H_2 ... H_k, H_i = I - tau_i v_i v_iH: v_i is zero above element i, 1 there, and below it
    column i of `v` [..., m, n], whose other elements are not read. `tau` [..., k], k <= n <= m; the result is [..., m, n]."""

def matrix_norm(x: Like, ord: Literal["fro", "nuc"] | float = "fro") -> Array:
    """Norm [...], real. `ord`: "fro" for the root of the sum of squares, "nuc" for the sum of singular values, 2 or -2 for the
    greatest or least one, 1 or -1 for the greatest or least sum of absolute values of a column, inf or -inf of a row. Orders
    other than "fro" and "nuc" require matrices with elements."""

def cond(x: Like, p: Literal["fro", "nuc"] | float = 2) -> Array:
    """Condition number [...], the norm `p` of `matrix_norm` of x times that of the inverse. For 2 and -2, of any matrices
    [..., m, n], the quotient of the greatest and the least singular value or its inverse; else singular matrices raise
    SingularError."""

def tensorsolve(a: Like, b: Like) -> Array:
    """The solution x of tensordot(a, x, x.ndim) = b: the first axes of `a` are those of `b`, the others those of x, with
    the same number of elements."""

def tensorinv(x: Like, ind: int = 2) -> Array:
    """The inverse of x as a map from its other axes to the first `ind` axes, of shape x.shape[ind:] + x.shape[:ind]."""

def solve(a: Like, b: Like, left: bool = True) -> Array:
    """The solution x of a x = b: `a` [..., n, n], `b` [..., n, k], or [n] if `a` is a single matrix; x has the shape of b.
    Without `left` that of x a = b, `b` [..., k, n] or [n]."""

def solve_triangular(a: Like, b: Like, upper: bool = False, left: bool = True, unitriangular: bool = False, trans: Literal["N", "T", "C"] = "N") -> Array:
    """As `solve`, with the lower or upper triangle of `a`; the other elements are not read. `unitriangular`: the diagonal
    is 1 and not read either. `trans`: "N" for a, "T" for its transpose, "C" for aH."""

def lstsq(a: Like, b: Like) -> Array:
    """x [..., n, k] with minimal |a x - b|: `a` [..., m, n] of full rank, `b` [..., m, k], or [m] if `a` is a single matrix."""

def lstsq_min_norm(a: Like, b: Like, rtol: float | None = None) -> Array:
    """As `lstsq` for `a` of any rank: the solution of minimal norm, pinv(a, rtol) b."""

def sylvester(a: Like, b: Like, c: Like) -> Array:
    """The solution x [..., m, n] of a x + x b = c: `a` [..., m, m], `b` [..., n, n]."""

def lyapunov(a: Like, c: Like) -> Array:
    """The solution x of a x + x aH = c, [..., n, n] each."""

def lyapunov_discrete(a: Like, c: Like) -> Array:
    """The solution x of x - a x aH = c, [..., n, n] each; requires λ_i ≠ -1 and λ_i conj(λ_j) ≠ 1 for all
    eigenvalues of a, i = j included, else SingularError is raised. By the bilinear transform: a Lyapunov equation of
    (a + I)^-1 (a - I)."""

def lyapunov_positive(a: Like, c: Like) -> Array:
    """The solution x of h x + x h = c, [..., n, n] each: h = (a + aH)/2 must be positive definite."""

def pinv(x: Like, rtol: float | None = None) -> Array:
    """The pseudoinverse [..., n, m] of x [..., m, n]; singular values up to `rtol` times the greatest are zero."""

def low_rank(x: Like, rank: int) -> Array:
    """The matrix of this rank that is closest to x [..., m, n]. Its derivative needs no gaps of singular values up to `rank`."""

def expm(x: Like) -> Array:
    """The exponential of matrices [..., n, n]."""

def sqrtm(x: Like) -> Array:
    """The principal square root of matrices [..., n, n]."""

def logm(x: Like) -> Array:
    """The principal logarithm of matrices [..., n, n]."""

def polar(x: Like, side: Literal["right", "left"] = "right") -> tuple[Array, Array]:
    """U [..., m, n] and P [..., n, n] with x = U P, or P [..., m, m] and x = P U for side "left"."""

def cumsum(x: Like, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative sums along an axis; the result has the shape of x."""

def cumprod(x: Like, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative products along an axis."""

def cummax(x: Like, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative maxima along an axis."""

def cummin(x: Like, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative minima along an axis."""

def logcumsumexp(x: Like, axis: int = 0, reverse: bool = False) -> Array:
    """ln of cumulative sums of exp(x) along an axis."""

def linear_recurrence(a: Like, b: Like, axis: int = 0, reverse: bool = False) -> Array:
    """h[t] = a[t] h[t - 1] + b[t] along an axis, with h[-1] = 0; a, b and h have the same shape."""

def matrix_recurrence(a: Like, b: Like, reverse: bool = False) -> Array:
    """H[t] = A[t] H[t - 1] + B[t] with H[-1] = 0: `a` [..., n, d, d], `b` [..., n, d, k]; H has the shape of `b`."""

def matrix_scan(x: Like, semiring: Literal["standard", "max_plus", "min_plus", "max_mul", "min_mul", "max_min", "log_sum_exp"] = "standard", axis: int = 0, reverse: bool = False, exclusive: bool = False) -> Array:
    """Cumulative products x[0] x[1] ... x[t] of square matrices [..., d, d] along another axis, over a semiring as in
    `einsum`. `exclusive`: without x[t]. `reverse`: x[n - 1] x[n - 2] ... x[t]."""

def lstm(z: Like, weight: Like, bias: Like | None = None, reverse: bool = False) -> tuple[Array, Array]:
    """States h and memories c [n, batch, width] of an LSTM with zero initial states. `z` [n, batch, 4 width]: products of the
    inputs with their weights; `weight` [width, 4 width] and `bias` [4 width]: recurrent weights; gates in the order i, f, g, o."""

def gru(z: Like, weight: Like, bias: Like | None = None, reverse: bool = False) -> Array:
    """States h [n, batch, width] of a GRU with zero initial states. `z` [n, batch, 3 width]: products of the inputs with
    their weights; `weight` [width, 3 width] and `bias` [3 width]: recurrent weights; gates in the order r, z, n."""

def kalman_filter(transition: Like, process: Like, observation: Like, noise: Like, y: Like, mean: Like, covariance: Like) -> tuple[Array, Array, Array]:
    """Means [batch, n, d], covariances [n, d, d] and log-likelihoods [batch, n] of the Kalman filter.

    x_t = transition x_(t-1) + noise of covariance `process`, y_t = observation x_t + noise of covariance `noise`;
    `y` [batch, n, m], `mean` [d] and `covariance` [d, d] of the state before the first step. Covariances are symmetric."""

def log_partition(emissions: Like, transitions: Like, lengths: Sequence[int] | Any | None = None) -> Array:
    """ln Z of a linear chain of tags: ln sum over y of exp(sum_t emissions[b, t, y[t]] + sum_t transitions[y[t-1], y[t]]).

    `emissions` [batch, length, tags], `transitions` [tags, tags]; `lengths`: a number from 1 to length for each
    sequence. The derivatives with respect to the emissions are the marginal probabilities of the tags."""

def marginals(emissions: Like, transitions: Like, lengths: Sequence[int] | Any | None = None) -> Array:
    """Probabilities of the tags, [batch, length, tags], with the operands of `log_partition`; zero after the end of a
    sequence."""

def graded_contract(x: Like, y: Like, specs: tuple[Spec, Spec], axes: tuple[Sequence[int], Sequence[int]]) -> tuple[Array, Spec]:
    """Contraction of legs `axes[0]` of x with legs `axes[1]` of y, for two symmetric tensors as flat arrays with their
    `t4a.structured.Spec`s. Negative axes count from the last leg. Returns a flat array and its spec; row legs are the
    remaining legs of x, column legs those of y."""

def graded_svd(x: Like, spec: Spec, *, check_gauge: bool = True, tolerance: float | None = None, broadening: float | None = None, separable: bool = False) -> tuple[Array, Array, Array, Spec, Spec]:
    """U, S and Vh of a symmetric tensor as a map from column legs to row legs, and the specs of U and Vh, which share a
    new leg, the last of U and the first of Vh; S [k] in the order of that leg. Options: as for `svd`."""

def graded_svd_truncated(x: Like, spec: Spec, *, max_dim: int | None = None, min_dim: int = 0, cutoff: float = 0, relative_cutoff: float = 0, discarded_weight: float = 0, relative_discarded_weight: float = 0, degeneracy: float = 0, min_per_sector: int = 0, check_gauge: bool = True, tolerance: float | None = None, broadening: float | None = None, separable: bool = False) -> tuple[Array, Array, Array, float, Spec, Spec]:
    """U, S and Vh as of `graded_svd` for the leading singular values of all charges together, the error (the root of the sum of
    squares of the dropped values, a number without a derivative), and the specs of U and Vh. A charge without kept values is
    not in the new leg.

    Cutoffs and limits are those of `svd_truncated`; of equal values those of the smaller charge are kept, and at least one in all.
    Then values whose relative gap is at most `degeneracy` are kept or dropped together, unless nothing would remain. At last
    each charge keeps at least `min_per_sector` values, also beyond `max_dim`. The other options: as for `svd`. UnsupportedError
    where values are unknown, as in `jax.jit`, `vmap` and `torch.compile`."""

def graded_qr(x: Like, spec: Spec) -> tuple[Array, Array, Spec, Spec]:
    """Q and R of a symmetric tensor as a map from column legs to row legs, and their specs, which share a new leg, the
    last of Q and the first of R. The diagonal of each matrix of R is nonnegative."""

def graded_lq(x: Like, spec: Spec) -> tuple[Array, Array, Spec, Spec]:
    """L and Q of a symmetric tensor as a map from column legs to row legs, and their specs, which share a new leg, the
    last of L and the first of Q. The diagonal of each matrix of L is nonnegative."""

def graded_polar(x: Like, spec: Spec, side: Literal["right", "left"] = "right") -> tuple[Array, Array, Spec]:
    """U and P of a symmetric tensor as a map from column legs to row legs, x = U P, or x = P U for side "left", and the spec
    of P, a map of the column legs, or of the row legs, to themselves; U has the spec of x."""

def graded_eigh(x: Like, spec: Spec, *, check_gauge: bool = True, tolerance: float | None = None, broadening: float | None = None, separable: bool = False) -> tuple[Array, Array, Spec]:
    """Eigenvalues [n], ascending for each charge, eigenvectors V and the spec of V, whose last leg is new, of the Hermitian
    part of a symmetric tensor as a map: without flux, its column legs the duals of its row legs in the same order.
    Options: as for `svd`."""

def graded_eig(x: Like, spec: Spec, *, check_gauge: bool = True, tolerance: float | None = None, separable: bool = False) -> tuple[Array, Array, Spec]:
    """As `graded_eigh` for any map: eigenvalues and eigenvectors, complex, and the spec of the eigenvectors. Options: as for
    `eig`."""
