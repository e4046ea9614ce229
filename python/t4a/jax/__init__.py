"""Functions on JAX arrays, compatible with `jit`, `vmap`, `grad`, `jvp` and `hessian` at any order."""

import jax as _jax
import jax.numpy as _jnp
import numpy as _numpy

from .. import _functions
from ._primitive import apply


def _values(x):
    # None within `jit` and `vmap`.
    x = _jax.lax.stop_gradient(x)
    return None if isinstance(x, _jax.core.Tracer) else _numpy.asarray(x)


_FUNCTIONS = _functions.build(
    apply, _jnp.asarray, str, lambda x, name: x.astype(name), detach=_jax.lax.stop_gradient, arrays=_jnp, values=_values,
    of_number=lambda x, name, like: _jnp.asarray(x, name),
)  # fmt: skip
globals().update(_FUNCTIONS)
_functions.published(_FUNCTIONS, __name__)

from . import crf, linalg, scan  # noqa: E402
