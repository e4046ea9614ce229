"""Definitions of the functions, shared by the modules for NumPy, PyTorch and JAX."""

import json
import re
from functools import lru_cache

from . import structured
from ._library import ArgumentError, ShapeError, T4aError
from ._op import Op, find, keep


def _degeneracy(check_gauge):
    return {"tolerance": None, "broadening": None, "check_gauge": bool(check_gauge), "separable": False}


@lru_cache(maxsize=512)
def _named(name, **options):
    """The operation with this name and these options, which must be hashable."""
    return Op.of({name: options or None})


@lru_cache(maxsize=512)
def _of_matrices(name, is_complex, **options):
    """The operation of linear algebra with this name and these options."""
    if "degeneracy" in options:
        options["degeneracy"] = _degeneracy(options["degeneracy"])
    return Op.of({"linalg": {"op": {name: options or None}, "complex": is_complex}})


def _subscripts(text, ranks):
    """Integer labels of operands and result, from subscripts in the syntax of `numpy.einsum`."""
    text = text.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ArgumentError(f"{text!r} has {len(terms)} operands, given {len(ranks)}")
    if not all(c.isalpha() for c in text.replace("->", "").replace(",", "").replace("...", "")):
        raise ArgumentError(f"{text!r} has something else than letters, commas, ... and one ->")
    behind = 0

    def labels(term, rank):
        nonlocal behind
        before, dots, after = term.partition("...")
        if dots:
            hidden = rank - len(before) - len(after)
            behind = max(behind, hidden)
            # Labels of the ellipsis are negative, counted from the right.
            middle = list(range(-hidden, 0))
        else:
            middle = []
        found = [ord(c) for c in before] + middle + [ord(c) for c in after]
        if len(found) != rank or "..." in after:
            raise ShapeError(f"{term!r} does not name the {rank} axes of its operand")
        return found

    operands = [labels(term, rank) for term, rank in zip(terms, ranks)]
    if arrow:
        rank = len(right.replace("...", "")) + ("..." in right) * behind
        return operands, labels(right, rank)
    letters = [c for c in left if c.isalpha()]
    return operands, list(range(-behind, 0)) + [ord(c) for c in sorted(set(letters)) if letters.count(c) == 1]


@lru_cache(maxsize=512)
def _optima(op, of):
    """The operation on optimal assignments of a contraction: "argmax", "count" or ("best", k)."""
    (held,) = json.loads(op.text)["op"].values()
    of = of if isinstance(of, str) else {of[0]: {"k": of[1]}}
    return Op.of({"optimal_assignments": {**held, "of": of}})


def _summed(subscripts, shapes):
    """Sizes of the summed labels, in the order of their first occurrence."""
    if isinstance(subscripts, str):
        labels, result = _subscripts(subscripts, [len(shape) for shape in shapes])
        name = lambda label: chr(label) if label >= 0 else label
    else:
        *labels, result = subscripts
        name = lambda label: label
    sizes = {}
    for term, shape in zip(labels, shapes):
        for label, size in zip(term, shape):
            if label not in result:
                sizes[label] = max(size, sizes.get(label, 1))
    return {name(label): size for label, size in sizes.items()}


def build(apply, asarray, name_of, cast, kind=None, detach=None, planned=lambda f: f):
    """Builds the functions from `apply(op, *arrays)`, which returns a list of arrays. `name_of(dtype)` is the name of a dtype,
    `kind` that of results of cached contractions (None: there are none), `detach` removes an array from the tape, and
    `planned` wraps functions from specs to an operation and the specs of its results."""
    cached = kind is not None and find is not None

    contraction_of, factorisation_of = planned(structured.contraction), planned(structured.factorisation)

    def dtype_of(x):
        return name_of(x.dtype)

    def joint(names):
        # Common complex dtype of all operands; None if all are real.
        if not any(name.startswith("complex") for name in names):
            return None
        return "complex128" if any(name in ("complex128", "float64") for name in names) else "complex64"

    def arrays(*operands):
        operands = [asarray(x) for x in operands]
        name = joint([dtype_of(x) for x in operands])
        return operands if name is None else [x if dtype_of(x) == name else cast(x, name) for x in operands]

    def matrices(name, *operands, **options):
        operands = arrays(*operands)
        is_complex = dtype_of(operands[0]).startswith("complex")
        return apply(_of_matrices(name, is_complex, **options), *operands)

    def einsum(subscripts, *operands, semiring="standard", memory=None):
        """Contraction with subscripts in the syntax of `numpy.einsum`, or with integer labels, those of the result last:
        `einsum([[1, 2], [2, 3], [1, 3]], a, b)`.

        `semiring`: "standard", "max_plus", "min_plus", "max_mul", "max_min", "log_sum_exp". `memory`: limit in
        bytes of intermediate tensors; contractions that need more are sliced.
        """
        if not isinstance(subscripts, str):
            subscripts = tuple(map(tuple, subscripts))
        key = (subscripts, semiring, memory)
        if cached:
            found = find(key, kind, operands)
            if found is not None:
                return found
        operands = tuple(map(asarray, operands))
        described = [(x.shape, x.dtype) for x in operands]
        try:
            op, name, number = contraction(subscripts, semiring, memory, *described)
        except TypeError:
            # Symbolic sizes of a compiler become constants, since a plan is valid for one set of shapes.
            described = [(tuple(map(int, shape)), dtype) for shape, dtype in described]
            op, name, number = contraction(subscripts, semiring, memory, *described)
        if name is None and cached:
            keep(key, operands, op, number)
        return apply_to(op, name, number, operands)[0]

    def apply_to(op, name, number, operands):
        # Applies a contraction to operands cast to the dtype `name`. If `number`, the first operand and the results have an
        # additional leading axis of size 1.
        if name is not None:
            operands = [x if dtype_of(x) == name else cast(x, name) for x in operands]
        if number:
            operands = [operands[0][None], *operands[1:]]
        results = apply(op, *operands)
        return [x[0] for x in results] if number else results

    def optima(of, subscripts, operands, semiring):
        # Results of an operation on optimal assignments, and the sizes of the summed labels.
        operands = tuple(map(asarray, operands))
        if detach is not None:
            operands = tuple(map(detach, operands))
        if not isinstance(subscripts, str):
            subscripts = tuple(map(tuple, subscripts))
        described = [(tuple(map(int, x.shape)), x.dtype) for x in operands]
        op, name, number = contraction(subscripts, semiring, None, *described)
        if name is not None:
            raise ArgumentError("there are no optimal assignments of complex numbers")
        return apply_to(_optima(op, of), name, number, operands), _summed(subscripts, [shape for shape, _ in described])

    def argmax_einsum(subscripts, *operands, semiring="max_plus"):
        """Contraction over a selective semiring ("max_plus", "min_plus", "max_mul", "max_min") with its argmax: a dictionary from
        each summed label (as in `subscripts`) to its index, `int64` of the shape of the result. Of several optima it is the first
        one, with the last label varying fastest; -1 where the result is the zero of the semiring. No derivative."""
        (value, number), summed = optima("argmax", subscripts, operands, semiring)
        indices = {}
        for label, size in reversed(summed.items()):
            # The remainder of -1 is size - 1, and its quotient is -1.
            indices[label] = number % max(size, 1) - (number < 0) * max(size, 1)
            number = number // max(size, 1)
        return value, dict(reversed(indices.items()))

    def counting_einsum(subscripts, *operands, semiring="max_plus"):
        """Contraction over "max_plus", "min_plus" or "max_mul", and the number of assignments of summed labels that attain
        it, `int64` of the shape of the result. No derivative."""
        (value, count), _ = optima("count", subscripts, operands, semiring)
        return value, count

    def k_best_einsum(subscripts, *operands, k, semiring="max_plus"):
        """The `k` best values of every sum over a selective semiring, 1 to 16, on a new last axis in descending order of
        preference. A value that is attained several times occurs several times; missing ones are the zero of the semiring. No
        derivative."""
        return optima(("best", k), subscripts, operands, semiring)[0][0]

    @lru_cache(maxsize=512)
    def contraction(subscripts, semiring, memory, *described):
        # The operation, the dtype to which operands are cast (or None), and whether the result has no axes.
        shapes, names = [tuple(shape) for shape, _ in described], [name_of(dtype) for _, dtype in described]
        if isinstance(subscripts, str):
            labels, result = _subscripts(subscripts, [len(shape) for shape in shapes])
        else:
            *labels, result = map(list, subscripts)
        if len(labels) != len(shapes):
            raise ArgumentError(f"labels of {len(labels)} operands, given {len(shapes)}")
        if not shapes:
            raise ArgumentError("a contraction of nothing")
        number = len(result) == 0
        if number:
            # A contraction to a scalar cannot be batched; one to a vector of length 1 can.
            axis = 1 + max((label for term in labels for label in term), default=0)
            labels, result, shapes = [[axis, *labels[0]], *labels[1:]], [axis], [(1, *shapes[0]), *shapes[1:]]
        name = joint(names)
        try:
            return Op.einsum(labels, shapes, result, semiring, memory, name or names[0]), name, number
        except T4aError as error:
            if isinstance(subscripts, str):
                letter = lambda found: f"label {chr(int(found[1]))!r}"
                error.args = (re.sub(r"\blabel (\d+)", letter, error.args[0]),)
            raise

    def axis_of(x, axis):
        rank = len(x.shape)
        if not -rank <= axis < rank:
            raise ShapeError(f"axis {axis} of an array with {rank} axes")
        return axis % rank

    def softmax(x, axis=-1):
        """exp(x) / sum exp(x) along an axis."""
        (x,) = arrays(x)
        return apply(_named("softmax", axis=axis_of(x, axis)), x)[0]

    def log_softmax(x, axis=-1):
        """x - ln sum exp(x) along an axis."""
        (x,) = arrays(x)
        return apply(_named("log_softmax", axis=axis_of(x, axis)), x)[0]

    def cross_entropy(logits, targets):
        """-log_softmax(logits)[target] of each row; `logits` [n, classes], `targets` [n]."""
        return apply(_named("cross_entropy"), asarray(logits), asarray(targets))[0]

    def svd(x, check_gauge=True):
        """U [..., m, k], S [..., k], Vh [..., k, n] with k = min(m, n).

        A derivative that depends on the arbitrary phases or basis of the vectors raises GaugeError. Second derivatives
        of complex matrices need `check_gauge=False`: the tape computes them in parts, which may depend on the phases
        although their sum does not.
        """
        u, s, vh = matrices("svd", x, vectors="thin", degeneracy=bool(check_gauge))
        return u, s[..., 0, :], vh

    def svdvals(x):
        """Singular values [..., k]."""
        return matrices("svdvals", x)[0][..., 0, :]

    def qr(x):
        """Q [..., m, k], R [..., k, n]; the diagonal of R is nonnegative."""
        return tuple(matrices("qr", x, columns="thin"))

    def cholesky(x):
        """The lower factor [..., n, n] of (x + xH)/2."""
        return matrices("cholesky", x)[0]

    def eigh(x, check_gauge=True):
        """Eigenvalues [..., n] and vectors [..., n, n] of (x + xH)/2. `check_gauge`: as for `svd`."""
        e, v = matrices("eigh", x, degeneracy=bool(check_gauge))
        return e[..., 0, :], v

    def eigvalsh(x):
        """Eigenvalues [..., n] of (x + xH)/2."""
        return matrices("eigvalsh", x)[0][..., 0, :]

    def inv(x):
        """The inverse of x [..., n, n]."""
        return matrices("inv", x)[0]

    def det(x):
        """The determinant [...]."""
        return matrices("det", x)[0][..., 0, 0]

    def slogdet(x):
        """Sign and logarithm of the absolute value of the determinant, [...] each."""
        sign, log = matrices("slogdet", x)
        return sign[..., 0, 0], log[..., 0, 0]

    def solve(a, b):
        """The solution x of a x = b: `a` [..., n, n], `b` [..., n, k], or [n] if `a` is a single matrix; x has the shape of b."""
        a, b = arrays(a, b)
        if len(b.shape) == 1:
            return matrices("solve", a, b[:, None])[0][:, 0]
        return matrices("solve", a, b)[0]

    def pinv(x, rtol=None):
        """The pseudoinverse [..., n, m] of x [..., m, n]; singular values up to `rtol` times the greatest are zero."""
        return matrices("pinv", x, rtol=rtol)[0]

    def expm(x):
        """The exponential of matrices [..., n, n]."""
        return matrices("expm", x)[0]

    def sqrtm(x):
        """The principal square root of matrices [..., n, n]."""
        return matrices("sqrtm", x)[0]

    def logm(x):
        """The principal logarithm of matrices [..., n, n]."""
        return matrices("logm", x)[0]

    def polar(x, side="right"):
        """U [..., n, n] and P [..., n, n] with x = U P, or x = P U for side "left"."""
        return tuple(matrices("polar", x, side=side))

    def along(x, axis, reverse):
        is_complex = dtype_of(x).startswith("complex")
        return {"axis": axis_of(x, axis), "reverse": reverse, "complex": is_complex}

    def running(name, x, axis, reverse):
        (x,) = arrays(x)
        return apply(_named("cumulative", kind=name, **along(x, axis, reverse)), x)[0]

    def cumsum(x, axis=0, reverse=False):
        """Cumulative sums along an axis; the result has the shape of x."""
        return running("sum", x, axis, reverse)

    def cumprod(x, axis=0, reverse=False):
        """Cumulative products along an axis."""
        return running("product", x, axis, reverse)

    def cummax(x, axis=0, reverse=False):
        """Cumulative maxima along an axis."""
        return running("max", x, axis, reverse)

    def cummin(x, axis=0, reverse=False):
        """Cumulative minima along an axis."""
        return running("min", x, axis, reverse)

    def logcumsumexp(x, axis=0, reverse=False):
        """ln of cumulative sums of exp(x) along an axis."""
        return running("log_sum_exp", x, axis, reverse)

    def linear_recurrence(a, b, axis=0, reverse=False):
        """h[t] = a[t] h[t - 1] + b[t] along an axis, with h[-1] = 0; a, b and h have the same shape."""
        a, b = arrays(a, b)
        return apply(_named("linear_recurrence", **along(a, axis, reverse), initial=False), a, b)[0]

    def matrix_recurrence(a, b, reverse=False):
        """H[t] = A[t] H[t - 1] + B[t] with H[-1] = 0: `a` [..., n, d, d], `b` [..., n, d, k]; H has the shape of `b`."""
        return apply(_named("matrix_recurrence", reverse=bool(reverse), initial=False), *arrays(a, b))[0]

    def matrix_scan(x, semiring="standard", axis=0, reverse=False, exclusive=False):
        """Cumulative products x[0] x[1] ... x[t] of square matrices [..., d, d] along another axis, over a semiring as in
        `einsum`. `exclusive`: without x[t]. `reverse`: x[n - 1] x[n - 2] ... x[t]."""
        (x,) = arrays(x)
        along = {"axis": axis_of(x, axis), "reverse": bool(reverse), "exclusive": bool(exclusive)}
        return apply(Op.of({"associative_scan": {"monoid": {"matrix": semiring}, **along}}), x)[0]

    def recurrent(cell, z, weight, bias, reverse):
        options = {"cell": cell, "reverse": bool(reverse), "bias": bias is not None, "initial": False}
        return apply(_named("recurrent", **options), *arrays(z, weight, *(() if bias is None else (bias,))))

    def lstm(z, weight, bias=None, reverse=False):
        """States h and memories c [n, batch, width] of an LSTM with zero initial states. `z` [n, batch, 4 width]: products of the
        inputs with their weights; `weight` [width, 4 width] and `bias` [4 width]: recurrent weights; gates in the order i, f, g, o."""
        return tuple(recurrent("lstm", z, weight, bias, reverse))

    def gru(z, weight, bias=None, reverse=False):
        """States h [n, batch, width] of a GRU with zero initial states. `z` [n, batch, 3 width]: products of the inputs with
        their weights; `weight` [width, 3 width] and `bias` [3 width]: recurrent weights; gates in the order r, z, n."""
        return recurrent("gru", z, weight, bias, reverse)[0]

    def log_partition(emissions, transitions, lengths=None):
        """ln Z of a linear chain of tags: ln sum over y of exp(sum_t emissions[b, t, y[t]] + sum_t transitions[y[t-1], y[t]]).

        `emissions` [batch, length, tags], `transitions` [tags, tags]; `lengths`: a number from 1 to length for each
        sequence. The derivatives with respect to the emissions are the marginal probabilities of the tags.
        """
        emissions, transitions = arrays(emissions, transitions)
        if lengths is None and len(emissions.shape) == 3:
            lengths = [emissions.shape[1]] * int(emissions.shape[0])
        lengths = () if lengths is None else tuple(map(int, lengths))
        if any(n < 0 for n in lengths):
            raise ArgumentError(f"the lengths {lengths} of sequences")
        return apply(_named("log_partition", lengths=lengths), emissions, transitions)[0]

    def kalman_filter(transition, process, observation, noise, y, mean, covariance):
        """Means [batch, n, d], covariances [n, d, d] and log-likelihoods [batch, n] of the Kalman filter.

        x_t = transition x_(t-1) + noise of covariance `process`, y_t = observation x_t + noise of covariance `noise`;
        `y` [batch, n, m], `mean` [d] and `covariance` [d, d] of the state before the first step. Covariances are symmetric.
        """
        return tuple(apply(_named("kalman_filter"), *arrays(transition, process, observation, noise, y, mean, covariance)))

    def graded_contract(x, y, specs, axes):
        """Contraction of legs `axes[0]` of x with legs `axes[1]` of y, for two symmetric tensors as flat arrays with their
        `t4a.structured.Spec`s. Returns a flat array and its spec; row legs are the remaining legs of x, column legs those of y."""
        x, y = arrays(x, y)
        is_complex = dtype_of(x).startswith("complex")
        op, spec = contraction_of(*specs, tuple(map(tuple, axes)), is_complex)
        if not is_complex:
            return apply(op, x, y)[0], spec
        real, imaginary = apply(op, x.real, x.imag, y.real, y.imag)
        return real + 1j * imaginary, spec

    def graded_svd(x, spec, check_gauge=True):
        """U, S and Vh of a real symmetric tensor as a map from column legs to row legs, and the specs of U and Vh, which share a
        new leg, the last of U and the first of Vh; S [k] in the order of that leg. `check_gauge`: as for `svd`."""
        (x,) = arrays(x)
        op, left, right = factorisation_of(spec, bool(check_gauge))
        u, s, vh = apply(op, x)
        return u, s, vh, left, right

    # Those defined here with a docstring: no parameters of `build`, no inner functions.
    own = lambda f: getattr(f, "__module__", None) == __name__ and f.__doc__
    return {name: f for name, f in locals().items() if own(f)}
