"""Differentiable operations of the t4a engine: contractions over semirings, linear algebra with derivatives that
are right at ties, scans. `t4a.numpy` and `t4a.jax` have them as functions; `Op` is an operation as a value."""

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
from ._op import Op

__version__ = _lib.t4a_version().decode()


def set_threads(count):
    """Fixes the number of threads, before the first work."""
    _call(_lib.t4a_set_threads, count)


def threads():
    """The number of threads that work."""
    return _lib.t4a_threads()


__all__ = [
    "ArgumentError", "DtypeError", "GaugeError", "Op", "OutOfMemoryError", "ShapeError", "SingularError", "T4aError",
    "UnsupportedError", "set_threads", "threads",
]
