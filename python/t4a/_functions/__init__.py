"""Definitions of the functions, shared by the modules for NumPy, PyTorch and JAX."""

from . import _plans as plans, structured
from ._calls import caller, joint


def build(apply, asarray, name_of, cast, kind=None, detach=None, planned=lambda f: f, number=lambda x: x):
    """Builds the functions; the parameters are those of `caller`. `planned` wraps functions from specs to an operation and the
    specs of its results."""
    call = caller(apply, asarray, name_of, cast, kind, detach, number)
    contraction_of, factorisation_of = planned(structured.contraction), planned(structured.factorisation)

    def arrays(*operands):
        operands = [asarray(x) for x in operands]
        names = [name_of(x.dtype) for x in operands]
        name = joint(names)
        return [x if name in (None, own) else cast(x, name) for x, own in zip(operands, names)], name is not None

    def labelled(subscripts):
        return subscripts if isinstance(subscripts, str) else tuple(map(tuple, subscripts))

    def einsum(subscripts, *operands, semiring="standard", memory=None):
        """Contraction with subscripts in the syntax of `numpy.einsum`, or with integer labels, those of the result last:
        `einsum([[1, 2], [2, 3], [1, 3]], a, b)`.

        `semiring`: "standard", "max_plus", "min_plus", "max_mul", "max_min", "log_sum_exp". `memory`: limit in
        bytes of intermediate tensors; contractions that need more are sliced.
        """
        return call(plans.einsum, operands, labelled(subscripts), semiring, memory)

    def argmax_einsum(subscripts, *operands, semiring="max_plus"):
        """Contraction over a selective semiring ("max_plus", "min_plus", "max_mul", "max_min") with its argmax: a dictionary from
        each summed label (as in `subscripts`) to its index, `int64` of the shape of the result. Of several optima it is the first
        one, with the last label varying fastest; -1 where the result is the zero of the semiring. No derivative."""
        operands, subscripts = tuple(map(asarray, operands)), labelled(subscripts)
        value, number = call(plans.optimal, operands, "argmax", subscripts, semiring)
        indices = {}
        for label, size in reversed(plans.summed(subscripts, [tuple(map(int, x.shape)) for x in operands]).items()):
            # The remainder of -1 is size - 1, and its quotient is -1.
            indices[label] = number % max(size, 1) - (number < 0) * max(size, 1)
            number = number // max(size, 1)
        return value, dict(reversed(indices.items()))

    def counting_einsum(subscripts, *operands, semiring="max_plus"):
        """Contraction over "max_plus", "min_plus" or "max_mul", and the number of assignments of summed labels that attain
        it, `int64` of the shape of the result. No derivative."""
        return call(plans.optimal, operands, "count", labelled(subscripts), semiring)

    def k_best_einsum(subscripts, *operands, k, semiring="max_plus"):
        """The `k` best values of every sum over a selective semiring, 1 to 16, on a new last axis in descending order of
        preference. A value that is attained several times occurs several times; missing ones are the zero of the semiring. No
        derivative."""
        return call(plans.optimal, operands, ("best", k), labelled(subscripts), semiring)

    def softmax(x, axis=-1):
        """exp(x) / sum exp(x) along an axis."""
        return call(plans.along, (x,), "softmax", axis)

    def log_softmax(x, axis=-1):
        """x - ln sum exp(x) along an axis."""
        return call(plans.along, (x,), "log_softmax", axis)

    def cross_entropy(logits, targets):
        """-log_softmax(logits)[target] of each row; `logits` [n, classes], `targets` [n]."""
        return call(plans.cross_entropy, (logits, targets))

    def svd(x, check_gauge=True):
        """U [..., m, k], S [..., k], Vh [..., k, n] with k = min(m, n).

        A derivative that depends on the arbitrary phases or basis of the vectors raises GaugeError. Second derivatives
        of complex matrices need `check_gauge=False`: the tape computes them in parts, which may depend on the phases
        although their sum does not.
        """
        return call(plans.svd, (x,), bool(check_gauge))

    def svdvals(x):
        """Singular values [..., k]."""
        return call(plans.matrices, (x,), "svdvals")

    def qr(x):
        """Q [..., m, k], R [..., k, n]; the diagonal of R is nonnegative."""
        return call(plans.qr, (x,))

    def lq(x):
        """L [..., m, k] and Q [..., k, n] with x = L Q; the diagonal of L is nonnegative."""
        return call(plans.matrices, (x,), "lq")

    def cholesky(x):
        """The lower factor [..., n, n] of (x + xH)/2."""
        return call(plans.matrices, (x,), "cholesky")

    def eigh(x, check_gauge=True):
        """Eigenvalues [..., n] and vectors [..., n, n] of (x + xH)/2. `check_gauge`: as for `svd`."""
        return call(plans.spectrum, (x,), "eigh", bool(check_gauge))

    def eigvalsh(x):
        """Eigenvalues [..., n] of (x + xH)/2."""
        return call(plans.matrices, (x,), "eigvalsh")

    def eig(x, check_gauge=True):
        """Eigenvalues [..., n] and vectors [..., n, n] of x, complex. `check_gauge`: as for `svd`."""
        return call(plans.spectrum, (x,), "eig", bool(check_gauge))

    def eigvals(x):
        """Eigenvalues [..., n] of x, complex."""
        return call(plans.matrices, (x,), "eigvals")

    def inv(x):
        """The inverse of x [..., n, n]."""
        return call(plans.matrices, (x,), "inv")

    def det(x):
        """The determinant [...]."""
        return call(plans.matrices, (x,), "det")

    def slogdet(x):
        """Sign and logarithm of the absolute value of the determinant, [...] each."""
        return call(plans.matrices, (x,), "slogdet")

    def solve(a, b):
        """The solution x of a x = b: `a` [..., n, n], `b` [..., n, k], or [n] if `a` is a single matrix; x has the shape of b."""
        return call(plans.system, (a, b), "solve")

    def solve_triangular(a, b, upper=False):
        """As `solve`, with the lower or upper triangle of `a`; the other elements are not read."""
        return call(plans.triangular, (a, b), bool(upper))

    def lstsq(a, b):
        """x [..., n, k] with minimal |a x - b|: `a` [..., m, n] of full rank, `b` [..., m, k], or [m] if `a` is a single matrix."""
        return call(plans.system, (a, b), "lstsq")

    def sylvester(a, b, c):
        """The solution x [..., m, n] of a x + x b = c: `a` [..., m, m], `b` [..., n, n]."""
        return call(plans.matrices, (a, b, c), "sylvester")

    def pinv(x, rtol=None):
        """The pseudoinverse [..., n, m] of x [..., m, n]; singular values up to `rtol` times the greatest are zero."""
        return call(plans.pinv, (x,), rtol)

    def low_rank(x, rank):
        """The matrix of this rank that is closest to x [..., m, n]. Its derivative needs no gaps of singular values up to `rank`."""
        return call(plans.low_rank, (x,), int(rank))

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
        """U [..., n, n] and P [..., n, n] with x = U P, or x = P U for side "left"."""
        return call(plans.polar, (x,), side)

    def cumsum(x, axis=0, reverse=False):
        """Cumulative sums along an axis; the result has the shape of x."""
        return call(plans.running, (x,), "sum", axis, bool(reverse))

    def cumprod(x, axis=0, reverse=False):
        """Cumulative products along an axis."""
        return call(plans.running, (x,), "product", axis, bool(reverse))

    def cummax(x, axis=0, reverse=False):
        """Cumulative maxima along an axis."""
        return call(plans.running, (x,), "max", axis, bool(reverse))

    def cummin(x, axis=0, reverse=False):
        """Cumulative minima along an axis."""
        return call(plans.running, (x,), "min", axis, bool(reverse))

    def logcumsumexp(x, axis=0, reverse=False):
        """ln of cumulative sums of exp(x) along an axis."""
        return call(plans.running, (x,), "log_sum_exp", axis, bool(reverse))

    def linear_recurrence(a, b, axis=0, reverse=False):
        """h[t] = a[t] h[t - 1] + b[t] along an axis, with h[-1] = 0; a, b and h have the same shape."""
        return call(plans.recurrence, (a, b), axis, bool(reverse))

    def matrix_recurrence(a, b, reverse=False):
        """H[t] = A[t] H[t - 1] + B[t] with H[-1] = 0: `a` [..., n, d, d], `b` [..., n, d, k]; H has the shape of `b`."""
        return call(plans.matrix_recurrence, (a, b), bool(reverse))

    def matrix_scan(x, semiring="standard", axis=0, reverse=False, exclusive=False):
        """Cumulative products x[0] x[1] ... x[t] of square matrices [..., d, d] along another axis, over a semiring as in
        `einsum`. `exclusive`: without x[t]. `reverse`: x[n - 1] x[n - 2] ... x[t]."""
        return call(plans.matrix_scan, (x,), semiring, axis, bool(reverse), bool(exclusive))

    def lstm(z, weight, bias=None, reverse=False):
        """States h and memories c [n, batch, width] of an LSTM with zero initial states. `z` [n, batch, 4 width]: products of the
        inputs with their weights; `weight` [width, 4 width] and `bias` [4 width]: recurrent weights; gates in the order i, f, g, o."""
        return call(plans.recurrent, (z, weight) if bias is None else (z, weight, bias), "lstm", bool(reverse))

    def gru(z, weight, bias=None, reverse=False):
        """States h [n, batch, width] of a GRU with zero initial states. `z` [n, batch, 3 width]: products of the inputs with
        their weights; `weight` [width, 3 width] and `bias` [3 width]: recurrent weights; gates in the order r, z, n."""
        return call(plans.recurrent, (z, weight) if bias is None else (z, weight, bias), "gru", bool(reverse))

    def log_partition(emissions, transitions, lengths=None):
        """ln Z of a linear chain of tags: ln sum over y of exp(sum_t emissions[b, t, y[t]] + sum_t transitions[y[t-1], y[t]]).

        `emissions` [batch, length, tags], `transitions` [tags, tags]; `lengths`: a number from 1 to length for each
        sequence. The derivatives with respect to the emissions are the marginal probabilities of the tags.
        """
        return call(plans.log_partition, (emissions, transitions), None if lengths is None else tuple(map(int, lengths)))

    def kalman_filter(transition, process, observation, noise, y, mean, covariance):
        """Means [batch, n, d], covariances [n, d, d] and log-likelihoods [batch, n] of the Kalman filter.

        x_t = transition x_(t-1) + noise of covariance `process`, y_t = observation x_t + noise of covariance `noise`;
        `y` [batch, n, m], `mean` [d] and `covariance` [d, d] of the state before the first step. Covariances are symmetric.
        """
        return call(plans.kalman_filter, (transition, process, observation, noise, y, mean, covariance))

    def graded_contract(x, y, specs, axes):
        """Contraction of legs `axes[0]` of x with legs `axes[1]` of y, for two symmetric tensors as flat arrays with their
        `t4a.structured.Spec`s. Returns a flat array and its spec; row legs are the remaining legs of x, column legs those of y."""
        (x, y), is_complex = arrays(x, y)
        op, spec = contraction_of(*specs, tuple(map(tuple, axes)), is_complex)
        if not is_complex:
            return apply(op, x, y)[0], spec
        real, imaginary = apply(op, x.real, x.imag, y.real, y.imag)
        return real + 1j * imaginary, spec

    def graded_svd(x, spec, check_gauge=True):
        """U, S and Vh of a real symmetric tensor as a map from column legs to row legs, and the specs of U and Vh, which share a
        new leg, the last of U and the first of Vh; S [k] in the order of that leg. `check_gauge`: as for `svd`."""
        (x,), _ = arrays(x)
        op, left, right = factorisation_of(spec, bool(check_gauge))
        u, s, vh = apply(op, x)
        return u, s, vh, left, right

    # Those defined here with a docstring: no parameters of `build`, no inner functions.
    own = lambda f: getattr(f, "__module__", None) == __name__ and f.__doc__
    return {name: f for name, f in locals().items() if own(f)}
