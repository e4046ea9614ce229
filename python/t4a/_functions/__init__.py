"""Definitions of the functions, shared by the modules for NumPy, PyTorch and JAX. A file defines those of one subject.

    contractions, graded      functions of `t4a.numpy`, `t4a.torch` and `t4a.jax` alone
    linalg, scan, crf         functions of these modules, and of their submodules `linalg`, `scan` and `crf`
"""

from .._calls import caller
from . import contractions, crf, graded, linalg, scan


def build(
    apply, asarray, name_of, cast, kind=None, detach=None, planned=lambda f: f, number=lambda x: x, arrays=None
):
    """Builds the functions; the parameters are those of `caller`. `planned` wraps functions from specs to an operation and the
    specs of its results. `arrays` is the module of array functions: `numpy`, `torch` or `jax.numpy`."""
    call = caller(apply, asarray, name_of, cast, kind, detach, number)
    found = {}
    for file, functions in (
        (contractions, contractions.functions(call, asarray)),
        (linalg, linalg.functions(call, asarray, arrays)),
        (scan, scan.functions(call)),
        (crf, crf.functions(call, asarray, arrays)),
        (graded, graded.functions(apply, asarray, name_of, cast, planned)),
    ):
        # Those defined there with a docstring: no parameters, no inner functions.
        own = lambda f: getattr(f, "__module__", None) == file.__name__ and f.__doc__
        found |= {name: f for name, f in functions.items() if own(f)}
    return found


def submodule(functions, name):
    """The functions that the submodule of this name has, by name."""
    own = f"{__name__}.{name.rpartition('.')[2]}"
    return {name: f for name, f in functions.items() if f.__module__ == own}
