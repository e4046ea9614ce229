"""Functions on JAX arrays, compatible with `jit`, `vmap`, `grad`, `jvp` and `hessian` at any order."""

import jax as _jax
import jax.numpy as _jnp

from .. import _functions
from ._primitive import apply

_FUNCTIONS = _functions.build(
    apply, _jnp.asarray, str, lambda x, name: x.astype(name), detach=_jax.lax.stop_gradient, arrays=_jnp, values=lambda x: None
)
globals().update(_FUNCTIONS)

from . import crf, linalg, scan  # noqa: E402
