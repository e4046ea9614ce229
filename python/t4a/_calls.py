"""The path of all functions from their arrays to an operation, and from its results to theirs.

    call(plan, operands, *options)

`plan(shapes, dtypes, *options)` returns the `Call` for operands with these shapes and names of dtypes. The library keeps it:
further calls with the same plan, options, shapes and dtypes run without Python (capi/src/python). JAX plans while it traces.
"""

from functools import lru_cache
from typing import NamedTuple

from ._builtin import builtin
from ._library import DtypeError
from ._op import CODES, Op


class Call(NamedTuple):
    """An operation, and the axes of size 1 by which its operands and results differ from those of the function."""

    op: Op
    # A function with one result returns it, others a tuple.
    single: bool = True
    # Index of an operand, and its axis that the operation has in addition.
    insert: tuple | None = None
    # Pairs of the index of a result and its axis that the function does not return, in this order.
    drop: tuple = ()
    # Without a derivative.
    constant: bool = False


def joint(names):
    """Common complex dtype of all operands; None if all are real."""
    for name in names:
        if name not in CODES:
            raise DtypeError(f"there are no tensors of {name}")
    if not any(name.startswith("complex") for name in names):
        return None
    return "complex128" if any(name in ("complex128", "float64") for name in names) else "complex64"


def converter(asarray, name_of, of_number):
    """The conversion of operands to a tuple of arrays. Numbers of Python take the dtype of the first array of floats, with
    its precision if they are complex and it is real, as in NumPy and PyTorch. `of_number(x, name, like)` is an array of a number
    with the dtype of this name, on the device of the array `like`; None: numbers are converted alone."""

    def arrays(operands):
        if of_number is None or not any(type(x) in (int, float, complex) for x in operands):
            return tuple(map(asarray, operands))
        found = [None if type(x) in (int, float, complex) else asarray(x) for x in operands]
        names = ((x, name_of(x.dtype)) for x in found if x is not None)
        like, name = next(((x, name) for x, name in names if name.startswith(("float", "bfloat", "complex"))), (None, None))
        own = {"float64": "complex128", "float32": "complex64"}
        of = lambda x: asarray(x) if like is None else of_number(x, own.get(name, name) if type(x) is complex else name, like)
        return tuple(of(x) if array is None else array for x, array in zip(operands, found))

    return arrays


def caller(apply, arrays, name_of, cast, kind=None, detach=None, number=lambda x: x):
    """The function `call`, from `apply(op, *arrays)`, which returns a list of arrays, and a conversion of operands as by
    `converter`. `name_of(dtype)` is the name of a dtype, `kind` that of results of kept calls (None: nothing is kept), `detach`
    removes an array from the tape, and `number` converts an array without axes to a number."""

    def run(call, operands):
        op, single, insert, drop, constant = call
        if constant and detach is not None:
            operands = map(detach, operands)
        if insert is not None:
            operand, axis = insert
            operands = list(operands)
            operands[operand] = operands[operand][(slice(None),) * axis + (None,)]
        results = list(apply(op, *operands))
        for result, axis in drop:
            results[result] = number(results[result].squeeze(axis))
        return results[0] if single else tuple(results)

    def plan_and_run(plan, operands, *options):
        operands = arrays(operands)
        names = [known_name_of(x.dtype) for x in operands]
        common = joint(names)
        own = common is None or all(name == common for name in names)
        if not own:
            operands = tuple(x if name == common else cast(x, common) for x, name in zip(operands, names))
            names = [common] * len(names)
        call = plan([x.shape for x in operands], names, *options)
        if own and kept:
            keep(plan, options, operands, call)
        return run(call, operands)

    known_name_of = lru_cache(lambda dtype: name_of(dtype))
    kept = kind is not None and builtin is not None
    return builtin.caller((kind, plan_and_run, run)) if kept else plan_and_run


def keep(plan, options, operands, call):
    """Keeps a call for the function `call` of a kind."""
    drop = tuple(x for pair in call.drop for x in pair)
    builtin.keep(plan, options, operands, call.op.address, call, call.single, *(call.insert or (-1, 0)), drop)
