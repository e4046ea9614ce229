"""Definitions of the functions, shared by the modules for NumPy, PyTorch and JAX. A file defines those of one subject.

    contractions, graded      functions of `t4a.numpy`, `t4a.torch` and `t4a.jax` alone
    linalg, scan, crf         functions of these modules, and of their submodules `linalg`, `scan` and `crf`
"""

from .._calls import caller, converter
from . import contractions, crf, graded, linalg, scan


def build(
    apply, asarray, name_of, cast, kind=None, detach=None, planned=lambda f: f, number=lambda x: x, arrays=None,
    array=None, values=lambda x: x, recorded=lambda f: f, of_number=None,
):  # fmt: skip
    """Builds the functions, by name; the parameters are those of `converter` and `caller`. `planned` wraps functions from specs to an operation and
    the specs of its results. `arrays` is the module of array functions: `numpy`, `torch` or `jax.numpy`. `array` converts
    operands to arrays of this module, by default `asarray`. `values` of an array is a NumPy array, or None if it is traced.
    `recorded` wraps functions with results that are arrays, for functions that a compiler traces because theirs are not."""
    operands = converter(asarray, name_of, of_number)
    call, array = caller(apply, operands, name_of, cast, kind, detach, number), array or asarray
    found = (
        *contractions.functions(call, operands, recorded),
        *linalg.functions(call, array, name_of, arrays, values, detach or (lambda x: x)),
        *scan.functions(call),
        *crf.functions(call, array, arrays),
        *graded.functions(apply, asarray, name_of, cast, planned, values),
    )
    _SUBJECTS.update({f.__name__: f.__module__ for f in found})
    return {f.__name__: f for f in found}


# Modules that define the functions, by name.
_SUBJECTS = {}


def published(functions, module):
    """Sets the module of the functions, from which `pickle` imports them, and their names in it."""
    for name, f in functions.items():
        f.__module__, f.__qualname__ = module, name


def submodule(functions, name):
    """The functions that the submodule of this name has, by name."""
    own = f"{__name__}.{name.rpartition('.')[2]}"
    return {name: f for name, f in functions.items() if _SUBJECTS[name] == own}
