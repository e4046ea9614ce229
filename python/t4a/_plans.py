"""Plans of the functions: from shapes and names of dtypes of operands, and options, to a `Call`. Options can be hashed."""

import json
import re
from functools import lru_cache
from numbers import Real

from . import _orders as orders
from ._calls import Call, joint
from ._checks import fraction, integer, one_of
from ._library import MAX_RANK, ArgumentError, DtypeError, ShapeError, T4aError
from ._op import Op, labels_as_integers


def ties(check_gauge, tolerance, broadening, separable):
    """Options of derivatives at ties of singular values or eigenvalues."""
    if separable and broadening is not None:
        raise ArgumentError(f"separable={separable!r} and broadening={broadening!r}: at most one of them is allowed")
    return bool(check_gauge), fraction("tolerance", tolerance), fraction("broadening", broadening), bool(separable)


def degeneracy(check_gauge, tolerance, broadening, separable):
    return {"tolerance": tolerance, "broadening": broadening, "check_gauge": check_gauge, "separable": separable}


def elementary(function):
    """A function of eigenvalues as a value that can be hashed: a name, or a power."""
    if isinstance(function, str):
        return one_of("function", function, {"exp": "exp", "log": "ln"})
    if isinstance(function, bool) or not isinstance(function, Real) or not abs(function) < float("inf"):
        raise ArgumentError(f"function={function!r}: 'exp', 'log', or a number is required, the power")
    return float(function)


@lru_cache(maxsize=512)
def named(name, **options):
    """The operation with this name and these options, which must be hashable."""
    return Op.of({name: options or None})


@lru_cache(maxsize=512)
def of_matrices(name, is_complex, **options):
    """The operation of linear algebra with this name and these options."""
    if "degeneracy" in options:
        options["degeneracy"] = degeneracy(*options["degeneracy"])
    if "function" in options and isinstance(options["function"], float):
        options["function"] = {"pow": options["function"]}
    if "upper" in options:
        options["triangle"] = {name: options.pop(name) for name in ("upper", "unit", "op")}
    return Op.of({"linalg": {"op": {name: options or None}, "complex": is_complex}})


def labels_of(text, ranks):
    """Integer labels of operands and result, from subscripts in the syntax of `numpy.einsum`."""
    text = text.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ArgumentError(f"einsum: {text!r} has {len(terms)} operands, given {len(ranks)}")
    if not all(c.isalpha() for c in text.replace("->", "", 1).replace(",", "").replace("...", "")):
        raise ArgumentError(f"einsum: {text!r} has something else than letters, commas, ... and one ->")
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
            raise ShapeError(f"einsum: {term!r} does not name the {rank} axes of its operand")
        return found

    operands = [labels(term, rank) for term, rank in zip(terms, ranks)]
    if arrow:
        rank = len(right.replace("...", "")) + ("..." in right) * behind
        return operands, labels(right, rank)
    letters = [c for c in left if c.isalpha()]
    return operands, list(range(-behind, 0)) + [ord(c) for c in sorted(set(letters)) if letters.count(c) == 1]


@lru_cache(maxsize=512)
def optima_of(op, of):
    """The operation on optimal assignments of a contraction: "argmax", "count" or ("best", k)."""
    (held,) = json.loads(op.text)["op"].values()
    of = of if isinstance(of, str) else {of[0]: {"k": of[1]}}
    return Op.of({"optimal_assignments": {**held, "of": of}})


def integer_labels(subscripts):
    """Lists of integer labels, those of the result last, as tuples."""
    try:
        *operands, result = subscripts
    except (TypeError, ValueError):
        required = "a text such as 'ij,jk->ik', or lists of integer labels of the operands and of the result"
        raise ArgumentError(f"einsum: subscripts={subscripts!r}: {required} is required") from None
    owners = (*(f"operand {i}" for i in range(len(operands))), "the result")
    return tuple(map(labels_as_integers, owners, (*operands, result)))


def terms(subscripts, shapes):
    """Integer labels of operands and result, from subscripts or lists of labels."""
    if isinstance(subscripts, str):
        return labels_of(subscripts, [len(shape) for shape in shapes])
    *labels, result = map(list, subscripts)
    return labels, result


def summed(subscripts, shapes):
    """Sizes of the summed labels, in the order of their first occurrence."""
    labels, result = terms(subscripts, shapes)
    letters = isinstance(subscripts, str)
    name = lambda label: chr(label) if letters and label >= 0 else label
    return {name(label): size for label, size in orders.sizes(labels, shapes).items() if label not in result}


@lru_cache(maxsize=512)
def contraction(subscripts, semiring, memory, order, shapes, names):
    """The call of a contraction. `order`: as of `orders.order`, or None."""
    labels, result = terms(subscripts, shapes)
    if len(labels) != len(shapes):
        raise ArgumentError(f"labels of {len(labels)} operands, given {len(shapes)}")
    if not shapes:
        raise ArgumentError("a contraction of nothing")
    if number := len(result) == 0:
        # A contraction to a scalar cannot be batched; one to a vector of length 1 can.
        if len(shapes[0]) == MAX_RANK:
            raise ShapeError(f"einsum: {MAX_RANK} axes of operand 0, at most {MAX_RANK - 1} in a contraction to a number")
        axis = 1 + max((label for term in labels for label in term), default=0)
        labels, result, shapes = [[axis, *labels[0]], *labels[1:]], [axis], [(1, *shapes[0]), *shapes[1:]]
    try:
        found = orders.text(order, labels, shapes, result)
        op = Op.einsum(labels, shapes, result, semiring, memory, names[0], found)
    except T4aError as error:
        if isinstance(subscripts, str):
            letter = lambda found: f"label {chr(int(found[1]))!r}"
            error.args = (re.sub(r"\blabel (\d+)", letter, error.args[0]),)
        raise
    return Call(op, insert=(0, 0) if number else None, drop=((0, 0),) if number else ())


def einsum(shapes, names, subscripts, semiring, memory, order):
    if not isinstance(semiring, str):
        raise ArgumentError(f"semiring={semiring!r}: a name is required")
    memory = memory if memory is None else integer("memory", memory, 1)
    # Symbolic sizes of a compiler become constants, since a plan is valid for one set of shapes.
    shapes = tuple(tuple(map(int, shape)) for shape in shapes)
    return contraction(subscripts, semiring, memory, order, shapes, tuple(names))


def optimal(shapes, names, of, subscripts, semiring, memory, order):
    if joint(names) is not None:
        raise ArgumentError("there are no optimal assignments of complex numbers")
    value = einsum(shapes, names, subscripts, semiring, memory, order)
    count = 1 if isinstance(of, tuple) else 2
    drop = tuple((i, axis) for _, axis in value.drop for i in range(count))
    return value._replace(op=optima_of(value.op, of), single=count == 1, drop=drop, constant=True)


def axis_of(shape, axis):
    rank, axis = len(shape), integer("axis", axis)
    if not -rank <= axis < rank:
        raise ShapeError(f"axis {axis} of an array with {rank} axes")
    return axis % rank


def along(shapes, names, name, axis):
    return Call(named(name, axis=axis_of(shapes[0], axis)))


# Functions of matrices with several results, and axes of size 1 of results.
SEVERAL = {"svd", "qr", "qr_pivoted", "lq", "lu_factor", "eigh", "eig", "slogdet", "polar"}
DROPPED = {
    "svd": ((1, -2),), "svdvals": ((0, -2),), "eigh": ((0, -2),), "eigvalsh": ((0, -2),),
    "eig": ((0, -2),), "eigvals": ((0, -2),),
    "det": ((0, -1), (0, -1)), "slogdet": ((0, -1), (0, -1), (1, -1), (1, -1)),
}  # fmt: skip


def matrices(shapes, names, name, **options):
    op = of_matrices(name, names[0].startswith("complex"), **options)
    return Call(op, single=name not in SEVERAL, drop=DROPPED.get(name, ()))


def svd(shapes, names, full, ties):
    return matrices(shapes, names, "svd", vectors="full" if full else "thin", degeneracy=ties)


def qr(shapes, names, name, mode):
    return matrices(shapes, names, name, columns=one_of("mode", mode, {"reduced": "thin", "complete": "complete"}))


def lu_factor(shapes, names, pivoting):
    return matrices(shapes, names, "lu_factor", pivoting=one_of("pivoting", pivoting, {"partial": "partial", "full": "full"}))


def spectrum(shapes, names, name, ties):
    return matrices(shapes, names, name, degeneracy=ties)


def function(shapes, names, name, function):
    return matrices(shapes, names, name, function=function)


def system(shapes, names, name):
    return with_vector(shapes, matrices(shapes, names, name))


def triangular(shapes, names, upper, unit, trans):
    op = one_of("trans", trans, {"N": "none", "T": "transpose", "C": "adjoint"})
    return with_vector(shapes, matrices(shapes, names, "solve_triangular", upper=upper, unit=unit, op=op))


def minimal_norm(shapes, names, rtol):
    return with_vector(shapes, matrices_with_cutoff(shapes, names, "lstsq_min_norm", rtol))


def with_vector(shapes, call):
    """The call for right-hand sides [n] instead of [n, k], too."""
    return call._replace(insert=(1, 1), drop=((0, 1),)) if len(shapes[1]) == 1 else call


def matrices_with_cutoff(shapes, names, name, rtol):
    return matrices(shapes, names, name, rtol=fraction("rtol", rtol))


def low_rank(shapes, names, rank):
    return matrices(shapes, names, "low_rank", rank=rank)


def polar(shapes, names, side):
    return matrices(shapes, names, "polar", side=one_of("side", side, {"right": "right", "left": "left"}))


def running(shapes, names, kind, axis, reverse):
    is_complex = names[0].startswith("complex")
    return Call(named("cumulative", kind=kind, axis=axis_of(shapes[0], axis), reverse=reverse, complex=is_complex))


def recurrence(shapes, names, axis, reverse):
    is_complex, axis = names[0].startswith("complex"), axis_of(shapes[0], axis)
    return Call(named("linear_recurrence", axis=axis, reverse=reverse, complex=is_complex, initial=False))


def matrix_recurrence(shapes, names, reverse):
    return Call(named("matrix_recurrence", reverse=reverse, initial=False))


def matrix_scan(shapes, names, semiring, axis, reverse, exclusive):
    monoid = {"monoid": {"matrix": semiring}, "axis": axis_of(shapes[0], axis), "reverse": reverse, "exclusive": exclusive}
    return Call(Op.of({"associative_scan": monoid}))


def recurrent(shapes, names, cell, reverse):
    options = {"cell": cell, "reverse": reverse, "bias": len(shapes) == 3, "initial": False}
    return Call(named("recurrent", **options), single=cell == "gru")


def cross_entropy(shapes, names):
    return Call(named("cross_entropy"))


def chain(name, shapes, names, lengths):
    """The log-partition function, for the function `name`."""
    if not all("float" in own for own in names):
        raise DtypeError(f"{name}: real floats are required, given {', '.join(names[:2])}")
    if len(shapes[0]) != 3:
        raise ShapeError(f"{name}: emissions [batch, length, tags] are required, given the shape {tuple(shapes[0])}")
    if 0 in shapes[0][1:]:
        raise ShapeError(f"{name}: emissions with length ≥ 1 and tags ≥ 1 are required, given the shape {tuple(shapes[0])}")
    if lengths is None:
        lengths = (int(shapes[0][1]),) * int(shapes[0][0])
    return named("log_partition", lengths=lengths)


def log_partition(shapes, names, lengths):
    return Call(chain("log_partition", shapes, names, lengths))


def marginals(shapes, names, lengths):
    """The derivative of the log-partition function with respect to the emissions."""
    return Call(chain("marginals", shapes, names, lengths).vjp([True], [True, False]))


def kalman_filter(shapes, names):
    return Call(named("kalman_filter"), single=False)
