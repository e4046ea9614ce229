"""Functions on NumPy arrays and on other objects with `__dlpack__`. Operands are not copied; results are new NumPy arrays. Results of
arrays on CUDA devices, as of CuPy, are `t4a.CudaArray`s there."""

import numpy as _numpy

from .. import _functions
from .._dlpack import is_on_cuda
from .._library import DtypeError as _DtypeError, UnsupportedError as _UnsupportedError


_MASKED = "a masked array, whose mask would be ignored; `filled()` first"


def _asarray(x):
    # Converts lists and numbers. DLPack producers with shape and dtype are returned unchanged, since their dtype may be none of
    # NumPy.
    if type(x) is _numpy.ndarray:
        return x
    if isinstance(x, _numpy.ma.MaskedArray):
        raise _UnsupportedError(_MASKED)
    if hasattr(x, "__dlpack__"):
        return x if hasattr(x, "dtype") and hasattr(x, "shape") else _imported(x)
    return _numpy.asarray(x)


def _array(x):
    # Operands of functions that consist of others, which need the methods of an array.
    if isinstance(x, _numpy.ma.MaskedArray):
        raise _UnsupportedError(_MASKED)
    if isinstance(x, _numpy.ndarray) or not hasattr(x, "__dlpack__"):
        return _numpy.asarray(x)
    return _imported(x)


def _imported(x):
    try:
        return _numpy.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:
        raise _UnsupportedError(f"NumPy cannot read this {type(x).__name__}: {error}") from error


def apply(op, *arrays):
    """Runs an operation; returns NumPy arrays."""
    arrays = tuple(map(_asarray, arrays))
    found = op.compute(0, arrays)
    if found is None:
        found = [x if is_on_cuda(x) else _numpy.from_dlpack(x) for x in op.run(*map(_addressable, arrays))]
    return found


def _addressable(x):
    # DLPack has no strides that are parts of an element, as those of fields of a structured array may be.
    uneven = type(x) is _numpy.ndarray and any(stride % x.itemsize for stride in x.strides)
    return x.copy() if uneven else x


def vjp(op, arrays, cotangents):
    """Cotangents of all arrays, from the cotangents of all results (None is zero)."""
    wanted = [_numpy.issubdtype(_asarray(x).dtype, _numpy.inexact) for x in arrays]
    given = [x is not None for x in cotangents]
    back = apply(op.vjp(given, wanted), *arrays, *(x for x in cotangents if x is not None))
    back = iter(back)
    return [next(back) if want else None for want in wanted]


def jvp(op, arrays, tangents):
    """Results and their tangents, from the tangents of the arrays (None is zero)."""
    moving = [x is not None for x in tangents]
    all = apply(op.jvp(moving), *arrays, *(x for x in tangents if x is not None))
    shapes = [(tuple(x.shape), _name(x.dtype)) for x in map(_asarray, arrays)]
    # Index results, which have no tangents, follow the tangents.
    count = len(all) - len(op.results(shapes))
    return all[:count], all[count : 2 * count]


def _cast(x, name):
    return x.astype(name) if hasattr(x, "astype") else _numpy.asarray(x).astype(name)


def _name(dtype):
    if not getattr(dtype, "isnative", True):
        raise _DtypeError(f"there are no tensors of {dtype}, whose bytes are in reverse order; `astype('{dtype.str[1:]}')` first")
    return str(dtype).removeprefix("torch.")


def _of_number(x, name, like):
    if name == "bfloat16":
        raise _DtypeError(f"NumPy has no bfloat16, the dtype of an operand, for the number {x!r}")
    return _numpy.asarray(x, name)


_FUNCTIONS = _functions.build(
    apply, _asarray, _name, _cast, kind=0, number=lambda x: x[()], arrays=_numpy, array=_array, of_number=_of_number
)
globals().update(_FUNCTIONS)
_functions.published(_FUNCTIONS, __name__)

from . import crf, linalg, scan  # noqa: E402
