"""Differentiable operations of the t4a engine: contractions over semirings, linear algebra with derivatives at
degenerate spectra, scans. `t4a.numpy`, `t4a.torch` and `t4a.jax` have them as functions; `Op` is an operation as a value.
`t4a.networks` has ground states of chains and tensor trains of functions."""

from ._library import (
    ArgumentError,
    DtypeError,
    GaugeError,
    OutOfMemoryError,
    ShapeError,
    SingularError,
    T4aError,
    UnsupportedError,
    call as _call,
    lib as _lib,
)
from ._checks import integer as _integer
from ._cuda import CudaArray, free_memory as free_cuda_memory
from ._op import Op

__version__ = _lib.t4a_version().decode()


def set_threads(count):
    """Sets the maximum number of threads of subsequent operations; the default is one per core."""
    _call(_lib.t4a_set_threads, _integer("count", count, 1))


def threads():
    """Maximum number of threads of an operation."""
    return _lib.t4a_threads()


__all__ = [
    "ArgumentError", "CudaArray", "DtypeError", "GaugeError", "Op", "OutOfMemoryError", "ShapeError", "SingularError", "T4aError",
    "UnsupportedError", "free_cuda_memory", "set_threads", "threads",
]
