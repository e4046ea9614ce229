"""Linear algebra on NumPy arrays; the same functions as in `t4a.numpy`."""

from .._functions import submodule as _submodule
from . import _FUNCTIONS

__all__ = list(_submodule(_FUNCTIONS, __name__))
globals().update(_submodule(_FUNCTIONS, __name__))
